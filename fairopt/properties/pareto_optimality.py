"""Pareto optimality."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..certificates import _linear
from ..core import maxmin
from ..engines.small import small_enough
from ..errors import SolverError
from ..exact import rational
from ..exact.rational import Dictionary, TooMuch, numbers
from ..model.cluster import Cluster
from ..model.criterion import criterion
from ..model.polytope import Polytope
from ..model.problem import Problem
from ._base import NONE, Case, Dues, Numbers, Property

#: Rows that idle by less than this part count as used up; what a linear program may take.
_FULL, _WORK = Fraction(1, 10**6), 1e6


class ParetoOptimality(Property):
    """Nobody can have more tasks without another having fewer.

        no feasible x' has x'_n >= x_n for all n, and more for one

    Weights play no part. x' keeps placement constraints and task counts, so that a resource that stays idle because all
    who need it have all their tasks is no loss. Who has no tasks and could have some while nobody loses any is a
    violation of 1, the largest there is.

    Source: Ghodsi et al., NSDI 2011. A linear program decides; exactly, lexicographic max-min of `x'_n / x_n`.
    """

    name = "pareto-optimality"
    definition = "no feasible x' gives somebody more tasks and nobody fewer"
    words = "{user} has {has} tasks; it could have {due} while nobody loses any"
    needs_all = True

    def dues(self, case: Case) -> Dues:
        return case.user_tasks, dominating(case)

    def bounds(self, low: Case, high: Case) -> Dues:
        has = high.user_tasks
        return has, has + gains(low.cluster, low.tasks, high.tasks)


def dominating(case: Case) -> Numbers:
    """Tasks of every user, (users,), at least those of the case; more for somebody unless these are Pareto optimal."""
    if case.exact:
        return _exact(case)
    better = _levelled(case)
    return _by_program(case) if better is None else better


def _levelled(case: Case) -> Numbers | None:
    """Lexicographic max-min of `x'_n / x_n` by the kernel of small problems; x itself has the level 1.

    `None` where that has no answer: somebody who can run has no tasks, or the cluster is large.
    """
    cluster, tasks = case.cluster, case.user_tasks
    runs = cluster.runnable
    pairs = len(cluster.users) * len(cluster.servers)
    if not runs.any() or not small_enough("leximin", pairs, np.inf) or not (tasks > NONE * _alone(case))[runs].all():
        return None
    share = np.divide(1.0, tasks, out=np.full(len(tasks), np.inf), where=runs)
    rule = criterion(cluster, share, np.inf, "servers", weight=np.ones(len(tasks)))
    found, certificate = maxmin.leximin([Problem(cluster, rule)])[:2]
    return np.asarray(np.maximum(tasks, found[0].sum(axis=1))) if certificate[0] <= 1e-7 else None


def _alone(case: Case) -> Numbers:
    return np.asarray(case.cluster.gamma.sum(axis=1))


def _by_program(case: Case) -> Numbers:
    """`max sum_n y_n` over `y_n = x'_n / x_n >= 1`; of users without tasks `x'_n` in parts of what they run alone."""
    polytope, alone = Polytope(case.cluster, case.cluster.max_tasks), _alone(case)
    better, users = case.user_tasks.copy(), polytope.users
    some = better[users] > NONE * alone[users]
    least = np.where(some, better[users], 0.0)
    unit = np.where(some, least, alone[users])
    if not len(users):
        return better
    found = _linear.rises(polytope, unit, least, np.arange(len(users)))
    if found is None:
        raise SolverError("the linear program of Pareto optimality was not solved")
    better[users] = np.maximum(better[users], least + found.rises * unit)
    return better


def _exact(case: Case) -> Numbers:
    """Lexicographic max-min of `x'_n / x_n`, without rounding: x itself has the level 1, so nobody has less.

    Users without tasks must be such as can run none.
    """
    cluster, tasks = case.cluster, case.user_tasks
    if (tasks[cluster.runnable] == 0).any() or not rational.tried(cluster, cluster.max_tasks):
        return tasks
    limits = numbers(cluster.max_tasks)
    found = rational.optimum(numbers(cluster.capacity), numbers(cluster.demand), cluster.usable, tasks, limits)
    return tasks if found is None else np.maximum(found.tasks.sum(axis=1), tasks)


def gains(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers:
    """Tasks that every user can gain, at least, while nobody loses any, (users,); zeros where nothing is found.

    `low <= x <= high`, (users, servers), in fractions.
    """
    none = np.full(len(cluster.users), Fraction(0), dtype=object)
    direction = _direction(cluster, low, high)
    if direction is None:
        return none
    steps = [low[pair] / -by for pair, by in np.ndenumerate(direction) if by < 0]
    left, more, own = _idle(cluster, high), direction.T @ numbers(cluster.demand), direction.sum(axis=1)
    steps += [left[row] / by for row, by in np.ndenumerate(more) if by > 0]
    for n in np.flatnonzero(np.isfinite(cluster.max_tasks)):
        if own[n] > 0:
            steps.append((Fraction(cluster.max_tasks[n]) - high[n].sum()) / own[n])
    step = min(steps, default=Fraction(0))
    return np.asarray(own * step) if step > 0 else none


def _idle(cluster: Cluster, tasks: Numbers) -> Numbers:
    """Idle capacity, (servers, resources), at tasks (users, servers)."""
    return np.asarray(numbers(cluster.capacity) - tasks.T @ numbers(cluster.demand))


def _direction(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers | None:
    """Changes of tasks, (users, servers): the largest sum of relative gains within `|change| <= gamma`."""
    up, total, demand = cluster.usable & (cluster.max_tasks > 0)[:, None], high.sum(axis=1), numbers(cluster.demand)
    # A column for more tasks of every pair, then one for fewer of those that have any.
    user, server = np.hstack([np.nonzero(up), np.nonzero(up & (low > 0))])
    sign = np.where(np.arange(len(user)) < up.sum(), 1, -1)
    runs = np.flatnonzero(up.any(axis=1))
    own = (runs[:, None] == user) * sign
    unit = np.array([Fraction(float(one)).limit_denominator(1000) for one in total[runs]], dtype=object)
    if not unit.all():
        return None
    used_up = _idle(cluster, high) <= numbers(cluster.capacity) * _FULL
    taken = (server == np.arange(len(used_up))[:, None])[:, None] * demand[user].T * sign
    at_limit = total[runs] >= cluster.max_tasks[runs] * (1 - float(_FULL))
    goal, none = len(user), Fraction(0)
    rows = [
        ({k: Fraction(by) for k, by in enumerate(row) if by}, none) for row in [*taken[used_up], *-own, *own[at_limit]]
    ]
    rows += [({k: Fraction(1)}, Fraction(cluster.gamma[pair])) for k, pair in enumerate(zip(user, server, strict=True))]
    gain = dict(enumerate(-(own / unit[:, None]).sum(axis=0)))
    rows.append((gain | {goal: Fraction(1)}, none))
    try:
        program = Dictionary(rows, goal + 1, _WORK)
        program.maximise(goal)
    except (TooMuch, ValueError):
        return None
    values = program.values()
    found = np.full(up.shape, none, dtype=object)
    np.add.at(found, (user, server), sign * np.array([values.get(k, none) for k in range(goal)], dtype=object))
    return found if values.get(goal, 0) > 0 else None
