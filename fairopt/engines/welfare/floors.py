"""Floors as limits: the alpha-fair program with the same optimum for engines that know no floors.

At prices p user n has `max(floor_n, what it would buy)` tasks. Whoever would buy less than its floor is held there:
with the floor as its limit, and a weight at which it would buy more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...certificates.backward import log_price_per_task
from ...model._arrays import Array
from ...model.problem import Problem
from ..base import Solution

#: Most programs until the same users are held.
_ROUNDS = 20


def as_limits(problem: Problem, log_rows: Array) -> Problem:
    """The program in which those are held who are at their floors at log prices of whole capacities (rows,)."""
    polytope, rule = problem.polytope, problem.criterion
    own, least = rule.restrict(polytope.users), np.full(len(polytope.users), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):  # whom no price is known for is not held
        np.minimum.at(least, polytope.pair_user, log_price_per_task(polytope, log_rows))
        log_marginal = own.log_marginal(own.floor)
    fixed = (own.floor > 0) & (log_marginal < least)
    cap, log_more = rule.cap.copy(), np.zeros(len(rule.cap))
    cap[polytope.users[fixed]] = own.floor[fixed]
    log_more[polytope.users[fixed]] = np.minimum(least - log_marginal, np.log(np.finfo(float).max) / 4)[fixed] + 1
    floor = np.zeros(len(rule.floor))
    if rule.alpha == 0:  # weights do not count: a larger share does
        return Problem(problem.cluster, replace(rule, cap=cap, floor=floor, share=rule.share * np.exp(log_more)))
    weight = rule.weight * np.exp(log_more / rule.alpha)
    return Problem(problem.cluster, replace(rule, cap=cap, floor=floor, weight=weight))


def fixed_at_floors(
    problem: Problem, start: Solution, solve: Callable[[Problem], Iterator[Solution]]
) -> Iterator[Solution]:
    """Candidates of an engine without floors, with users held at floors by prices, iterated to consistency."""
    found, seen = start, set[bytes]()
    for _ in range(_ROUNDS):
        if found.log_prices is None:
            return
        limited = as_limits(problem, problem.polytope.log_row_prices(found.log_prices))
        key = limited.criterion.cap.tobytes()
        if key in seen:
            return
        seen.add(key)
        for found in solve(limited):
            yield found
