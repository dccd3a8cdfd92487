r"""Welfare of many users over several servers, by the optimum of the pool of all servers, packed into the servers.

The largest welfare of a pool is an upper bound on that of its servers, so that the pool's optimum x is optimal if the
servers have room for it. Users are partitioned into groups, whose users are divided over servers in the same
proportions. With the use :math:`U_{gr} = \sum_{n \in g} x_n d_{nr}` of a group, x can be packed if the largest level t
in

.. math:: \max t, \quad \sum_i f_{gi} \ge t, \quad \sum_g f_{gi} U_{gr} \le c_{ir}, \quad f \ge 0

is 1, which is max-min with the groups as users. By its prices :math:`\lambda` the level of any division of single users
is at most :math:`\sum_{ir} \lambda_{ir} c_{ir} / \sum_n x_n \min_i \sum_r \lambda_{ir} d_{nr}`. If this bound is at
least 1, groups are split by the users' cheapest servers; otherwise x cannot be packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...model import _arrays
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.criterion import criterion
from ...model.problem import Problem
from ..accuracy import NEGLIGIBLE
from ..solution import Run, Solution

#: Approximate number of initial groups (`_GROUPS`), and largest number of times that groups are split (`_SPLITS`).
_GROUPS, _SPLITS = 500, 20


def solutions(problem: Problem, solve: Callable[[Problem], Iterator[Solution]]) -> Iterator[Solution]:
    """Yield at most one solution, the optimum of the pool, if it can be packed into the servers.

    There is none outside the scope `servers`, or with floors, placement constraints, rates or capacities of zero.
    `solve` yields candidates for the pool and for groups of users.
    """
    cluster, rule, begun = problem.cluster, problem.criterion, clock.cpu()
    other = rule.scope != "servers" or rule.floor.any()
    if other or cluster.constrained or cluster.rated or not cluster.capacity.all():
        return
    pool = next(solve(Problem(cluster.pool(), rule)), None)
    part = None if pool is None else _parts(cluster, pool.tasks, solve)
    if pool is None or part is None:
        return
    log = pool.log_prices
    if log is None:  # max-min: the price of an exhausted resource alone proves the level of users that demand it
        left = 1 - cluster.used(pool.tasks[:, 0]) / cluster.pooled_capacity
        log = np.where(np.eye(len(left), dtype=bool), 0.0, -np.inf)[left < NEGLIGIBLE, None]
    run = Run("optimum of the pool, packed", clock.cpu() - begun)
    log = np.repeat(log, len(cluster.servers), axis=-2)
    yield replace(pool, tasks=pool.tasks * part, prices=None, log=log, runs=(run,), warm=None)


def _parts(cluster: Cluster, tasks: Array, solve: Callable[[Problem], Iterator[Solution]]) -> Array | None:
    """Division of the tasks (users, 1) of a pool over servers, (users, servers), as fractions; None on failure."""
    some, part = np.flatnonzero(tasks), np.zeros(cluster.shape[:2])
    amounts, group = (tasks * cluster.demand)[some], _arrays.alike(cluster.demand[some], _GROUPS)
    for _ in range(_SPLITS):
        use = np.stack([np.bincount(group, amount) for amount in amounts.T], axis=1)
        ones = np.ones(len(use))
        own = {"demand": use, "weight": ones, "max_tasks": ones * np.inf, "users": [""] * len(use)}
        groups = cluster.derived(**own, eligible=None, rate=None)
        found = next(solve(Problem(groups, criterion(groups, ones, np.inf, "servers"))), None)
        level = np.zeros(1) if found is None else found.tasks.sum(axis=1)
        if found is not None and level.min() >= 1 - NEGLIGIBLE:
            part[some] = (found.tasks / level[:, None])[group]
            return part
        if found is None or found.prices is None:
            return None
        price = found.prices[0]
        cost = amounts @ price.T
        if (price * cluster.capacity).sum() < (1 - NEGLIGIBLE) * cost.min(axis=1).sum():
            return None
        group = _arrays.numbered(np.column_stack([group, cost.argmin(axis=1)]).astype(float))
    return None
