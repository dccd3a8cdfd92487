"""Where `few_prices` starts: users are spread over all servers they can use, and prices clear that.

With products `x_ni (c_ni - pay_n) = m_n` held at what users turn over, everything follows from prices, which are found
by Newton's method on the dual function: convex, and with so large products as good as quadratic in logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...linalg.damped_newton import backtracked
from .market import Market
from .options import OPTIONS, StartOptions
from .point import FewPricesPoint

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Spread:
    """Users at prices, put in order one by one; `full` is the part of capacities in use, or idle as prices ask."""

    price: Array
    tasks: Array
    slack: Array
    user_price: Array
    full: Array


def even(market: Market, capacity: Array) -> tuple[Array, float]:
    """Prices of whole capacities (servers, resources), every unit of a resource costing the same; and the log of the
    factor with which users want what there is of the resource that they want most."""
    whole = np.maximum(capacity.sum(axis=0), np.finfo(float).tiny)
    price = np.where(market.row, capacity / whole, 0.0)
    first, cheapest = market.start[:-1], market.cheapest(market.cost(price))
    need = market.vectors[first] * (capacity / whole)[market.server[first]]
    low, high = -1000.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        tasks = np.exp(np.minimum((market.log_marginal - np.log(cheapest) - middle) / market.alpha, market.log_limit))
        low, high = (middle, high) if (tasks @ need).max() > 1 else (low, middle)
    return price, middle


def begin(market: Market, price: Array, options: StartOptions = OPTIONS.start) -> FewPricesPoint:
    """The point to start from, found from prices at which demand is about what there is."""
    cheapest = market.cheapest(market.cost(price))
    tasks, _ = market.demand(cheapest, 0.0)
    weight = options.spread * tasks * cheapest
    of_price = options.spread * np.sqrt(price * price.sum(axis=1, keepdims=True))
    here = _spread(market, price, weight, of_price, options)
    for _ in range(options.steps):
        if np.abs(np.log(here.full)).max() < options.near:
            break
        moved = _step(market, here, weight, of_price, options)
        if moved is None:
            break
        here = moved
    idle = np.where(market.row, np.maximum(1 - market.used(here.tasks), options.idle), 1.0)
    return FewPricesPoint(here.price, idle, here.tasks, here.slack, here.user_price)


def _spread(market: Market, price: Array, weight: Array, of_price: Array, options: StartOptions) -> _Spread:
    from . import _demand

    cost, user_price = market.cost(price), np.empty(len(weight))
    tasks, slack, every = np.empty(len(cost)), np.empty(len(cost)), np.ones(len(weight), dtype=bool)
    given = market.log_marginal, market.alpha, market.log_limit, np.sqrt(options.spread)
    _demand.ordered(market.start, cost, weight, *given, every, tasks, slack, user_price)
    full = np.where(market.row, market.used(tasks) + market.per_price(of_price, price), 1.0)
    return _Spread(price, tasks, slack, user_price, full)


def _step(market: Market, here: _Spread, weight: Array, of_price: Array, options: StartOptions) -> _Spread | None:
    """The point after a Newton step on logarithms, or on use itself where these lead uphill."""
    tasks, part = market.demand(here.user_price, np.sqrt(options.spread))
    extra = market.stiffness(tasks, part, here.user_price)
    diagonal = market.per_price(market.per_price(of_price, here.price), here.price)
    factors = market.factors(here.tasks / here.slack, extra, diagonal, OPTIONS.step.factors)
    step = market.solved(factors, here.full * np.log(here.full))
    slope = float(((1 - here.full) * step).sum())
    if not slope < 0:
        step = market.solved(factors, here.full - 1)
        slope = float(((1 - here.full) * step).sum())

    def attempt(t: float) -> _Spread | None:
        price = np.where(market.row, np.maximum(here.price + t * step, options.fall * here.price), 0.0)
        there = _spread(market, price, weight, of_price, options)
        rise = float(((1 - there.full) * (price - here.price)).sum())
        return there if rise <= -options.slope * slope * t else None

    return backtracked(attempt, 1.0, options.shorter, options.shortest)[0]
