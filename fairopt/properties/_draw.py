"""Random clusters of small whole numbers for searches, in families where properties tend to fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ._base import Property

Array = NDArray[np.float64]
Shape = tuple[int, int, int]
Family = Callable[[np.random.Generator, Shape], tuple[Array, Array]]


def _between(rng: np.random.Generator, low: int, high: int, shape: tuple[int, int]) -> Array:
    return rng.integers(low, high + 1, shape).astype(float)


def _uniform(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Whole numbers up to 6, 12 or 20."""
    users, servers, resources = shape
    top = int(rng.choice([6, 12, 20]))
    return _between(rng, 1, top, (servers, resources)), _between(rng, 1, top, (users, resources))


def _identical_servers(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """All servers alike, but for one unit."""
    capacity, demand = _uniform(rng, shape)
    capacity[:] = capacity[0]
    capacity[-1, 0] += rng.integers(2)
    return capacity, demand


def _near_ties(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Numbers 1 to 3."""
    users, servers, resources = shape
    return _between(rng, 1, 3, (servers, resources)), _between(rng, 1, 3, (users, resources))


def _two_users(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    return _uniform(rng, (2, *shape[1:]))


def _heterogeneous(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Powers of two up to 64."""
    users, servers, resources = shape
    return 2 ** _between(rng, 0, 6, (servers, resources)), 2 ** _between(rng, 0, 6, (users, resources))


def _zeros(rng: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Demands that are 0 as often as not, and some capacities."""
    capacity, demand = _near_ties(rng, shape) if rng.random() < 0.5 else _uniform(rng, shape)
    demand = demand * (rng.random(demand.shape) < 0.5)
    demand[np.arange(len(demand)), rng.integers(shape[2], size=len(demand))] += 1
    return capacity * (rng.random(capacity.shape) < 0.95), demand


FAMILIES: tuple[Family, ...] = (_uniform, _identical_servers, _near_ties, _two_users, _heterogeneous, _zeros)


def draw(rng: np.random.Generator, prop: Property) -> Cluster:
    """A cluster of 2 to 5 users, 1 to 3 servers and 1 to 3 resources, or of as many as the property is about.

    Weights are 1 of most clusters, else 1 to 3; most have neither placement constraints nor task counts.
    """
    users = int(rng.integers(2, 6))
    servers = prop.servers or int(rng.choice([1, 2, 2, 3]))
    resources = prop.resources or int(rng.choice([1, 2, 2, 3]))
    capacity, demand = FAMILIES[int(rng.integers(len(FAMILIES)))](rng, (users, servers, resources))
    users = len(demand)
    weight = rng.integers(1, 4, users) if rng.random() < 0.3 else None
    eligible = rng.random((users, servers)) < 0.7 if rng.random() < 0.3 else None
    counts = np.where(rng.random(users) < 0.5, rng.integers(1, 11, users), np.inf) if rng.random() < 0.2 else None
    return Cluster(capacity, demand, weight, eligible, counts)
