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

    In tasks of size `x_n`. Users without tasks must be such as can run none.
    """
    cluster, tasks = case.cluster, case.user_tasks
    runs = np.flatnonzero(cluster.runnable)
    if (tasks[runs] == 0).any() or not rational.tried(cluster, cluster.max_tasks):
        return tasks
    size, better = tasks[runs], tasks.copy()
    demand, limits = numbers(cluster.demand)[runs] * size[:, None], numbers(cluster.max_tasks)[runs] / size
    one = np.full(len(runs), Fraction(1))
    found = rational.optimum(numbers(cluster.capacity), demand, cluster.usable[runs], one, limits)
    if found is not None:
        better[runs] = np.maximum(found.tasks.sum(axis=1), one) * size
    return better


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
    up = [(int(n), int(i)) for n, i in np.argwhere(cluster.usable & (cluster.max_tasks > 0)[:, None])]
    columns = [(pair, 1) for pair in up] + [(pair, -1) for pair in up if low[pair] > 0]
    total, goal = high.sum(axis=1), len(columns)
    sums: dict[int, dict[int, Fraction]] = {n: {} for n, _ in up}
    for k, ((n, _), sign) in enumerate(columns):
        sums[n][k] = Fraction(-sign)
    unit = {n: Fraction(float(total[n])).limit_denominator(1000) for n in sums}
    if not all(unit.values()):
        return None
    gain = {k: by / unit[n] for n, own in sums.items() for k, by in own.items()}
    at_limit = [own for n, own in sums.items() if total[n] >= cluster.max_tasks[n] * (1 - float(_FULL))]
    demand = numbers(cluster.demand)
    used_up = np.argwhere(_idle(cluster, high) <= numbers(cluster.capacity) * _FULL).tolist()
    taken = [{k: sign * demand[n, r] for k, ((n, j), sign) in enumerate(columns) if i == j and demand[n, r]}
             for i, r in used_up]  # fmt: skip
    rows = [(one, Fraction(0)) for one in (*taken, *sums.values())]
    rows += [({k: -by for k, by in own.items()}, Fraction(0)) for own in at_limit]
    rows += [({k: Fraction(1)}, Fraction(cluster.gamma[pair])) for k, (pair, _) in enumerate(columns)]
    rows.append((gain | {goal: Fraction(1)}, Fraction(0)))
    try:
        program = Dictionary(rows, goal + 1, _WORK)
        program.maximise(goal)
    except (TooMuch, ValueError):
        return None
    values = program.values()
    found = np.full(cluster.shape[:2], Fraction(0), dtype=object)
    for k, (pair, sign) in enumerate(columns):
        found[pair] += sign * values.get(k, Fraction(0))
    return found if values.get(goal, 0) > 0 else None
