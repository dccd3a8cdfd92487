"""What is active in lexicographic max-min: levels, and the prices that prove them (`certificates.leximin`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..certificates.backward import log_price_per_task
from ..certificates.leximin import by_level, kept, proved, rise_and_prices
from ..core.first_order import Active, Prices, parts
from ..core.settled import ZERO
from ..errors import SolverError
from ..model import polytope as polytopes
from ..model.criterion import Criterion
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def leximin(polytope: Polytope, criterion: Criterion, tasks: Array, hint: Array | None) -> Active:
    """The active set of a max-min answer `tasks` (all users, servers); `hint` prices (levels, servers, resources).

    Raises
    ------
    SolverError
        No prices prove the levels to seven digits.
    """
    user, first = polytope.pair_user, polytope.start[:-1]
    x = tasks[polytope.users[user], polytope.pair_server]
    total = np.add.reduceat(x, first)
    level = criterion.restrict(polytope.users).levels(total)
    limited = total >= polytope.limit * (1 - ZERO)
    sets, blocked = _prices(polytope, tasks, total, level, limited, hint)
    part = x / total[user]
    pairs, priced = part > ZERO, np.zeros(len(polytope.row_server), dtype=bool)
    slack = np.zeros(len(x))
    for rows in sets:
        whole = polytope.price_per_task(rows) * total[user]
        least = np.minimum.reduceat(whole, first)[user]
        slack = np.maximum(slack, (whole - least) / np.where(least > ZERO * rows.sum(), least, max(rows.sum(), 1e-300)))
        priced |= rows > ZERO * rows.max(initial=0.0)
    # How much dearer pairs with a thousandth of a user's tasks are than need be says how well prices are known.
    weak = ~pairs & (slack <= max(ZERO, float(slack[part > 1e-3].max(initial=0.0))))
    prices = []
    for rows in sets:
        cheap = (pairs | weak) & (polytope.price_per_task(rows) * polytope.gamma > ZERO * rows.max(initial=0.0))
        cheap &= np.bincount(user[cheap], minlength=len(total))[user] > 1
        with np.errstate(divide="ignore"):
            log_rows = np.log(rows)
            prices.append(Prices(log_rows, log_price_per_task(polytope, log_rows), cheap))
    return Active(
        polytope,
        criterion,
        total,
        np.where(pairs, part, 0.0),
        pairs,
        weak,
        priced,
        ~priced & (1 - polytope.used(tasks) <= ZERO),
        limited,
        np.zeros(len(total), dtype=bool),
        blocked,
        _groups(polytope, level),
        np.ones(len(total), dtype=bool),
        tuple(prices),
    )


def _groups(polytope: Polytope, level: Array) -> NDArray[np.intp]:
    """Users of one level who take from each other wherever they may, whether or not they do now."""
    rank = np.empty(len(level), dtype=np.intp)
    for g, members in enumerate(by_level(level)):
        rank[members] = g
    both = np.column_stack([rank, parts(polytope)[polytope.users]])
    return np.asarray(np.unique(both, axis=0, return_inverse=True)[1].ravel())


def _prices(
    polytope: Polytope, tasks: Array, total: Array, level: Array, limited: Mask, hint: Array | None
) -> tuple[list[Array], Mask]:
    """Prices of whole capacities (rows,) that prove who is held by capacity, and who is, (users,)."""
    floor, groups = np.zeros(len(total)), by_level(level)
    sets, blocked = [], np.zeros(len(total), dtype=bool)
    for unit in [] if hint is None else list(hint):
        holds = proved(polytope, tasks, groups, unit[None], floor).rise <= ZERO
        if holds.any():
            sets.append(polytope.row_prices(np.nan_to_num(np.maximum(unit, 0.0), posinf=0.0)))
            blocked |= holds
    for group in groups if len(polytope.gamma) <= polytopes.OPTIONS.large else []:
        hungry = group[~limited[group] & ~blocked[group]]
        if len(hungry):
            rows = rise_and_prices(polytope, total, kept(level <= level[group].max(), total, floor), hungry)[1]
            if rows is not None:
                holds = proved(polytope, tasks, groups, polytope.unit_prices(rows)[None], floor).rise <= 10 * ZERO
                sets += [rows] if holds.any() else []
                blocked |= holds
    if (~blocked & ~limited).any():
        name = polytope.cluster.users[polytope.users[int((~blocked & ~limited).argmax())]]
        raise SolverError(
            f"no prices prove the level of user {name!r} to seven digits, so that nothing is known of how it moves: "
            "solve with a smaller tol, such as solve(cluster, tol=1e-9)"
        )
    return sets, blocked
