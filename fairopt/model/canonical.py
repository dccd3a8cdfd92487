"""An order of users and servers that does not depend on the order in which they are given.

Where an answer is one of many (PS-DSF that best responses reach), it is made in this order, so that the same cluster
has the same answer, bit by bit, however it is written down. Servers go by capacity, users by demand, weight and task
count; what is still alike, by a hash of whom it may serve or where it may run. What is alike then as well differs at
most by a symmetry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, Index
from .cluster import Cluster

Codes = NDArray[np.uint64]

#: Odd, so that no column is lost.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def canonical(cluster: Cluster) -> tuple[Index, Index]:
    """Users (users,) and servers (servers,) in that order, as positions in the cluster."""
    about = np.column_stack([cluster.demand, cluster.weight, cluster.max_tasks])
    serves: tuple[Codes, ...] = ()
    runs: tuple[Codes, ...] = ()
    if cluster.constrained:
        eligible = cluster.eligible.astype(np.uint64)
        serves, runs = (eligible.T @ _codes(about),), (eligible @ _codes(cluster.capacity),)
    return np.lexsort((*runs, *about.T[::-1])), np.lexsort((*serves, *cluster.capacity.T[::-1]))


def _codes(rows: Array) -> Codes:
    """A number for every row: all of its bits, mixed."""
    result = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        result = result * _FACTOR + np.ascontiguousarray(column).view(np.uint64)
        for _ in range(2):
            result = (result ^ (result >> np.uint64(29))) * _FACTOR
    return result
