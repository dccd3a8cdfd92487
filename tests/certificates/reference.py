"""What judges are checked with: random feasible allocations, and the definition of PS-DSF itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

Array = NDArray[np.float64]


def random_feasible(cluster: Cluster, rng: np.random.Generator, fill: bool = True) -> Array:
    """A random point, scaled until (if `fill`) nobody can grow alone by the same factor."""
    tasks = (
        cluster.gamma
        * rng.dirichlet(np.ones(cluster.shape[1]), cluster.shape[0])
        * rng.uniform(0.05, 1, cluster.shape[:2])
    )
    return cut(cluster, tasks, fill)


def cut(cluster: Cluster, tasks: Array, fill: bool = False) -> Array:
    """Tasks on every server scaled to what there is, down or (if `fill`) up."""
    for i in range(cluster.shape[1]):
        use = tasks[:, i] @ cluster.demand
        over = np.divide(use, cluster.capacity[i], out=np.zeros_like(use), where=use > 0).max()
        if over > 1 or (fill and over > 0):
            tasks[:, i] /= over
    return tasks


def definition_4(cluster: Cluster, tasks: Array, eps: float) -> bool:
    """For every usable (n,i): some r that n needs is used up at i, and whoever uses it there is not above n."""
    total = tasks.sum(axis=1)
    for n in range(cluster.shape[0]):
        for i in range(cluster.shape[1]):
            if not cluster.usable[n, i] or total[n] >= cluster.max_tasks[n] * (1 - eps):
                continue
            mine = total[n] / cluster.gamma[n, i] / cluster.weight[n]
            blocked = False
            for r in range(cluster.shape[2]):
                if cluster.demand[n, r] == 0:
                    continue
                used = sum(tasks[m, i] * cluster.demand[m, r] for m in range(cluster.shape[0]))
                if used < cluster.capacity[i, r] * (1 - eps):
                    continue
                others = [
                    total[m] / cluster.gamma[m, i] / cluster.weight[m]
                    for m in range(cluster.shape[0])
                    if tasks[m, i] * cluster.demand[m, r] > eps * cluster.capacity[i, r]
                ]
                blocked |= all(mine >= other * (1 - eps) for other in others)
            if not blocked:
                return False
    return True
