"""PS-DSF without rounding: fractions near computed tasks that meet its definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from .rational import Numbers, numbers

#: Denominators that answers of small whole numbers have, at most, and how far doubles may be from such fractions.
DENOMINATOR, NEAR = 10_000, 1e-9


def nearest(cluster: Cluster, tasks: NDArray[np.float64]) -> Numbers | None:
    """`x[n,i]` as fractions with small denominators, if these are PS-DSF exactly; `None` if not."""
    found = np.array([Fraction(value).limit_denominator(DENOMINATOR) for value in tasks.ravel()], dtype=object)
    found = found.reshape(tasks.shape)
    if (np.abs(found.astype(float) - tasks) > NEAR * (1 + np.abs(tasks))).any():
        return None
    return found if holds(cluster, found) else None


def holds(cluster: Cluster, tasks: Numbers) -> bool:
    """Are tasks PS-DSF? In fractions, by its definition.

    They are feasible, and for every usable (n, i), unless n has all its tasks, a resource r that n demands is used up
    on i such that `s[n,i] / phi_n >= s[m,i] / phi_m` for every m with `x[m,i] d[m,r] > 0`.

    Source: Khamse-Ashari et al., ICC 2017, definition 4; `s[n,i] = x_n / gamma[n,i]`.
    """
    demand, capacity, weight = (numbers(values) for values in (cluster.demand, cluster.capacity, cluster.weight))
    total, usable = tasks.sum(axis=1), cluster.usable
    if (tasks < 0).any() or (tasks[~usable] != 0).any() or (total > cluster.max_tasks).any():
        return False
    idle = capacity - np.array([[(tasks[:, i] * d).sum() for d in demand.T] for i in range(tasks.shape[1])])
    if (idle < 0).any():
        return False
    users, servers, resources = cluster.shape

    def level(n: int, i: int) -> Fraction:
        alone = min(capacity[i, r] / demand[n, r] for r in range(resources) if demand[n, r] > 0)
        return Fraction(total[n] / alone / weight[n])

    def blocks(n: int, i: int, r: int) -> bool:
        others = [m for m in range(users) if tasks[m, i] * demand[m, r] > 0]
        return idle[i, r] == 0 and demand[n, r] > 0 and all(level(n, i) >= level(m, i) for m in others)

    return all(
        any(blocks(n, i, r) for r in range(resources))
        for n in range(users)
        for i in range(servers)
        if usable[n, i] and total[n] < cluster.max_tasks[n]
    )
