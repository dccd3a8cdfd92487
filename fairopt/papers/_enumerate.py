"""The fairest whole numbers of tasks that identical nodes can hold, by enumeration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster

Counts = NDArray[np.int64]


def fairest_whole_tasks(cluster: Cluster) -> tuple[int, int]:
    """Leximin of dominant shares over all ways to place whole tasks of two users on identical nodes.

    `most[a]`: the most tasks of the second user beside `a` of the first, for one node and then, node by node, for all.
    """
    one = _beside(cluster.demand, cluster.capacity[0])
    most = one
    for _ in range(1, len(cluster.servers)):
        sums = np.full(len(most) + len(one) - 1, -1)
        for a, b in enumerate(one):
            sums[a : a + len(most)] = np.maximum(sums[a : a + len(most)], most + b)
        most = sums
    share = cluster.dominant_share_per_task
    best = max(range(len(most)), key=lambda a: sorted((a * share[0], int(most[a]) * share[1])))
    return best, int(most[best])


def _beside(demand: NDArray[np.float64], capacity: NDArray[np.float64]) -> Counts:
    first = int(np.min(capacity / demand[0]))
    left = capacity - np.arange(first + 1)[:, None] * demand[0]
    return np.asarray((left / demand[1]).min(axis=1).astype(np.int64))
