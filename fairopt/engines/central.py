"""Newton steps on the conditions of `welfare`: users are eliminated one by one, prices remain (`structured`).

With D = x/z, and H the slope of a user's tasks in what it pays, the prices' matrix is

    diag(w/lam) + sum_n [ sum_i D_i d_i d_i^T - (sum_i D_i d_i)(sum_i D_i d_i)^T / (H_n + sum_i D_i) ].

Steps of slacks come from the dual equation and never from the products: where z is small that would spoil the prices.
What elimination leaves wrong in the other equations is put right by refinement, on the full system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from . import structured
from .welfare import COUNTS, Point, Residuals, Welfare

Array = NDArray[np.float64]

#: Off the diagonal single precision is enough above this mu; below it pairs of little weight are left out.
_SINGLE, _LEAST_WEIGHT = 1e-6, 1e-6
_REFINEMENTS = 3


@dataclass(frozen=True)
class Products:
    """What `x z`, `lam w` and `v xi` should change by."""

    pair: Array
    capacity: Array
    limit: Array


class Newton:
    """The conditions at one point, linearised."""

    def __init__(self, welfare: Welfare, point: Point, mu: float, free: bool) -> None:
        self.welfare, self.point, self.mu, self.free = welfare, point, mu, free
        self.wrong = welfare.residuals(point)
        own = welfare.limited
        self.stiffness = np.maximum(welfare.of_share / point.total, 1e-60)
        self.stiffness[own] += point.excess / point.room
        self.stiffness[welfare.held] = 1e60
        self.slope = np.where(welfare.held, 0.0, welfare.of_price / (point.pay * self.stiffness))
        self.weight = point.tasks / point.slack
        self.whole = self.slope + welfare.summed(self.weight)
        #: Users whose tasks follow from their pairs rather than from what they pay.
        self.elastic = self.slope > 0.5 * self.whole

    @property
    def wrong_worth(self) -> float:
        """Largest error of what a task is worth, of users who count."""
        counts = self.welfare.spent(self.point) > COUNTS
        return float(np.abs(self.wrong.rho[counts]).max(initial=0.0))

    @cached_property
    def factors(self) -> structured.SymmetricFactors:
        """The prices' matrix, factorised."""
        q, at = self.welfare, self.point
        return structured.factor_symmetric(
            q.start,
            q.server,
            self.weight,
            q.per_task,
            self.slope,
            np.where(q.row, at.idle / np.where(q.row, at.price, 1.0), 1.0),
            least=0.0 if self.mu > _SINGLE else _LEAST_WEIGHT,
            single=self.mu > _SINGLE,
        )

    @cached_property
    def _by_theta(self) -> tuple[Array, Array, Array]:
        """Steps of prices, pay and totals per unit of theta."""
        from . import _pairs

        q = self.welfare
        rhs = np.zeros(q.row.shape)
        factor = 1 / self.stiffness / self.whole
        _pairs.gathered(q.start, q.server, q.per_task, np.zeros(len(q.server)), self.weight, factor, rhs)
        prices = self._prices(rhs)
        cost = self._cost(prices)
        pay = factor + cost / self.whole
        # H and sum D, of which one may be tiny: the sum of the pairs is the better one where H is large.
        total = np.where(self.elastic, (self.whole - self.slope) * pay - cost, 1 / self.stiffness - self.slope * pay)
        return prices, pay, total

    def _prices(self, rhs: Array) -> Array:
        rows = self.welfare.row
        return np.where(rows, self.factors.solve(np.where(rows, rhs, 0.0).ravel()).reshape(rows.shape), 0.0)

    def _cost(self, prices: Array) -> Array:
        from . import _pairs

        q, result = self.welfare, np.empty(len(self.slope))
        _pairs.weighted_cost(q.start, q.server, q.per_task, self.weight, prices, result)
        return result

    def step(self, products: Products, rho: Array) -> Point:
        """The Newton step for `products`, with `rho` for the users' equations."""
        wrong = replace(self.wrong, rho=rho)
        step = self._solve(wrong, products)
        none = Products(*(np.zeros_like(values) for values in (products.pair, products.capacity, products.limit)))
        before = np.inf
        for _ in range(_REFINEMENTS):
            left = self._left(wrong, step)
            size = max(
                float(np.abs(left.capacity).max()),
                float(np.abs(left.user / self.point.total).max()),
                float(np.abs(left.rho).max()),
            )
            if not size > 1e-3 * self.mu or not size < 0.5 * before:
                break
            before = size
            step = _sum(step, self._solve(left, none))
        return step

    def _left(self, wrong: Residuals, step: Point) -> Residuals:
        """What a step leaves of the linear equations; those of pairs and products are kept by construction."""
        q, at = self.welfare, self.point
        linear = q.of_share * step.total / at.total + q.of_price * step.pay / at.pay + q.excess(step) - step.theta
        return Residuals(
            np.zeros_like(wrong.pair),
            np.where(q.row, wrong.capacity + q.used(step.tasks) + step.idle, 0.0),
            wrong.user + q.summed(step.tasks) - step.total,
            np.zeros_like(wrong.limit),
            np.where(q.held, 0.0, wrong.rho + linear),
            self._unit_left(wrong.unit, step.total, step.pay) if self.free else 0.0,
        )

    def _unit_left(self, unit: float, total: Array, pay: Array) -> float:
        spent = self.point.pay * total + self.point.total * pay
        return unit - float(spent[~self.welfare.held].sum())

    def _solve(self, wrong: Residuals, products: Products) -> Point:
        from . import _pairs

        q, at, own = self.welfare, self.point, self.welfare.limited
        base = products.pair / at.slack - self.weight * wrong.pair
        shift = -wrong.rho / self.stiffness
        shift[own] -= (products.limit + at.excess * wrong.limit) / at.room / self.stiffness[own]
        free = (shift - wrong.user - q.summed(base)) / self.whole
        idle = products.capacity / np.where(q.row, at.price, 1.0)
        rhs = idle + wrong.capacity
        _pairs.gathered(q.start, q.server, q.per_task, base, self.weight, free, rhs)
        price = self._prices(rhs)
        cost = self._cost(price)
        pay = free + cost / self.whole
        theta = 0.0
        if self.free:
            by_price, by_pay, by_total = self._by_theta
            pairs = q.summed(base) + (self.whole - self.slope) * pay - cost
            total = np.where(self.elastic, wrong.user + pairs, shift - self.slope * pay)
            theta = self._unit_left(wrong.unit, total, pay) / -self._unit_left(0.0, by_total, by_pay)
            price = price + theta * by_price
            pay = pay + theta * by_pay
        tasks, slack = np.empty(len(q.server)), np.empty(len(q.server))
        sums = np.empty(len(pay))
        _pairs.back(
            q.start, q.server, q.per_task, price, pay, wrong.pair, at.tasks, at.slack, products.pair, tasks, slack, sums
        )
        total = np.where(self.elastic, wrong.user + sums, shift + theta / self.stiffness - self.slope * pay)
        room = -wrong.limit - total[own]
        excess = (products.limit - at.excess * room) / at.room
        idle = np.where(q.row, idle - at.idle * price / np.where(q.row, at.price, 1.0), 0.0)
        return Point(tasks, slack, price, idle, total, pay, room, excess, theta)


def _sum(one: Point, other: Point) -> Point:
    return Point(*(getattr(one, name) + getattr(other, name) for name in Point.__dataclass_fields__))
