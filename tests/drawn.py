"""Small random clusters by seed, as awkward as those of `strategies`: quicker to draw by the hundred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

Array = NDArray[np.float64]


def numbers(rng: np.random.Generator, style: str, *shape: int) -> Array:
    """`nice` numbers tie, `plain` ones do not, `wide` ones span 1e-4..1e4."""
    if style == "nice":
        return rng.choice([1.0, 1.0, 2.0, 3.0, 4.0, 6.0], shape)
    return rng.uniform(0.25, 5, shape) if style == "plain" else 10 ** rng.uniform(-4, 4, shape)


def cluster(seed: int, style: str, users: int = 8, servers: int = 5, resources: int = 4) -> Cluster:
    """Weights, zero demands and capacities, placement, proportional copies and finite tasks, each now and then."""
    rng = np.random.default_rng(seed)
    n, k, m = (int(rng.integers(1, most + 1)) for most in (users, servers, resources))
    demand, capacity = numbers(rng, style, n, m), numbers(rng, style, k, m)
    if rng.random() < 0.5:
        demand *= rng.random(demand.shape) < 0.75
    if rng.random() < 0.4:
        capacity *= rng.random(capacity.shape) < 0.85
    demand[~demand.any(axis=1), rng.integers(m)] = 1.0
    weight = numbers(rng, style, n) if rng.random() < 0.5 else np.ones(n)
    eligible = rng.random((n, k)) < 0.7 if rng.random() < 0.5 else np.ones((n, k), bool)
    if k > 1 and rng.random() < 0.25:
        capacity[-1] = capacity[0] * rng.choice([1.0, 2.0, 0.3])
    if n > 1 and rng.random() < 0.25:
        demand[-1] = demand[0] * rng.choice([1.0, 2.0, 0.3])
    found = Cluster(capacity, demand, weight, eligible)
    if rng.random() < 0.35:
        part, alone = rng.choice([0, 0.1, 0.3, 0.9, 2, np.inf], n), found.gamma.sum(axis=1)
        tasks = [np.inf if np.isinf(p) else p * a for p, a in zip(part, alone, strict=True)]
        found = found.replace(max_tasks=tasks)
    return found
