"""Concave welfare by the core's interior point, whatever the utilities.

Floors as limits are the alpha-fair program with the same optimum for engines that know no floors: at prices p user n
has `max(floor_n, what it would buy)` tasks. Whoever would buy less than its floor is held there: with the floor as its
limit, and a weight at which it would buy more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...certificates.backward import log_price_per_task
from ...model._arrays import Array
from ...model.criterion import ConcaveWelfare
from ...model.problem import Problem
from .. import welfare
from ..solution import Run, Solution


def solutions(problem: Problem, tol: float, warm: object = None, patience: float = np.inf) -> Iterator[Solution]:
    """One answer, or none where numbers are beyond doubles; `patience` as in the core's run."""
    polytope, begun = problem.polytope, clock.now()
    # Nobody else finds last digits where there are floors, nor those of users whom prices keep out.
    alone = problem.criterion.floor.any() or isinstance(problem.criterion, ConcaveWelfare)
    aim = min(tol, 1e-11) if alone else tol
    with np.errstate(all="ignore"):
        found = welfare.run(problem, aim, warm, patience=patience)
    if not np.isfinite(found.log_rows).any():
        return
    status = "converged" if found.error <= tol else "not converged"
    run = Run("interior point", clock.now() - begun)
    tasks, log = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    rough = found.error > tol
    yield Solution(tasks, None, "native", (run,), 0.0, found.steps, status, (), found.warm, log, rough)


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
    more = np.minimum((least - log_marginal) / rule.alpha, np.log(np.finfo(float).max) / 4)
    log_more[polytope.users[fixed]] = more[fixed] + 1  # at these prices it would buy e times its floor
    weight = rule.weight * np.exp(log_more)
    return Problem(problem.cluster, replace(rule, cap=cap, floor=np.zeros(len(rule.floor)), weight=weight))


def fixed_at_floors(
    problem: Problem, start: Solution | None, solve: Callable[[Problem], Iterator[Solution]]
) -> Iterator[Solution]:
    """Candidates without floors, with users held at floors by prices, iterated to consistency.

    Prices are those of `start` at first; if that comes to nothing, none, so that nobody is held.
    """
    polytope, seen = problem.polytope, set[bytes]()
    for begin in (start, None):
        log_rows = np.full(len(polytope.row_server), -np.inf)
        if begin is not None and begin.log_prices is not None:
            log_rows = polytope.log_row_prices(begin.log_prices)
        for _ in range(_ROUNDS):
            limited = as_limits(problem, log_rows)
            key = limited.criterion.cap.tobytes()
            if key in seen:
                break
            seen.add(key)
            for found in solve(limited):
                yield found
                if found.log_prices is not None:
                    log_rows = polytope.log_row_prices(found.log_prices)
                if found.status == "converged":
                    break
