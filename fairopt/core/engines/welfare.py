"""Engine of concave welfare, for any utilities, by the interior-point method `core.welfare`; floors as limits.

Where zero demands make pooling exact, the optimum of the pool is placed on the servers (`placed`).

Engines that support limits but no floors are applied as follows. At given prices user n has `max(floor_n, demand_n)`
tasks. Each user whose demand is less than its floor gets the floor as a limit, and a weight at which it demands more.
The optimum of this program is the same, and the set of users at their floors is found by iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...certificates.backward import error_at, log_price_per_task
from ...model._arrays import Array
from ...model.criterion import ConcaveWelfare, Criterion
from ...model.problem import Problem
from .. import welfare
from ..accuracy import ACCURATE
from ..factors import LOG_RANGE
from ..market import FIRST_ALPHA
from ..refinement import DENSE
from ..solution import Run, Solution
from . import small

#: Backward error at which iterations end where no refinement follows.
_UNREFINED_TOL = ACCURATE


#: Users form a crowd if their number is at least `CROWD`, and at least `_CROWD_PER_PRICE` times that of prices: the
#: active set of the interior-point method may then change by only a few users in each step.
CROWD, _CROWD_PER_PRICE = 50_000, 100


def crowded(problem: Problem) -> bool:
    """True if the users of several servers form a crowd, of which a sample nearly determines prices."""
    polytope, rule = problem.polytope, problem.criterion
    many = len(polytope.users) >= max(CROWD, _CROWD_PER_PRICE * len(polytope.row_server))
    return many and problem.cluster.shape[1] > 1 and type(rule) is Criterion and rule.alpha > 0


def solutions(problem: Problem, tol: float, warm: object = None, patience: float = np.inf) -> Iterator[Solution]:
    """Yield one candidate of the interior-point method for concave welfare or the game, or none if prices overflow.

    Parameters
    ----------
    tol : backward error that counts as converged
    warm : warm start, from a candidate of another alpha
    patience : number of steps without progress of mu after which iterations end, as in `core.welfare.run`
    """
    polytope, begun = problem.polytope, clock.cpu()
    # No refinement follows with floors or user-defined utilities, so that a smaller error is required here.
    unrefined = problem.criterion.floor.any() or isinstance(problem.criterion, ConcaveWelfare)
    aim = min(tol, _UNREFINED_TOL) if unrefined else tol
    with np.errstate(all="ignore"):
        found = welfare.run(problem, aim, warm, patience=patience)
    if not np.isfinite(found.log_rows).any():
        return
    status = "converged" if found.error <= tol else "not converged"
    run = Run("interior point", clock.cpu() - begun)
    tasks, log = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    rough = found.error > tol
    yield Solution(tasks, None, "native", (run,), 0.0, found.steps, status, (), found.warm, log, rough)


#: Mean number of servers per user up to which no placement of the pool's optimum is tried.
_FEW_SERVERS = 4


def placed(problem: Problem, tol: float) -> Iterator[Solution]:
    r"""Yield at most one candidate at large alpha: the optimum of the pool of all servers, placed on the servers.

    Users who demand few resources can use what others leave on each server, so that pooling often loses nothing: the
    tasks :math:`X_n` and prices of the pool are optimal if a placement fills every resource with a price on all
    servers. Such a placement is the optimum at alpha = 1 of equal prices per capacity,

    .. math:: \max \sum_n w_n \log x_n, \qquad w_n = X_n \sum_{r\ \text{priced}} d_{nr} / \textstyle\sum_i c_{ir},

    which takes about ten steps, while prices at a large alpha, tens of decades apart, are no longer resolved by slacks.
    There is no candidate without zero demands, for users with few servers, or if there is no such placement, which its
    prices usually show after a few steps.
    """
    cluster, rule, polytope, begun = problem.cluster, problem.criterion, problem.polytope, clock.cpu()
    whole = type(rule) is Criterion and len(cluster.servers) > 1 and not (cluster.rated or rule.floor.any())
    # Limits in the pool are unknowns of a dense matrix.
    whole = whole and FIRST_ALPHA < rule.alpha < np.inf and len(polytope.limited) <= DENSE
    # Users with few servers leave no freedom to a placement, and an attempt costs as much as another solve.
    whole = whole and len(polytope.gamma) > _FEW_SERVERS * len(polytope.users)
    if not (whole and (cluster.demand == 0).any()):
        return
    for pool in small.in_levels(Problem(cluster.pool(), rule), tol, "native"):
        assert pool.log is not None
        total, capacity = pool.tasks[:, 0], cluster.pooled_capacity
        full = cluster.demand.T @ total > (1 - tol) * capacity
        weight = total * (cluster.demand @ np.divide(1.0, capacity, out=np.zeros(len(full)), where=full))
        if not weight[polytope.users].all():  # at their limits some users have only resources without prices
            return
        free, log = np.where(problem.limits > 0, np.inf, 0.0), np.where(full, pool.log, -np.inf)
        equal = replace(rule, share=np.ones(len(total)), alpha=1.0, weight=weight, cap=free)
        with np.errstate(all="ignore"):
            found = welfare.run(Problem(cluster.derived(max_tasks=free), equal), tol, wanted=total[polytope.users])
        tasks, log = polytope.allocation(found.fractions), np.repeat(log, len(cluster.servers), axis=0)
        if error_at(polytope, rule, tasks, polytope.log_row_prices(log), tol) <= tol:
            run = Run("interior point of the pool", clock.cpu() - begun)
            yield Solution(tasks, None, "native", (run,), 0.0, pool.rounds + found.steps, "converged", log=log)


#: Largest number of programs from one start, unless the set of users at their floors repeats earlier.
_MOST_PROGRAMS = 20


def as_limits(problem: Problem, log_rows: Array) -> Problem:
    r"""Program without floors, in which users who are at their floors at given prices have limits instead.

    User n is at its floor :math:`\underline x_n` if its marginal utility there, :math:`G_n(\underline x_n)`, is less
    than its least cost :math:`p_n`. Its weight is then multiplied by
    :math:`e\,(p_n / G_n(\underline x_n))^{1/\alpha}`, so that it demands more than its limit.

    Parameters
    ----------
    log_rows : (rows,), log prices of whole capacities
    """
    polytope, rule = problem.polytope, problem.criterion
    own, least = rule.restrict(polytope.users), np.full(len(polytope.users), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):  # users with zero prices are not at their floors
        np.minimum.at(least, polytope.pair_user, log_price_per_task(polytope, log_rows))
        log_marginal = own.log_marginal(own.floor)
    at_floor = (own.floor > 0) & (log_marginal < least)
    cap, log_more = rule.cap.copy(), np.zeros(len(rule.cap))
    cap[polytope.users[at_floor]] = own.floor[at_floor]
    log_raise = np.minimum((least - log_marginal) / rule.alpha, LOG_RANGE / 3)
    log_more[polytope.users[at_floor]] = log_raise[at_floor] + 1  # the demand is e times the floor at these prices
    weight = rule.weight * np.exp(log_more)
    return Problem(problem.cluster, replace(rule, cap=cap, floor=np.zeros(len(rule.floor)), weight=weight))


def fixed_at_floors(
    problem: Problem, start: Solution | None, solve: Callable[[Problem], Iterator[Solution]]
) -> Iterator[Solution]:
    """Yield candidates of programs without floors, until the set of users at their floors repeats.

    A first iteration begins with the set at the prices of `start`, a second iteration with the empty set. Either solves
    at most `_MOST_PROGRAMS` programs.
    """
    polytope, seen = problem.polytope, set[bytes]()
    for warm in (start, None):
        log_rows = np.full(len(polytope.row_server), -np.inf)
        if warm is not None and warm.log_prices is not None:
            log_rows = polytope.log_row_prices(warm.log_prices)
        for _ in range(_MOST_PROGRAMS):
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
