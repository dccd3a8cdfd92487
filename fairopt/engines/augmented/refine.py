"""The last digits of an alpha-fair optimum or equilibrium: interior-point steps on the augmented system.

Given a point near the answer, keep the pairs (user, server) that may have tasks, and take Newton steps on

    log p_ni + xi_n = log m_ni + A z_ni,     y_ni z_ni = mu        (pairs; y_ni: n's tasks there over those in all)
    sum_n x_ni d_nr + w_ir = c_ir,           w_ir sigma_ir = mu    (rows; sigma: the part of r in what its users pay)
    x_n + v_n = q_n,                         v_n xi_n = mu         (limits)

in tasks and logarithms of prices, mu to next to nothing. m is what a task is worth: one number per user in a global
program, one per pair in the game. Other interior points here eliminate pairs, which squares what nearly ties: theirs
end with products of 1e-8, and a product of 1e-8 may be two numbers of 1e-4. Here slacks over tasks stay on the
diagonal, so that both factors become small. Pairs and rows left aside come back if they are violated. The equations
are in `system`, a Newton step on them in `newton_step`.

Source: Wright, "Primal-Dual Interior-Point Methods" (1997), chapters 10 and 11 (augmented systems, Mehrotra).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...certificates.backward import log_price_per_task
from ...model.concave_welfare import ConcaveWelfare
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..base import LAST_DIGITS, Run, Solution
from ..welfare.floors import as_limits
from .newton_step import stepped
from .state import OPTIONS, AugmentedState, Options
from .system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Refined:
    """Tasks (pairs,) and log prices of whole capacities (rows,), their residual, and Newton steps taken."""

    tasks: Array
    log_rows: Array
    error: float
    steps: int


def of_solution(problem: Problem, solution: Solution, options: Options = OPTIONS) -> Solution | None:
    """A candidate answer with its last digits found, or `None` where that is not for this method."""
    log_prices, criterion = solution.log_prices, problem.criterion
    if log_prices is None or type(criterion) not in (Criterion, ConcaveWelfare):
        return None
    if type(criterion) is ConcaveWelfare and criterion.floor.any():
        return None
    polytope = problem.polytope
    if not len(polytope.users):
        return None
    begun = _clock.now()
    tasks, rows, log_marginal, alpha = in_units_of_worth(problem, solution, log_prices, options)
    if criterion.floor.any():
        return of_solution(as_limits(problem, rows), replace(solution, log=polytope.log_unit_prices(rows)))
    if isinstance(criterion, ConcaveWelfare) and (idle := _priced_out(problem, tasks, rows)).any():
        tasks_of = np.where(idle[:, None], 0.0, solution.tasks)
        without = replace(criterion, cap=np.where(idle, 0.0, criterion.cap))
        return of_solution(Problem(problem.cluster, without), replace(solution, tasks=tasks_of), options)
    found = refined(polytope, log_marginal, alpha, tasks, rows, options.target, options)
    if found is None:
        return None
    if type(criterion) is ConcaveWelfare:
        found = _retaken(problem, found, options)
    run = Run(LAST_DIGITS, solution.status, 0.0, _clock.now() - begun, found.error)
    return replace(
        solution,
        tasks=polytope.allocation(polytope.inside(found.tasks / polytope.gamma)),
        prices=None,
        log=polytope.log_unit_prices(found.log_rows),
        runs=(*solution.runs, run),
        rounds=solution.rounds + found.steps,
    )


def in_units_of_worth(
    problem: Problem, solution: Solution, log_prices: Array, options: Options = OPTIONS
) -> tuple[Array, Array, Array, Array]:
    """Tasks (pairs,) and log prices of whole capacities (rows,) in the units of what tasks are worth, and that worth.

    It is `log_marginal - alpha log x_n`, (pairs,) and (users,).
    """
    polytope, criterion = problem.polytope, problem.criterion
    who = polytope.users[polytope.pair_user]
    rows, tasks = polytope.log_row_prices(log_prices), solution.tasks[who, polytope.pair_server]
    log_marginal, alpha = _power_of(problem, tasks)
    if solution.log is None or criterion.scope != "game":  # in a solver's own scale, or its own unit of welfare
        rows = rows + _shift(polytope, criterion, log_marginal, alpha, tasks, rows, options.at_limit)
    return tasks, rows, log_marginal, alpha


def _power_of(problem: Problem, tasks: Array) -> tuple[Array, Array]:
    """What a task is worth as `log_marginal - alpha log x_n`, (pairs,) and (users,): exact, or a tangent at `tasks`.

    In the game the tangent has one slope per user, that of its servers on average by tasks.
    """
    polytope, criterion = problem.polytope, problem.criterion
    own = criterion.restrict(polytope.users)
    if type(criterion) is Criterion:
        alpha = np.full(len(polytope.users), criterion.alpha)
        marginal = own.log_marginal(np.ones(len(alpha)))
    else:
        total: Array = np.bincount(polytope.pair_user, tasks, len(polytope.users)).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope, marginal = _of_pairs(polytope, own.elasticity(total)), own.log_marginal(total)
            alpha = np.bincount(polytope.pair_user, tasks * slope, len(total)) / total
            more = (alpha * np.log(total))[polytope.pair_user]
        return _of_pairs(polytope, marginal) + more, alpha
    return _of_pairs(polytope, marginal), alpha


def _of_pairs(polytope: Polytope, values: Array) -> Array:
    """Values of users, or of users and servers, by pair."""
    user = polytope.pair_user
    return np.asarray(values[user, polytope.pair_server] if values.ndim == 2 else values[user])


def _priced_out(problem: Problem, tasks: Array, log_rows: Array) -> NDArray[np.bool_]:
    """Who (all users,) would have no tasks left at these prices, by a step of Newton's method for each user alone."""
    polytope = problem.polytope
    result = np.zeros(problem.cluster.shape[0], dtype=bool)
    if not problem.criterion.starves:
        return result
    own, total = problem.criterion.restrict(polytope.users), np.bincount(polytope.pair_user, tasks).astype(float)
    below = np.full(len(total), np.inf)
    with np.errstate(invalid="ignore"):
        dearer = log_price_per_task(polytope, log_rows) - _of_pairs(polytope, own.log_marginal(total))
        np.minimum.at(below, polytope.pair_user, dearer)
    result[polytope.users] = below * own.measure(total, polytope.reach) > total
    return result


def _retaken(problem: Problem, found: Refined, options: Options) -> Refined:
    """Tangents taken again where they led, until they lead nowhere else: Newton's method once more."""
    user, reach, before = problem.polytope.pair_user, problem.polytope.reach, np.inf
    own = problem.criterion.restrict(problem.polytope.users)
    for _ in range(options.tangents):
        power = _power_of(problem, found.tasks)
        again = refined(problem.polytope, *power, found.tasks, found.log_rows, options.target, options)
        if again is None:
            break
        old, new = (np.bincount(user, each.tasks).astype(float) for each in (found, again))
        change = float((np.abs(new - old) / own.measure(old, reach)).max())
        if not change < before:
            break
        found, before = replace(again, steps=found.steps + again.steps), change
        if change < options.target:
            break
    return found


def _shift(
    polytope: Polytope,
    criterion: Criterion,
    log_marginal: Array,
    alpha: Array,
    tasks: Array,
    log_rows: Array,
    at_limit: float,
) -> Array:
    """(rows,): by how much log prices miss the scale of worth, by the median of tasks, in the game on each server.

    Of users with room for more and above their floors, if there are any: others may pay less than their tasks are
    worth, or more.
    """
    first = polytope.start[:-1]
    total = np.add.reduceat(tasks, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        marginal = log_marginal - (alpha * np.log(total))[polytope.pair_user]
        off = marginal - log_price_per_task(polytope, log_rows)
        part = np.where(np.isfinite(off), tasks / total[polytope.pair_user], 0.0)
    free = criterion.restrict(polytope.users).surplus(total) > at_limit
    room = (free & (total < polytope.limit * (1 - at_limit)))[polytope.pair_user]
    game = criterion.scope == "game"
    where = polytope.pair_server if game else np.zeros(len(part), dtype=int)
    shifts = np.zeros(polytope.cluster.shape[1] if game else 1)
    for i in np.unique(where[part > 0]):
        mine = np.flatnonzero((where == i) & (part > 0))
        some = mine[room[mine]] if room[mine].any() else mine
        order = some[np.argsort(off[some])]
        shifts[i] = off[order[np.searchsorted(np.cumsum(part[order]), part[order].sum() / 2)]]
    return shifts[polytope.row_server] if game else np.full(len(log_rows), shifts[0])


def refined(
    polytope: Polytope,
    log_marginal: Array,
    alpha: float | Array,
    tasks: Array,
    log_rows: Array,
    aim: float,
    options: Options = OPTIONS,
) -> Refined | None:
    """The point nearest to an optimum met on the way from `tasks` (pairs,) at `log_rows` (rows,), or `None`.

    `log_marginal` (pairs,) is the logarithm of what the first task is worth, `log m + alpha log x_n`, alpha one number
    or by user. Ends when the error, relative in tasks, is below `aim`; whether it is good enough is for a judge to say.
    """
    with np.errstate(all="ignore"):
        problem = System(polytope, log_marginal, alpha, tasks, log_rows, options)
        if not problem.possible:
            return None
        state = problem.begin()
        best: Refined | None = None
        steps, most = 0, options.steps if problem.size <= options.large else options.large_steps
        for _ in range(options.returns):
            found, state = _run(problem, state, aim, most - steps)
            steps = found.steps + steps
            violated = problem.recall(found.tasks, found.log_rows, state)
            error = max(found.error, violated)
            if best is None or error <= best.error:
                best = replace(found, error=error)
            if steps >= most or found.error > options.solved or not violated:
                break
            state = problem.begin()
        assert best is not None
        return replace(best, steps=steps)


def _run(problem: System, state: AugmentedState, aim: float, most: int) -> tuple[Refined, AugmentedState]:
    """Steps until the error is below `aim` or nothing helps: the best point met, and the last one."""
    best: Refined | None = None
    since, least = 0, np.inf
    for number in range(most + 1):
        at = problem.at(state)
        if best is None or at.error < best.error:
            best = Refined(*problem.answer(state), at.error, number)
        # Where products still fall there is progress, though the error does not show it yet.
        reached = min(at.error, float((state.part * state.slack).sum()))
        since = 0 if reached < 0.5 * least else since + 1
        least = min(least, reached)
        if at.error <= aim or since > problem.options.patience or not np.isfinite(at.error):
            break
        moved = stepped(problem, state, at)
        if moved is None:
            break
        state = problem.pruned(problem.excess_reset(moved))
    assert best is not None
    return replace(best, steps=number), state
