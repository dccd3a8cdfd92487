"""A step of `few_prices`: predictor, corrector and Gondzio's correctors; users are eliminated, prices remain.

c_ni - pay_n - z_ni = 0 (pairs)        x_ni z_ni = mu m_n       c_ni: what a task costs at prices lambda
sum_i x_ni = demand_n(pay_n) (users)
use_ir + w_ir = 1 (capacities)         lambda_ir w_ir = mu R_ir
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...linalg import _pairs, gondzio
from .market import Market
from .options import OPTIONS, StepOptions
from .point import FewPricesPoint, Weights

Array = NDArray[np.float64]


class FewPricesStep:
    """The equations at one point, linearised."""

    def __init__(
        self, market: Market, at: FewPricesPoint, weights: Weights, options: StepOptions = OPTIONS.step
    ) -> None:
        self.market, self.at, self.weights, self.options = market, at, weights, options
        self.of_pair = weights.user[market.user]
        self.mu = self._mean(at)
        self.width = float(np.sqrt(self.mu))
        self.cost = market.cost(at.price)
        self.demand, self.part = market.demand(at.user_price, self.width)
        self.extra = market.stiffness(self.demand, self.part, at.user_price)
        self.off_cost = self.cost - at.slack - at.user_price[market.user]
        self.off_tasks = market.summed(at.tasks) - self.demand
        self.off_use = np.where(market.row, market.used(at.tasks) + at.idle - 1, 0.0)
        missed = np.abs(self.off_tasks / self.demand)
        #: By how much demand and use are missed, as parts: the mean over users, and the largest over capacities.
        self.missed = max(float(missed.mean()), float(np.abs(self.off_use).max()))
        self.farthest = float(missed.max())

    def taken(self) -> FewPricesPoint:
        """The next point."""
        market, at, options = self.market, self.at, self.options
        self.slope = at.tasks / at.slack
        self.whole = self.extra + market.summed(self.slope)
        diagonal = market.per_price(at.idle, at.price)
        self.factors = market.factors(self.slope, self.extra, diagonal, options.factors)
        aim = self._direction(-at.tasks * at.slack, -at.price * at.idle)
        t = self.longest(aim)
        most = options.most_target if t > options.short else options.poor_target
        target = min(max((self._mean(self._along(aim, t)) / self.mu) ** 3, options.least_target), most)
        target = self.mu * max(target, min(options.most_target, self.missed))
        # Bends of demand are as wide as the root of mu: on narrow ones those who are far off go to and fro.
        target = max(target, min(options.most_target * self.mu, options.curvature * self.farthest))
        pair = target * self.of_pair - at.tasks * at.slack - aim.tasks * aim.slack
        price = target * self.weights.price - at.price * at.idle - aim.price * aim.idle
        step = self._direction(pair, price, self._bend(aim))

        def retried(step: FewPricesPoint, lengths: gondzio.Lengths) -> FewPricesPoint:
            return step + self._direction(*self._beyond(step, lengths[0], target), repair=False)

        step, (t,) = gondzio.corrected(step, retried, lambda each: (self.longest(each),), options.correctors)
        if t < 1:
            t *= max(options.part, 1 - max(target, options.closest)) if t > options.full else options.part
        there = self._floored(step, t, target)
        return self._in_order(there) if self.mu > options.ordered else there

    def _direction(self, pair: Array, price: Array, bend: Array | float = 0.0, repair: bool = True) -> FewPricesPoint:
        """The step that changes products by so much, and with `repair` puts the other equations right."""
        market, at, users = self.market, self.at, len(self.whole)
        idle, free, sums = market.per_price(price, at.price), np.empty(users), np.empty(users)
        off_cost = self.off_cost if repair else np.zeros(len(pair))
        wanted = bend - self.off_tasks if repair else np.zeros(users)
        rhs = np.where(market.row, idle + self.off_use, 0.0) if repair else idle.copy()
        given = market.start, market.server, market.vectors
        _pairs.pushed(*given, self.slope, at.slack, pair, off_cost, wanted, self.whole, sums, free, rhs)
        prices = market.solved(self.factors, rhs)
        _pairs.weighted_cost(*given, self.slope, prices, sums)
        user_price = free + sums / self.whole
        tasks, slack, use = np.empty(len(pair)), np.empty(len(pair)), np.zeros(market.row.shape)
        _pairs.back(*given, prices, user_price, off_cost, at.tasks, at.slack, pair, tasks, slack, sums, use)
        idle = idle - market.per_price(at.idle * prices, at.price)
        return FewPricesPoint(prices, idle, tasks, slack, user_price)

    def longest(self, step: FewPricesPoint) -> float:
        """The longest step, at most 1, that leaves nothing negative and lets no pay fall too far."""
        at, row, options = self.at, self.market.row, self.options
        elastic = (self.part > options.elastic) & (at.user_price > 0)
        groups = (
            (at.tasks, step.tasks),
            (at.slack, step.slack),
            (at.price[row], step.price[row]),
            (at.idle[row], step.idle[row]),
            (options.user_price * at.user_price[elastic], step.user_price[elastic]),
        )
        return min(float(_pairs.longest(values, change)) for values, change in groups)

    def _mean(self, at: FewPricesPoint) -> float:
        """The mean product over its weight."""
        row = self.market.row
        pairs = float((at.tasks * at.slack / self.of_pair).sum())
        rows = float((at.price[row] * at.idle[row] / self.weights.price[row]).sum())
        return (pairs + rows) / (len(at.tasks) + int(row.sum()))

    def _along(self, step: FewPricesPoint, t: float) -> FewPricesPoint:
        names = "price", "idle", "tasks", "slack", "user_price"
        return FewPricesPoint(*(getattr(self.at, name) + t * getattr(step, name) for name in names))

    def _bend(self, step: FewPricesPoint) -> Array:
        """By how much demand after a step exceeds its tangent, (users,), where pay changes by less than all of it."""
        user_price = self.at.user_price
        near = np.abs(step.user_price) < self.options.user_price * np.abs(user_price)
        there, _ = self.market.demand(np.where(near, user_price + step.user_price, user_price), self.width)
        bend = np.where(near, there - self.demand + self.extra * step.user_price, 0.0)
        return np.asarray(np.clip(bend, -self.options.bend * self.demand, self.options.bend * self.demand))

    def _beyond(self, step: FewPricesPoint, far: float, target: float) -> tuple[Array, Array]:
        """What brings products after a step `far` back to within multiples of the target."""
        there, options = self._along(step, far), self.options.correctors
        pair = gondzio.beyond(there.tasks * there.slack / self.of_pair, target, options) * self.of_pair
        price = gondzio.beyond(there.price * there.idle / self.weights.price, target, options) * self.weights.price
        return pair, np.where(self.market.row, price, 0.0)

    def _floored(self, step: FewPricesPoint, t: float, target: float) -> FewPricesPoint:
        """The point after a part t of a step: nothing is 0 by cancellation, nor what they pay who have no limit."""
        there, at, row, options = self._along(step, t), self.at, self.market.row, self.options
        least = options.floor * (1 - min(t, options.whole))
        tasks = np.maximum(there.tasks, least * at.tasks)
        slack = np.maximum(there.slack, least * at.slack)
        slack = np.maximum(slack, options.least_product * target * self.of_pair / tasks)
        price = np.where(row, there.price, 0.0)
        idle = np.maximum(there.idle, self.market.per_price(options.least_product * target * self.weights.price, price))
        endless = np.isinf(self.market.log_limit)
        user_price = np.where(
            endless, np.maximum(there.user_price, (1 - options.user_price) * at.user_price), there.user_price
        )
        return FewPricesPoint(price, np.where(row, idle, 1.0), tasks, slack, user_price)

    def _in_order(self, at: FewPricesPoint) -> FewPricesPoint:
        """The point with users in order by themselves whose tasks miss what they buy by much: they stop all others."""
        from . import _demand

        market = self.market
        demand, _ = market.demand(at.user_price, self.width)
        chosen = np.abs(market.summed(at.tasks) / demand - 1) > self.options.missed
        if not chosen.any():
            return at
        tasks, slack, user_price = at.tasks.copy(), at.slack.copy(), at.user_price.copy()
        given = market.log_marginal, market.alpha, market.log_limit, self.width
        weight = self.mu * self.weights.user
        _demand.ordered(market.start, market.cost(at.price), weight, *given, chosen, tasks, slack, user_price)
        return replace(at, tasks=tasks, slack=slack, user_price=user_price)
