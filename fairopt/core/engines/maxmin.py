"""The native engine of lexicographic max-min: water filling where servers do not interact, else all levels by faces.

Where neither is good enough and the cluster is small, it is solved without rounding (`rational`).

Water filling, of one pool or of every server on its own, is exact, with no solver at all. All levels rise together
(`core.filling`); a user comes in where the level reaches its floor, which is set aside for it from the beginning.

Last digits: every user exactly at its level, everything with a price exactly used up. A level's interior point keeps to
the levels before it as well as its gap asks for. That is enough to see who rises and who stands still, and too little
for users whose tasks cost next to nothing beside the others': what others leave idle by rounding may be a large part of
theirs. So, once all levels y_n are known, y is moved as little as possible,

    minimise sum_ni delta_ni^2 / y_ni   s.t.   sum_i (y + delta)_ni = level_n,   sum_n use_nir (y + delta)_ni = 1

over pairs with tasks and rows (i, r) with a price in some level: one linear system in a multiplier per user and row.

Floors that cannot be met together: prices prove that, and each user's part in it. At prices lambda >= 0, with `p_n` the
least cost of a task of n, every feasible x has `sum p_n x_n <= sum lambda c`. Floors that cost more than that cannot be
met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...base import clock
from ...base.errors import DataError, SolverError
from ...base.libraries import sp, sparse_linalg
from ...certificates.backward import log_price_per_task
from ...model._arrays import Array, Mask, by_group, in_tables
from ...model.criterion import Criterion, check_floor_scope, criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from .. import filling, welfare
from ..leximin import Leximin
from ..solution import Run, Solution

#: Users on servers that are filled together.
_TABLE = 20_000
#: What is likely at infinity is seen at this alpha, to so much; pairs are left out whose part is so much smaller than
#: what they are too dear by.
_LARGE, _ROUGHLY, _DEAR = 128.0, 1.0, 0.1


def filled(polytope: Polytope, criterion: Criterion) -> Array:
    """The lexicographic maximum on every server on its own, (all users, servers), in tasks.

    Limits are kept where there is one server; in the scope `per_server` servers keep none but zero.
    """
    cluster, users = polytope.cluster, polytope.users
    result = np.zeros(cluster.shape[:2])
    order, ends = by_group(polytope.pair_server, cluster.shape[1])
    for servers, pairs, there in in_tables(order, ends, _TABLE):
        member = polytope.pair_user[pairs]
        who = users[member]
        share = criterion.share[who] if criterion.share.ndim == 1 else criterion.share[who, servers[:, None]]
        # In parts of what each user could run here alone, so that all numbers are of one size.
        alone = polytope.gamma[pairs]
        gain = criterion.weight[who] / share / alone
        room = np.full(alone.shape, np.inf) if criterion.scope == "per_server" else polytope.limit[member] / alone
        use = polytope.pair_use[pairs] * there[:, :, None]
        floor = np.where(there, criterion.floor[who] / alone, 0.0)
        left = np.maximum(1 - np.matmul(floor[:, None], use)[:, 0], 0.0)[:, None]
        room = np.where(((use > 0) & (left == 0)).any(axis=2) | ~there, 0.0, np.maximum(room - floor, 0.0))
        use = np.divide(use, left, out=np.zeros(use.shape), where=left > 0)
        tasks = (floor + filling.filled(gain, use, floor, room)) * alone
        result[who[there], np.broadcast_to(servers[:, None], who.shape)[there]] = tasks[there]
    return result


#: What the reader should know of an answer that is not the interior point's.
_NOTE = "solved in rational arithmetic: numbers differ by too many decades for the usual one"


def solutions(problem: Problem) -> Iterator[Solution]:
    """Answers to a max-min criterion, for a judge to take the first good one."""
    start, criterion, polytope = clock.now(), problem.criterion, problem.polytope
    if criterion.scope == "per_server" or len(problem.cluster.servers) == 1:
        tasks = filled(polytope, criterion)
        run = Run("water filling", clock.now() - start)
        yield Solution(tasks, None, "native", (run,), rounds=1, status="exact")
    else:
        levels = None
        try:
            with np.errstate(all="ignore"):
                levels = Leximin(polytope, criterion, None if criterion.floor.any() else partial(_likely, problem))
                prices = levels.prices()
        except SolverError:
            pass
        if levels is not None:
            status = "levels with weak proofs" if levels.gap > 1e-6 else "converged"
            for tasks in _tasks(levels):
                run = Run("interior point", clock.now() - start)
                yield Solution(tasks, prices, "native", (run,), rounds=levels.steps, status=status)
                start = clock.now()
    yield from _exact(problem)


def _likely(problem: Problem) -> Mask:
    """Pairs (pairs,) that have tasks at a large alpha, about: what they have exceeds what they are too dear by."""
    steep = Problem(problem.cluster, replace(problem.criterion, alpha=_LARGE))
    found = welfare.run(steep, _ROUGHLY)
    polytope, tasks = steep.polytope, found.fractions * steep.polytope.gamma
    part = tasks / polytope.user_tasks(found.fractions)[polytope.pair_user]
    cost = log_price_per_task(polytope, found.log_rows)
    dear = cost - np.minimum.reduceat(cost, polytope.start[:-1])[polytope.pair_user]
    return np.asarray(~(part < _DEAR * dear))


def _tasks(levels: Leximin) -> Iterator[Array]:
    """The tasks of levels, with last digits and without: first with them where later levels may have lost some."""
    made: list[Callable[[], Array | None]] = [levels.tasks, lambda: restored(levels)]
    for make in made if len(levels.stages) == 1 else reversed(made):
        with np.errstate(all="ignore"):
            tasks = make()
        if tasks is not None:
            yield tasks


def _exact(problem: Problem) -> Iterator[Solution]:
    """Without rounding, where the cluster is small enough for that and servers interact."""
    from ...certificates import rational

    start, criterion = clock.now(), problem.criterion
    whole = None if criterion.scope == "per_server" else rational.leximin(problem.cluster, criterion, problem.limits)
    if whole is None:
        return
    tasks, prices = whole.tasks.astype(float), whole.prices.astype(float)
    run = Run("rational simplex", clock.now() - start)
    yield Solution(tasks, prices, "native", (run,), 0.0, 1, "exact", (_NOTE,))


#: Pairs with less than this part of a user's level have none; rows are full that are used up to within the second, and
#: have the third of the prices of some level.
_NOTHING, _FULL, _PRICED = 1e-14, 1e-6, 1e-12
#: Added to the diagonal, relatively: equations may depend on each other. Parts may move by less than the second.
_REGULAR, _FAR = 1e-12, 0.5


def restored(levels: Leximin) -> Array | None:
    """The tasks (all users, servers) of levels with their last digits; None if no small change gives them."""
    polytope, level = levels.polytope, levels.level
    amounts = levels.amounts()
    pairs = np.flatnonzero(amounts > _NOTHING * level[polytope.pair_user])
    user, amount, of_row = polytope.pair_user[pairs], amounts[pairs], levels.pairs.matrix[pairs].T
    of_user = sp.csr_matrix((1 / level[user], (user, np.arange(len(pairs)))), (len(level), len(pairs)))
    full, priced = np.abs(of_row @ amount - 1) < _FULL, np.zeros(levels.inverse.shape, dtype=bool)
    for stage in levels.stages:
        priced[stage.servers] |= stage.prices > _PRICED * np.abs(stage.prices).sum()
    equations = sp.vstack([of_user, of_row.tocsr()[np.flatnonzero(full & priced.ravel())]], format="csr")
    matrix = sp.csc_matrix(equations @ sp.diags(amount) @ equations.T)
    try:
        factors = sparse_linalg.splu((matrix + sp.diags(_REGULAR * matrix.diagonal())).tocsc())
    except (RuntimeError, MemoryError):
        return None
    moved = amount
    for _ in range(4):
        moved = moved + amount * (equations.T @ factors.solve(1 - equations @ moved))
    if not np.abs(moved / amount - 1).max(initial=0.0) < _FAR:
        return None
    fractions = np.zeros(len(amounts))
    fractions[pairs] = moved * levels.tasks_per_level[user] / polytope.gamma[pairs]
    return polytope.allocation(polytope.inside(fractions))


#: By what part floors may cost more than there is.
_ROUNDING = 1e-9
#: Most users who are named, and which part of the cost of all they have at least.
_NAMED, _MUCH = 3, 0.05


def check_floors(problem: Problem) -> None:
    """`DataError` for floors that cannot be met together: who asks for too much, and what part of them could be met.

    Also for floors of a game, which `criterion` refuses, and `dataclasses.replace` of a criterion does not.
    """
    cluster, rule = problem.cluster, problem.criterion
    if not rule.floor.any():
        return
    check_floor_scope(rule.scope)
    without = np.setdiff1d(np.flatnonzero(rule.floor), problem.polytope.users)
    if len(without):
        n = int(without[0])
        raise DataError(
            f"user {cluster.users[n]!r} has a floor of {rule.floor[n]:g} tasks and can run nothing: give it a server "
            "to run on, or no floor",
            ("users", n),
        )
    # A partition by weight is feasible.
    partition = rule.weight / rule.weight.sum() * cluster.gamma.sum(axis=1)
    if (rule.floor <= partition).all():
        return
    part, cost, price = met(problem.polytope, rule.floor[problem.polytope.users])
    if part >= 1 - _ROUNDING:
        if part <= 1 + _ROUNDING and not rule.starves:
            _check_rest(problem, price)
        return
    part *= 1 - 5e-6  # not rounded up to what cannot be met
    order = np.argsort(-cost, kind="stable")[:_NAMED]
    users = cluster.users
    most = [f"{users[problem.polytope.users[n]]!r} for {cost[n]:.0%}" for n in order if cost[n] >= _MUCH]
    raise DataError(
        f"the floors cannot be met together, at most {part:.6g} of each: of what all of them would cost, user "
        f"{', '.join(most)}. Choose floors of at most {part:.6g} of these, or drop some of theirs"
    )


def _check_rest(problem: Problem, price: Array) -> None:
    """`DataError` if floors take all there is of what somebody without a floor needs."""
    users = problem.polytope.users
    poor = users[(problem.criterion.floor[users] == 0) & (price > _ROUNDING * price.max(initial=0.0))]
    if len(poor):
        raise DataError(
            f"the floors leave nothing to user {problem.cluster.users[poor[0]]!r}, who has none and must have "
            "something: choose lower ones",
            ("users", int(poor[0])),
        )


def met(polytope: Polytope, floor: Array) -> tuple[float, Array, Array]:
    """A proved bound on the part of all floors (users,) that can be met, each one's part of their cost, and prices.

    Prices (users,) are those of all tasks that a user could run. The part is the lowest level of max-min among those
    who have floors, in units of these; infinite where it was not found.
    """
    cluster, users, cost = polytope.cluster, polytope.users, np.zeros(len(floor))
    limits = np.zeros(cluster.shape[0])
    limits[users] = np.where(floor > 0, polytope.limit, 0.0)
    demanding = Polytope(cluster, limits)
    who = np.searchsorted(users, demanding.users)
    unit = np.ones(cluster.shape[0])
    unit[users[who]] = 1 / floor[who]
    rule = criterion(cluster, unit, np.inf, "servers", np.ones(len(unit)))
    try:
        with np.errstate(all="ignore"):
            proofs = Leximin(demanding, rule).prices()
    except SolverError:
        return np.inf, cost, cost
    part, price = np.inf, cost
    for proof in proofs:
        rows = demanding.row_prices(proof)
        least = np.minimum.reduceat(demanding.price_per_task(rows), demanding.start[:-1]) * floor[who]
        if (total := float(least.sum())) > 0 and (bound := float(rows.sum()) / total) < part:
            part, cost = bound, np.zeros(len(floor))
            cost[who] = least / total
            price = np.full(len(floor), np.inf)
            np.minimum.at(price, polytope.pair_user, polytope.price_per_task(polytope.row_prices(proof)))
    return part, cost, price * polytope.reach
