"""What judges are checked with: random feasible allocations, and the definition of PS-DSF itself."""

from __future__ import annotations

import numpy as np

from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster


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
    for n, i in np.argwhere(cluster.usable & (total < cluster.max_tasks * (1 - eps))[:, None]):
        there = np.flatnonzero(cluster.usable[:, i])
        level = total[there] / cluster.gamma[there, i] / cluster.weight[there]
        use = tasks[there, i, None] * cluster.demand[there]
        highest = np.where(use > eps * cluster.capacity[i], level[:, None], 0.0).max(axis=0)
        full = (cluster.demand[n] > 0) & (use.sum(axis=0) >= cluster.capacity[i] * (1 - eps))
        if not (full & (level[there == n] >= highest * (1 - eps))).any():
            return False
    return True
