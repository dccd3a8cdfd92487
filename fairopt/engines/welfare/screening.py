"""Column screening in the welfare programs.

A pair has `x = mu/z` tasks, which is next to nothing once its slack z is many times what is left of the gap. Such pairs
are screened out: their slacks follow from prices, and the tasks that they have together are on their way to none, in
the same steps. A pair takes part again when prices come near to making it worth it, and no step goes beyond that point.
Where a user has 500 servers, 60 are left when the gap is 1e-4; the others cost a look at every step instead of twenty.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...model._pointers import row_pointers
from ..linalg import column_screening as rule
from ..linalg.column_screening import OPTIONS, ScreeningOptions
from .conditions import Welfare
from .point import Point, Rest

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class _Everything:
    """All pairs of a polytope, whose costs are products of what users need and what servers ask."""

    start: Index  # (users + 1,)
    server: Index  # (pairs,)
    need: Array  # (users, resources), per unit of tasks
    ask: Array  # (servers, resources), per unit of a resource

    @classmethod
    def at(cls, welfare: Welfare, price: Array) -> _Everything:
        polytope = welfare.polytope
        need = polytope.cluster.demand[polytope.users] * welfare.unit[:, None]
        return cls(polytope.start, polytope.pair_server, need, _per_unit(welfare, price))


def _per_unit(welfare: Welfare, of_whole: Array) -> Array:
    """Values per part of a capacity as values per unit, (servers, resources)."""
    capacity = welfare.polytope.cluster.capacity
    return np.divide(of_whole, capacity, out=np.zeros(of_whole.shape), where=welfare.row)


def screened(
    welfare: Welfare, at: Point, mu: float, gap: float, options: ScreeningOptions = OPTIONS
) -> tuple[Welfare, Point]:
    """The same point with the pairs that matter now; `mu` is the mean product, `gap` relative to what is spent."""
    from . import _screening

    pairs = welfare.polytope.pair_user
    user = pairs if welfare.remainder is None else pairs[welfare.remainder.inside]
    far = rule.far(gap, options) * at.user_price
    cost = welfare.cost(at.price)
    # What is not a number stays, for who comes next to notice.
    dear = np.minimum(cost - at.user_price[user], at.slack) >= far[user]
    kept = rule.staying(dear & (at.tasks <= options.little * at.total[user]), welfare.start, user)
    fresh = np.zeros(0, dtype=np.intp)
    if welfare.remainder is not None:
        every = _Everything.at(welfare, at.price)
        given = every.start, every.server, every.need, every.ask, at.user_price
        marked = welfare.remainder.called.copy()
        _screening.near(*given, welfare.remainder.aside, options.nearer * far, marked)
        fresh = np.flatnonzero(marked)
    if len(fresh):
        kept[:] = True
    elif not rule.worthwhile(kept, options):
        return welfare, at
    return _with(welfare, at, kept, fresh, mu, options.back)


def _with(
    welfare: Welfare, at: Point, kept: NDArray[np.bool_], fresh: Index, mu: float, back: float
) -> tuple[Welfare, Point]:
    """Of the pairs that took part only those `kept`, and `fresh` ones besides."""
    polytope, remainder = welfare.polytope, welfare.remainder
    inside = np.arange(len(polytope.gamma)) if remainder is None else remainder.inside
    screened_out = np.where(kept, 0.0, at.tasks)
    sums, use = welfare.summed(screened_out), welfare.used(screened_out)
    if remainder is not None:
        sums, use = sums + at.remainder * remainder.sums, use + at.remainder * remainder.use
    user = polytope.pair_user[fresh]
    slack = (polytope.pair_use[fresh] * at.price[polytope.pair_server[fresh]]).sum(axis=1)
    slack = slack * welfare.unit[user] / polytope.gamma[fresh] - at.user_price[user]
    slack = np.maximum(slack, np.finfo(float).tiny)
    tasks = np.minimum(mu / slack, back * at.total[user])
    where = np.searchsorted(inside[kept], fresh)
    inside = np.insert(inside[kept], where, fresh)
    other = copy(welfare)
    other.__dict__.pop("pairs", None)
    aside = np.ones(len(polytope.gamma), dtype=bool)
    aside[inside] = False
    other.remainder = Rest(inside, aside, np.zeros(len(aside), dtype=bool), sums, use)
    other.start = row_pointers(polytope.pair_user[inside], len(welfare.unit))
    other.server = polytope.pair_server[inside]
    per_task = welfare.unit[polytope.pair_user[inside]] / polytope.gamma[inside]
    other.per_task = polytope.pair_use[inside] * per_task[:, None]
    tasks, slack = np.insert(at.tasks[kept], where, tasks), np.insert(at.slack[kept], where, slack)
    return other, replace(at, tasks=tasks, slack=slack, remainder=1.0)


def whole(welfare: Welfare, at: Point, mu: float) -> Point:
    """The point with all pairs, those that are screened out having what `mu` gives them."""
    if welfare.remainder is None:
        return at
    every, user = _Everything.at(welfare, at.price), welfare.polytope.pair_user
    slack = (every.need[user] * every.ask[every.server]).sum(axis=1) - at.user_price[user]
    tasks = mu / np.maximum(slack, np.finfo(float).tiny)
    slack[welfare.remainder.inside], tasks[welfare.remainder.inside] = at.slack, at.tasks
    return replace(at, tasks=tasks, slack=slack, total=np.add.reduceat(tasks, every.start[:-1]), remainder=0.0)


def longest(welfare: Welfare, at: Point, step: Point, options: ScreeningOptions = OPTIONS) -> float:
    """The longest step, at most 1, after which no pair that is screened out is cheaper than what its user pays.

    Pairs that stop it, or nearly, are called back.
    """
    from . import _screening

    if welfare.remainder is None:
        return 1.0
    every = _Everything.at(welfare, at.price)
    given = (
        every.start,
        every.server,
        every.need,
        every.ask,
        _per_unit(welfare, step.price),
        at.user_price,
        step.user_price,
    )
    rate = float(_screening.fastest(*given, welfare.remainder.aside, options.soon, welfare.remainder.called))
    return rule.longest(rate, options)
