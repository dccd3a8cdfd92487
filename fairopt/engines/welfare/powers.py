"""`ConcaveWelfare` by alpha-fair programs: powers that are worth the same at the tasks found last, until these stay.

At tasks x the utility is replaced by the power with alpha the largest elasticity in sight and with weights such that
marginal utilities at x are those of the utility. A fixed point is the optimum. Where all elasticities are alpha one
program is exact; otherwise it comes closer by a constant factor, and last digits are for `augmented`, whose tangents
take every user's own elasticity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...model.concave_welfare import ConcaveWelfare
from ...model.criterion import Criterion
from ...model.problem import Problem
from ..base import Solution
from . import interior_point
from .options import POWERS, PowersOptions

Array = NDArray[np.float64]


def solutions(problem: Problem, tol: float, options: PowersOptions = POWERS) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    rule = problem.criterion
    assert isinstance(rule, ConcaveWelfare)
    who, cluster = problem.polytope.users, problem.cluster
    power = Criterion(rule.share, 1.0, rule.scope, rule.weight, rule.cap, rule.floor)
    before, rounds = np.zeros(len(who)), 0
    for _ in range(options.programs):
        found = next(interior_point.solutions(Problem(cluster, power), tol), None)
        if found is None:
            return
        rounds += found.rounds
        yield replace(found, rounds=rounds, warm=None, rough=True)
        tasks = found.tasks.sum(axis=1)
        now = tasks[who]
        if not (now > 0).all() or (np.abs(now - before) <= options.unmoved * now).all():
            return
        before = now
        power = _worth_the_same(rule, tasks, who, options)


def _worth_the_same(rule: ConcaveWelfare, tasks: Array, who: NDArray[np.intp], options: PowersOptions) -> Criterion:
    """The power that has the marginal utilities of the rule at these tasks (users,)."""
    own, now = rule.restrict(who), tasks[who]
    with np.errstate(all="ignore"):
        alpha = float(np.clip(own.elasticity(now).max(initial=options.least), options.least, options.largest))
        log_weight = (own.log_marginal(now) - (1 - alpha) * np.log(own.share)) / alpha + np.log(now)
    log_weight = np.nan_to_num(log_weight - log_weight.max(initial=-np.inf), nan=-600.0, neginf=-600.0)
    weight = np.ones(len(tasks))
    weight[who] = np.exp(np.maximum(log_weight, -600.0))
    return Criterion(rule.share, alpha, rule.scope, weight, rule.cap, rule.floor)
