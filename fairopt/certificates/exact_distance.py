"""Distance from the exact optimum of lexicographic max-min, where sums of doubles prove too little.

The bound of `leximin.proved` is about what a user could rise by if all others kept the last digit of theirs: where it
needs 1e-13 of what blocks it, their rounding is a large part of its tasks. The optimum itself is well determined then.
For small clusters `rational` finds it; here its prices are shown to prove it, without rounding, and tasks are compared.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..exact.rational import Exact, leximin, numbers, on_one
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from .leximin import SUFFICIENT

Array = NDArray[np.float64]


def distances(
    cluster: Cluster, tasks: Array, criterion: Criterion, limits: Array, requested: NDArray[np.bool_], work: float = 1.0
) -> tuple[Array, NDArray[np.intp]]:
    """Largest relative difference of a user's tasks from the optimum's, and whose; infinite where that is unknown.

    `tasks` (users, servers). Where each server is on its own, of those `requested` (others give 0).
    `work` is the part of `rational.WORK` that it may take.
    """
    apart, who = np.zeros(len(requested)), np.zeros(len(requested), dtype=np.intp)
    for i in np.flatnonzero(requested).tolist():
        apart[i], who[i] = (
            _distance(*on_one(cluster, criterion, i), limits, tasks[:, i], work)
            if criterion.scope == "per_server"
            else _distance(cluster, criterion, limits, tasks.sum(axis=1), work)
        )
        if apart[i] > SUFFICIENT:
            break
    return apart, who


def _distance(cluster: Cluster, criterion: Criterion, limits: Array, tasks: Array, work: float) -> tuple[float, int]:
    found = leximin(cluster, criterion, limits, work)
    if found is None or proofs(found, cluster, criterion, limits) is None:
        return np.inf, 0
    best = found.tasks.sum(axis=1)
    unit = best.copy()
    unit[best == 0] = Fraction(1)
    apart = abs(numbers(tasks) - best) / unit
    n = int(apart.argmax())
    try:
        return float(apart[n]), n
    except OverflowError:  # beyond the range of doubles
        return np.inf, n


def proofs(found: Exact, cluster: Cluster, criterion: Criterion, limits: Array) -> NDArray[np.intp] | None:
    """The round whose prices hold each user, (users,), -1 at a limit or nowhere to run; `None` if that is not proved.

    With prices lambda of capacities and mu of tasks at their limits, and `p_n` the least cost of a task of n, any x'
    has `sum p_n x'_n <= sum lambda c + sum mu q`. Where the optimum has equality, nobody with `p_n > 0` can rise while
    the others of them keep theirs: a proof for the highest of them, as nobody may take from who is at its floor. Who
    is at its limit needs none.
    """
    usable = cluster.usable & (limits > 0)[:, None]
    users = np.flatnonzero(usable.any(axis=1))
    usable, limited = usable[users], np.isfinite(limits[users])
    capacity, demand = numbers(cluster.capacity), numbers(cluster.demand[users])
    limit = numbers(np.where(limited, limits[users], 0.0))
    tasks, total = found.tasks[users], found.tasks[users].sum(axis=1)
    floor = numbers(criterion.floor[users])
    feasible = (
        (tasks >= 0).all()
        and (total >= floor).all()
        and (tasks.T @ demand <= capacity).all()
        and (total <= limit)[limited].all()
    )
    if not feasible or found.tasks.sum() != tasks[usable].sum():
        return None
    level = total * numbers(criterion.share[users]) / numbers(criterion.weight[users])
    by, free, above = np.full(len(limits), -1), ~(limited & (total == limit)), total > floor
    for k, (prices, of_limit) in enumerate(zip(found.prices, found.limits[:, users], strict=True)):
        cost = demand @ prices.T + of_limit[:, None]
        cost[~usable] = np.inf
        cost = cost.min(axis=1)
        marginal = (prices * capacity).sum() + (of_limit * limit).sum()
        priced = (prices >= 0).all() and (of_limit >= 0).all() and not of_limit[~limited].any()
        if priced and marginal == (cost * total).sum():
            by[users[free & (by[users] < 0) & (cost > 0) & (level >= level[above & (cost > 0)].max(initial=0))]] = k
    return by if (by[users] >= 0)[free].all() else None
