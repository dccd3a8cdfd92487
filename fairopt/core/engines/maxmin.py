r"""Engine of lexicographic max-min: progressive filling of servers that do not interact, else an interior-point method.

Small problems that neither method solves to the tolerance are solved in rational arithmetic (`certificates.rational`).

Progressive filling of one pool, or of every server by itself, is exact (`core.filling`). Floors are reserved from the
beginning, and the tasks of a user increase once the level exceeds the level of its floor.

Refinement: the interior-point method of one level satisfies earlier levels only up to its duality gap, which is
inaccurate for users whose tasks cost little compared with tasks of other users. Once all levels are known, amounts y
are changed as little as possible so that every user attains its level and every row with a price in some level is
exhausted,

.. math::
    \min \sum_{ni} \frac{\delta_{ni}^2}{y_{ni}} \quad \text{s.t.} \quad \sum_i (y + \delta)_{ni} = level_n, \quad
    \sum_n use_{nir} (y + \delta)_{ni} = 1,

which is a linear system in the multipliers of users and rows.

Infeasible floors: for prices lambda >= 0 and least costs p of a task, every feasible x satisfies
:math:`\sum_n p_n x_n \le \sum_{ir} \lambda_{ir} c_{ir}`, so that floors of a higher total cost cannot be met together;
each user's part of the cost is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...base import clock
from ...base.errors import DataError, SolverError
from ...certificates.backward import log_price_per_task
from ...model._arrays import Array, Mask, by_group, in_tables
from ...model.criterion import Criterion, check_floor_scope, criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from .. import filling, welfare
from ..accuracy import CONVERGED, NEGLIGIBLE, SOLVE_ROUNDING, VISIBLE
from ..algebra import Equations
from ..leximin import Leximin
from ..solution import Run, Solution

#: Largest number of pairs, padding included, of the servers that are filled together.
_PADDED_PAIRS = 20_000
#: Pairs with tasks are predicted from the solution at a finite alpha, `_PREDICTOR_ALPHA`, to the tolerance
#: `_PREDICTOR_TOL`: a pair is excluded if its part of the user's tasks is less than `_EXCESS_RATIO` times its relative
#: excess cost.
_PREDICTOR_ALPHA, _PREDICTOR_TOL, _EXCESS_RATIO = 256.0, 1e-4, 0.1


def filled(polytope: Polytope, criterion: Criterion) -> Array:
    """Lexicographic max-min tasks of every server by itself, (all users, servers).

    In the scope `per_server` limits other than zero are ignored.
    """
    cluster, users = polytope.cluster, polytope.users
    result = np.zeros(cluster.shape[:2])
    order, ends = by_group(polytope.pair_server, cluster.shape[1])
    for servers, pairs, valid in in_tables(order, ends, _PADDED_PAIRS):
        member = polytope.pair_user[pairs]
        users_at = users[member]
        share = criterion.share[users_at] if criterion.share.ndim == 1 else criterion.share[users_at, servers[:, None]]
        # Tasks are in units of gamma, so that all numbers are of order one.
        monopoly = polytope.gamma[pairs]
        gain = criterion.weight[users_at] / share / monopoly
        room = np.full(monopoly.shape, np.inf) if criterion.scope == "per_server" else polytope.limit[member] / monopoly
        use = polytope.pair_use[pairs] * valid[:, :, None]
        floor = np.where(valid, criterion.floor[users_at] / monopoly, 0.0)
        available = np.maximum(1 - np.matmul(floor[:, None], use)[:, 0], 0.0)[:, None]
        room = np.where(((use > 0) & (available == 0)).any(axis=2) | ~valid, 0.0, np.maximum(room - floor, 0.0))
        use = np.divide(use, available, out=np.zeros(use.shape), where=available > 0)
        tasks = (floor + filling.filled(gain, use, floor, room)) * monopoly
        rows = users_at[valid], np.broadcast_to(servers[:, None], users_at.shape)[valid]
        result[rows] = tasks[valid] / polytope.cluster.rate[rows] if polytope.cluster.rated else tasks[valid]
    return result


#: Relative gap of the bounds of a level above which the status calls them loose.
_LOOSE_BOUNDS = VISIBLE
#: Remark on solutions in rational arithmetic.
_EXACT_NOTE = "solved in rational arithmetic: data span too many decades for floating-point numbers"


def solutions(problem: Problem) -> Iterator[Solution]:
    """Yield candidates for a max-min criterion, in the order in which they should be certified.

    If servers do not interact, progressive filling yields the first candidate. Otherwise the interior-point method
    yields the first candidates, if it succeeds. The last candidate is that of `_exact`, if there is one.
    """
    start, criterion, polytope = clock.cpu(), problem.criterion, problem.polytope
    if criterion.scope == "per_server" or len(problem.cluster.servers) == 1:
        tasks = filled(polytope, criterion)
        run = Run("water filling", clock.cpu() - start)
        yield Solution(tasks, None, "native", (run,), rounds=1, status="exact")
    else:
        levels = None
        try:
            levels = Leximin(polytope, criterion, None if criterion.floor.any() else partial(_predicted_pairs, problem))
            prices = levels.prices()
        except SolverError:
            pass
        if levels is not None:
            status = "levels with loose bounds" if levels.gap > _LOOSE_BOUNDS else "converged"
            for tasks in _tasks(levels):
                run = Run("interior point", clock.cpu() - start)
                yield Solution(tasks, prices, "native", (run,), rounds=levels.steps, status=status)
                start = clock.cpu()
    yield from _exact(problem)


def _predicted_pairs(problem: Problem) -> Mask:
    """Mask (pairs,) of pairs that probably have tasks, by their tasks and excess costs at a large finite alpha."""
    finite_problem = Problem(problem.cluster, replace(problem.criterion, alpha=_PREDICTOR_ALPHA))
    found = welfare.run(finite_problem, _PREDICTOR_TOL)
    polytope, tasks = finite_problem.polytope, found.fractions * finite_problem.polytope.gamma
    part = tasks / polytope.user_tasks(found.fractions)[polytope.pair_user]
    cost = log_price_per_task(polytope, found.log_rows)
    excess_cost = cost - np.minimum.reduceat(cost, polytope.start[:-1])[polytope.pair_user]
    return np.asarray(~(part < _EXCESS_RATIO * excess_cost))


def _tasks(levels: Leximin) -> Iterator[Array]:
    """Yield tasks (all users, servers) at the levels, first unrefined, then refined if `restored` succeeds.

    For several levels, whose errors accumulate, refined tasks come first.
    """
    made: list[Callable[[], Array | None]] = [levels.tasks, lambda: restored(levels)]
    for make in made if len(levels.stages) == 1 else reversed(made):
        with np.errstate(all="ignore"):
            tasks = make()
        if tasks is not None:
            yield tasks


def _exact(problem: Problem) -> Iterator[Solution]:
    """Yield a solution in rational arithmetic, or none in the scope `per_server` or for a cluster that is too large."""
    from ...certificates import rational

    start, criterion = clock.cpu(), problem.criterion
    exact = None if criterion.scope == "per_server" else rational.leximin(problem.cluster, criterion, problem.limits)
    if exact is None:
        return
    tasks, prices = exact.tasks.astype(float), exact.prices.astype(float)
    run = Run("rational simplex", clock.cpu() - start)
    yield Solution(tasks, prices, "native", (run,), 0.0, 1, "exact", (_EXACT_NOTE,))


#: Thresholds of the refinement: smallest amount of a pair, relative to its user's level, that counts as tasks
#: (`_ZERO_TASKS`); largest idle fraction of an exhausted row (`_EXHAUSTED`); and smallest positive price, relative to
#: the sum of prices of a level (`_ZERO_PRICE`).
_ZERO_TASKS, _EXHAUSTED, _ZERO_PRICE = SOLVE_ROUNDING, VISIBLE, CONVERGED
#: Relative regularization, since equations may be dependent (`_REGULARIZATION`), largest relative change of a pair
#: (`_MOST_CHANGE`), and number of steps of iterative refinement (`_STEPS`).
_REGULARIZATION, _MOST_CHANGE, _STEPS = CONVERGED, 0.5, 4


def restored(levels: Leximin) -> Array | None:
    """Tasks (all users, servers) refined to the levels; None if this requires a large change of some pair."""
    polytope, level, pairs = levels.polytope, levels.level, levels.pairs
    amounts, priced = levels.amounts(), np.zeros(levels.inverse.shape, dtype=bool)
    amounts = np.where(amounts > _ZERO_TASKS * level[pairs.user], amounts, 0.0)
    for stage in levels.stages:
        priced[stage.servers] |= stage.prices > _ZERO_PRICE * np.abs(stage.prices).sum()
    full = priced & (np.abs(pairs.use(amounts) - 1) < _EXHAUSTED)
    weight = amounts / level[pairs.user]
    of_rows = np.einsum("rrk->kr", pairs.squares(weight))
    idle = np.where(full, _REGULARIZATION * of_rows, np.inf)
    equations = Equations(pairs, weight, idle, _REGULARIZATION * pairs.sums(weight), np.zeros(len(level)))
    refined = amounts
    for _ in range(_STEPS):
        lam, p, _ = equations.solve(1 - pairs.use(refined), pairs.sums(refined) - level, 0.0)
        refined = refined + weight * pairs.slack(lam, p)
    some = amounts > 0
    if not np.abs(refined[some] / amounts[some] - 1).max(initial=0.0) < _MOST_CHANGE:
        return None
    fractions = refined * levels.tasks_per_level[pairs.user] / polytope.gamma
    return polytope.allocation(polytope.inside(fractions))


#: Relative tolerance of the feasibility of floors.
_ROUNDING = NEGLIGIBLE
#: Relative reduction of the reported part of floors, so that floors with the six digits of the message are feasible.
_PRINTED = 5e-6
#: Largest number of users in an error message (`_MOST_NAMED`), and their smallest share of the cost of all floors
#: (`_NAMED_PART`).
_MOST_NAMED, _NAMED_PART = 3, 0.05


def check_floors(problem: Problem) -> None:
    """Raise `DataError` for infeasible floors; the message states the most costly floors and the feasible part.

    It is also raised for a floor of a user that can run nothing, and if floors exhaust what a user without floor needs.
    Floors of a game raise `DataError` too: the function `criterion` checks them, but `dataclasses.replace` does not.
    """
    cluster, rule = problem.cluster, problem.criterion
    if not rule.floor.any():
        return
    check_floor_scope(rule.scope)
    unusable = np.setdiff1d(np.flatnonzero(rule.floor), problem.polytope.users)
    if len(unusable):
        n = int(unusable[0])
        raise DataError(
            f"user {cluster.users[n]!r} has a floor of {rule.floor[n]:g} tasks and can run nothing: give it a server "
            "to run on, or no floor",
            ("users", n),
        )
    # Floors within a partition of every server by weight are feasible.
    partition = rule.weight / rule.weight.sum() * cluster.gamma.sum(axis=1)
    if (rule.floor <= partition).all():
        return
    feasible_part, cost_part, price = met(problem.polytope, rule.floor[problem.polytope.users])
    if feasible_part >= 1 - _ROUNDING:
        if feasible_part <= 1 + _ROUNDING and not rule.starves:
            _check_rest(problem, price)
        return
    feasible_part *= 1 - _PRINTED
    order = np.argsort(-cost_part, kind="stable")[:_MOST_NAMED]
    users = cluster.users
    named = [
        f"{users[problem.polytope.users[n]]!r} for {cost_part[n]:.0%}" for n in order if cost_part[n] >= _NAMED_PART
    ]
    raise DataError(
        f"the floors cannot be met together, at most {feasible_part:.6g} of each: of the cost of all floors, user "
        f"{', '.join(named)}. Choose floors of at most {feasible_part:.6g} of these, or drop some of theirs"
    )


def _check_rest(problem: Problem, price: Array) -> None:
    """Raise `DataError` if floors exhaust the resources that some user without a floor needs.

    Parameters
    ----------
    price : (users,), price of all tasks that a user could run alone; positive only if floors exhaust its resources
    """
    users = problem.polytope.users
    starved = users[(problem.criterion.floor[users] == 0) & (price > _ROUNDING * price.max(initial=0.0))]
    if len(starved):
        raise DataError(
            f"the floors exhaust what user {problem.cluster.users[starved[0]]!r} needs, who has no floor and must get "
            "tasks > 0 under this mechanism: choose lower floors",
            ("users", int(starved[0])),
        )


def met(polytope: Polytope, floor: Array) -> tuple[float, Array, Array]:
    r"""Bound by duality the factor t up to which the scaled floors t f are feasible, with floors f (users,).

    With the least cost :math:`p_n` of a task of user n, any prices prove that floors scaled by t are infeasible if

    .. math:: t > \sum_{ir} \lambda_{ir} c_{ir} \Big/ \sum_n p_n f_n.

    The bound is the smallest over the prices of max-min fairness with shares :math:`x_n / f_n`. Returns the bound, the
    parts :math:`p_n f_n / \sum_m p_m f_m` of the cost (users,), and the prices (users,) of all tasks that each user
    could run alone; without prices the bound is infinite, and the arrays are zero.
    """
    cluster, users, cost = polytope.cluster, polytope.users, np.zeros(len(floor))
    limits = np.zeros(cluster.shape[0])
    limits[users] = np.where(floor > 0, polytope.limit, 0.0)
    demanding = Polytope(cluster, limits)
    demanding_user = np.searchsorted(users, demanding.users)
    unit = np.ones(cluster.shape[0])
    unit[users[demanding_user]] = 1 / floor[demanding_user]
    rule = criterion(cluster, unit, np.inf, "servers", np.ones(len(unit)))
    try:
        price_vectors = Leximin(demanding, rule).prices()
    except SolverError:
        return np.inf, cost, cost
    part, price = np.inf, cost
    for vector in price_vectors:
        rows = demanding.row_prices(vector)
        least = np.minimum.reduceat(demanding.price_per_task(rows), demanding.start[:-1]) * floor[demanding_user]
        if (total := float(least.sum())) > 0 and (bound := float(rows.sum()) / total) < part:
            part, cost = bound, np.zeros(len(floor))
            cost[demanding_user] = least / total
            price = np.full(len(floor), np.inf)
            np.minimum.at(price, polytope.pair_user, polytope.price_per_task(polytope.row_prices(vector)))
    return part, cost, price * polytope.reach
