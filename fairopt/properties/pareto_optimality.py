"""Pareto optimality of tasks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..base.errors import SolverError
from ..certificates import _linear, rational
from ..certificates.rational import numbers
from ..core import maxmin
from ..core.engines.small import fastest
from ..mechanisms.alpha_fair import AlphaFair
from ..model._arrays import ratio
from ..model.cluster import Cluster
from ..model.criterion import criterion
from ..model.polytope import Polytope
from ..model.problem import Problem
from ._base import NONE, Case, Dues, Numbers, Property

#: Relative tolerance of the required tasks.
_TOL = 1e-7


class ParetoOptimality(Property):
    r"""No user can have more tasks without another user having fewer.

    .. math:: \nexists\, x' \in \mathcal{X} : \quad x'_n \ge x_n \text{ for all n}, \quad x' \ne x

    Weights are ignored. The feasible set :math:`\mathcal{X}` includes placement constraints and task limits, so that
    resources may be idle if all users that demand them are at their limits. If a user without tasks could have tasks,
    the violation is 1, the largest possible. The required tasks are the lexicographic max-min of :math:`x'_n / x_n`.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490); the choice of x' is defined here.
    """

    name = "pareto-optimality"
    definition = "no feasible allocation gives one user more tasks and none fewer"
    words = "{user} has {has} tasks; it could have {due} while nobody loses any"
    needs_all = True
    in_work = True

    def dues(self, case: Case) -> Dues:
        return case.work, dominating(case)

    def bounds(self, low: Case, high: Case) -> Dues:
        has = high.user_tasks
        return has, has + gains(low.cluster, low.tasks, high.tasks)


def dominating(case: Case) -> Numbers:
    """Feasible work x', (users,), that is nowhere less than the work x of the case; x if no gain is found.

    In floating point x' is the lexicographic max-min of :math:`x'_n / x_n`, in which x itself has the level 1, and the
    work of users without tasks, which have no level, is determined by a linear program: x' = x if and only if x is
    Pareto optimal. In exact arithmetic x' = x also where `gains` does not solve the problem. A linear program that is
    not solved raises `SolverError`.
    """
    if case.exact:
        return case.user_tasks + gains(case.cluster, case.tasks, case.tasks)
    cluster, tasks, alone = case.cluster, case.work, case.cluster.monopoly_work.sum(axis=1)
    starved = cluster.runnable & (tasks <= NONE * alone)
    better = tasks.copy()
    if starved.any():
        polytope = Polytope(cluster, cluster.max_tasks)
        unit, least = (np.where(starved, of_starved, tasks)[polytope.users] for of_starved in (alone, 0.0))
        hungry = np.flatnonzero(starved[polytope.users])
        solved = _linear.rises(polytope, unit, least, hungry)
        if solved is None:
            raise SolverError("the linear program of Pareto optimality was not solved")
        better[polytope.users[hungry]] += solved.rises * unit[hungry]
    share, equal, cap = ratio(1.0, tasks, np.inf), np.ones(len(tasks)), np.where(starved, 0.0, np.inf)
    if not cluster.rated and fastest("leximin", cluster, np.inf):  # small clusters, of which searches solve thousands
        rule = criterion(cluster, share, np.inf, "servers", equal, cap)
        (found, *_), (error, *_) = maxmin.leximin([Problem(cluster, rule)])[:2]
        if error <= _TOL:
            return np.asarray(np.maximum(better, found.sum(axis=1)))
    others = cluster.derived(max_tasks=np.minimum(cluster.max_tasks, cap), weight=equal)
    return np.asarray(np.maximum(better, AlphaFair(np.inf, tuple(share)).solve(others, _TOL).arrays.work))


def gains(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers:
    """Gains of tasks, (users,), that are feasible for all x between `low` and `high`; zeros if no gains are found.

    `low` and `high` are tasks (users, servers), in fractions. Let y be the lexicographic max-min of `y_n / low_n` in
    capacities that are the use of `low` plus the slack of `high`. For every `low <= x <= high`, the tasks
    `x + y - low` are feasible and dominate x.
    """
    least, most = low.sum(axis=1), high.sum(axis=1)
    none = np.full(len(least), Fraction(0), dtype=object)
    if (least[cluster.runnable] == 0).any() or not rational.tried(cluster, cluster.max_tasks):
        return none
    capacity, demand, limits = (numbers(each) for each in (cluster.capacity, cluster.demand, cluster.max_tasks))
    room = low.T @ demand + np.maximum(capacity - high.T @ demand, 0)
    usable = rational.may_run(cluster, cluster.max_tasks)
    found = rational.optimum(room, demand, usable, least, least + np.maximum(limits - most, 0))
    return none if found is None else np.asarray(found.tasks.sum(axis=1) - least)
