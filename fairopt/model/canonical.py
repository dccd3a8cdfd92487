"""Canonical order of users and servers, independent of the given order.

If solutions are not unique (for example PS-DSF allocations by best responses), they are computed in this order, so
that the result is reproducible bit for bit. Servers are sorted by capacity, users by demand, weight and task limit;
ties are broken by a hash of eligibility and rates, and remaining ties are symmetries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, Index
from .cluster import Cluster

Codes = NDArray[np.uint64]

#: An odd factor, which is invertible modulo 2^64.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def canonical(cluster: Cluster) -> tuple[Index, Index]:
    """Permutations of users, (users,), and servers, (servers,), to the canonical order."""
    about = np.column_stack([cluster.demand, cluster.weight, cluster.max_tasks])
    serves: tuple[Codes, ...] = ()
    runs: tuple[Codes, ...] = ()
    if cluster.constrained or cluster.rated:
        eligible = cluster.eligible.astype(np.uint64)
        if cluster.rated:
            eligible = eligible * np.ascontiguousarray(cluster.rate).view(np.uint64)
        serves, runs = (eligible.T @ _codes(about),), (eligible @ _codes(cluster.capacity),)
    return np.lexsort((*runs, *about.T[::-1])), np.lexsort((*serves, *cluster.capacity.T[::-1]))


def _codes(rows: Array) -> Codes:
    """Hash of every row, (rows,)."""
    result = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        result = result * _FACTOR + np.ascontiguousarray(column).view(np.uint64)
        for _ in range(2):
            result = (result ^ (result >> np.uint64(29))) * _FACTOR
    return result
