"""Pareto optimality."""

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

#: To this rise what is due is known.
_TOL = 1e-7


class ParetoOptimality(Property):
    """Nobody can have more tasks without another having fewer.

        no feasible x' has x'_n >= x_n for all n, and more for one

    Weights play no part. x' keeps placement constraints and task counts, so that a resource that stays idle because all
    who need it have all their tasks is no loss. Who has no tasks and could have some while nobody loses any is a
    violation of 1, the largest there is.

    What is due is lexicographic max-min of `x'_n / x_n`.

    Source: Ghodsi et al., NSDI 2011; which x' is due is ours.
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
    """Tasks of every user, (users,), at least those of the case; more for somebody unless these are Pareto optimal.

    Lexicographic max-min of `x'_n / x_n`: x itself has the level 1. Users without tasks, who have no such level, have
    what they could have in a linear program.
    """
    if case.exact:
        return case.user_tasks + gains(case.cluster, case.tasks, case.tasks)
    cluster, tasks, alone = case.cluster, case.user_tasks, case.cluster.gamma.sum(axis=1)
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
    if fastest("leximin", cluster, np.inf):  # searches ask for thousands
        rule = criterion(cluster, share, np.inf, "servers", equal, cap)
        (found, *_), (error, *_) = maxmin.leximin([Problem(cluster, rule)])[:2]
        if error <= _TOL:
            return np.asarray(np.maximum(better, found.sum(axis=1)))
    others = cluster.derived(max_tasks=np.minimum(cluster.max_tasks, cap), weight=equal)
    return np.asarray(np.maximum(better, AlphaFair(np.inf, tuple(share)).solve(others, _TOL).arrays.user_tasks))


def gains(cluster: Cluster, low: Numbers, high: Numbers) -> Numbers:
    """Tasks that every user can gain, at least, while nobody loses any, (users,); zeros where nothing is found.

    `low <= x <= high`, (users, servers), in fractions. Let y be lexicographic max-min of `y_n / low_n` within what
    `low` uses and `high` leaves idle: for every such x, `x + y - low` is feasible, and nobody has less there.
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
