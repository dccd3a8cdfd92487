"""Families of random clusters of different kinds of difficulty, of any size with four resources, by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fairopt as fo
from fairopt.model._arrays import Array

_RESOURCES = 4


def _spread(rng: np.random.Generator, *shape: int, sigma: float = 0.5) -> Array:
    return np.exp(sigma * rng.standard_normal(shape))


def lognormal(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Heterogeneous servers and users."""
    return fo.Cluster(100 * _spread(rng, servers, _RESOURCES), _spread(rng, users, _RESOURCES))


def jitter(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Four types of servers with 15% jitter, nearly tied everywhere."""
    types = 100 * _spread(rng, 4, _RESOURCES, sigma=0.7)
    capacity = types[rng.integers(4, size=servers)] * (1 + 0.15 * rng.uniform(-1, 1, (servers, _RESOURCES)))
    return fo.Cluster(capacity, _spread(rng, users, _RESOURCES))


def sparse(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Users that are eligible on 2.5 servers on average."""
    eligible = rng.random((users, servers)) < 2.5 / servers
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    capacity = 100 * _spread(rng, servers, _RESOURCES)
    return fo.Cluster(capacity, _spread(rng, users, _RESOURCES), eligible=eligible)


def placement(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Five types of servers, with users eligible on some of the types."""
    types = 100 * _spread(rng, 5, _RESOURCES, sigma=0.7)
    kind = rng.integers(5, size=servers)
    allowed = rng.random((users, 5)) < 0.5
    allowed[np.arange(users), kind[rng.integers(servers, size=users)]] = True
    capacity = types[kind] * _spread(rng, servers, _RESOURCES, sigma=0.2)
    return fo.Cluster(capacity, _spread(rng, users, _RESOURCES), eligible=allowed[:, kind])


def zeros(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Clusters with 40% of demands and 10% of capacities zero."""
    demand = _spread(rng, users, _RESOURCES) * (rng.random((users, _RESOURCES)) < 0.6)
    demand[~demand.any(axis=1), rng.integers(_RESOURCES)] = 1.0
    capacity = 100 * _spread(rng, servers, _RESOURCES) * (rng.random((servers, _RESOURCES)) < 0.9)
    capacity[0] = 100.0
    return fo.Cluster(capacity, demand)


def weights(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Weights over four orders of magnitude."""
    capacity, demand = 100 * _spread(rng, servers, _RESOURCES), _spread(rng, users, _RESOURCES)
    return fo.Cluster(capacity, demand, weight=10 ** rng.uniform(-2, 2, users))


def decades(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Demands over many orders of magnitude (sigma = 2)."""
    return fo.Cluster(100 * _spread(rng, servers, _RESOURCES), _spread(rng, users, _RESOURCES, sigma=2.0))


def integers(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Small integers, with exact ties of users and servers."""
    demand = rng.integers(0, 3, (users, _RESOURCES)).astype(float)
    demand[~demand.any(axis=1), rng.integers(_RESOURCES)] = 1.0
    return fo.Cluster(10.0 * rng.integers(1, 5, (servers, _RESOURCES)), demand)


def google(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Servers of the ten classes of the Google trace, with users calibrated to it; two resources."""
    return fo.workloads.google_like(rng, users, servers).cluster


FAMILIES: dict[str, Callable[[int, int, np.random.Generator], fo.Cluster]] = {
    make.__name__: make for make in (lognormal, jitter, sparse, placement, zeros, weights, decades, integers)
}
