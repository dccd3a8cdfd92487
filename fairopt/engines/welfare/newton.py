"""Newton steps on the conditions of `welfare`: `core.algebra` eliminates users, and prices remain.

With D = x/z, and H the slope of a user's tasks in what it pays, the prices' matrix is

    diag(w/lam) + sum_n [ sum_i D_i d_i d_i^T - (sum_i D_i d_i)(sum_i D_i d_i)^T / (H_n + sum_i D_i) ].

Steps of slacks come from the dual equation and never from the products: where z is small that would spoil the prices.
What elimination leaves wrong in the other equations is put right by refinement, on the full system.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.algebra import Equations
from ..linalg import _pairs
from ..linalg.conjugate_residuals import reduced
from .conditions import Welfare
from .options import OPTIONS, NewtonOptions
from .point import Point, Residuals

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Products:
    """What `x z` and `lam w` should change by."""

    pair: Array
    capacity: Array


@dataclass(frozen=True)
class Step(Point):
    """Changes of a point, with what those of tasks come to."""

    sums: Array = field(kw_only=True)  # (users,)
    use: Array = field(kw_only=True)  # (servers, resources)


class Newton:
    """The conditions at one point, linearised."""

    def __init__(
        self,
        welfare: Welfare,
        point: Point,
        mu: float,
        free: bool,
        single: bool = True,
        options: NewtonOptions = OPTIONS.newton,
    ) -> None:
        self.options = options
        self.welfare, self.point, self.mu, self.free = welfare, point, mu, free
        #: Is the matrix in single precision? Refinement finds out whether that is enough.
        self.single = single and mu > options.single
        self.marginal = welfare.marginal(point)
        self.residual = welfare.residuals(point, self.marginal)
        self.stiffness = np.maximum(self.marginal.of_share / point.total, 1e-60)
        self.slope = welfare.of_price / (point.user_price * self.stiffness)
        self.weight = point.tasks / point.slack
        self.among = welfare.summed(self.weight)  # the slope of tasks in pay, prices as they are
        self.whole = self.slope + self.among
        #: Users whose tasks follow from their pairs rather than from what they pay.
        self.elastic = self.slope > 0.5 * self.whole

    @property
    def residual_marginal(self) -> float:
        """Largest error of what a task is worth, of users who count."""
        counts = self.welfare.spent(self.point) > self.welfare.options.counts
        return float(np.abs(self.marginal.scale * self.residual.rho)[counts].max(initial=0.0))

    @cached_property
    def factors(self) -> Equations:
        """The prices' matrix, factorised."""
        q, at = self.welfare, self.point
        idle = np.where(q.row, at.idle / np.where(q.row, at.price, 1.0), np.inf)
        return Equations(q.pairs, self.weight, idle, self.slope, np.zeros(len(self.slope)), self.single)

    @cached_property
    def _by_units(self) -> list[tuple[Array, Array, Array]]:
        """Steps of prices, pay and totals per unit of welfare, and of what else is free."""
        return [self._by(unit) for unit in self.marginal.of_units]

    def _by(self, unit: Array) -> tuple[Array, Array, Array]:
        q = self.welfare
        rhs, shift = np.zeros(q.row.shape), unit / self.stiffness
        factor = shift / self.whole
        _pairs.gathered(q.start, q.server, q.per_task, self.weight, factor, rhs)
        prices = self._prices(rhs)
        cost = self._cost(prices)
        user_price = factor + cost / self.whole
        # H and sum D, of which one may be tiny: the sum of the pairs is the better one where H is large.
        total = np.where(self.elastic, self.among * user_price - cost, shift - self.slope * user_price)
        return prices, user_price, total

    def _prices(self, rhs: Array) -> Array:
        return self.factors.inverse(np.where(self.welfare.row, rhs, 0.0))

    def _cost(self, prices: Array) -> Array:
        q, result = self.welfare, np.empty(len(self.slope))
        _pairs.weighted_cost(q.start, q.server, q.per_task, self.weight, prices, result)
        return result

    def direction(self, products: Products) -> Step:
        """The Newton step, up to rounding: all equations put right, products changed, pairs aside left with nothing."""
        remainder, left, residual = self.welfare.remainder, self.point.remainder, self.residual
        if remainder is not None:
            residual = replace(
                residual, user=residual.user - left * remainder.sums, capacity=residual.capacity - left * remainder.use
            )
        return replace(self._solve(residual, products), remainder=-left)

    def corrected(self, step: Step, products: Products, rho: Array | None = None) -> Step:
        """A step that changes products by so much more, and is off by `rho` less in the users' equations."""
        right = self._right if rho is None else replace(self._right, rho=rho)
        return _sum(step, self._solve(right, products))

    @cached_property
    def _right(self) -> Residuals:
        """Nothing wrong."""
        residual = self.residual
        none = (np.zeros_like(residual.pair), np.zeros_like(residual.capacity), np.zeros_like(residual.user))
        return Residuals(*none, np.zeros_like(residual.rho), np.zeros_like(residual.units))

    def refined(self, step: Step, rho: Array) -> Step:
        """The step without what elimination and rounding left wrong; `rho` is for the users' equations."""
        residual = replace(self.residual, rho=rho)
        sufficient = self.options.sufficient * self.mu * len(self.weight) / len(self.slope)
        step, done = self._reduced(step, residual, sufficient)
        if not done and self.single:
            self.single = False
            del self.factors
            self.__dict__.pop("_by_units", None)
            step, _ = self._reduced(step, residual, sufficient)
        return step

    def _reduced(self, step: Step, residual: Residuals, sufficient: float) -> tuple[Step, bool]:
        """The step refined by the factors there are, and whether it leaves at most `sufficient`."""
        options = self.options.refinement
        return reduced(
            step, lambda found: self._left(residual, found), self._undone, self._effect, _sum, sufficient, options
        )

    def _undone(self, left: Array) -> Step:
        """The step, up to rounding, that puts right what is left."""
        at, users, rows = self.point, len(self.slope), self.point.price.size
        capacity, user, rho, units = np.split(left, [rows, rows + users, rows + 2 * users])
        residual = replace(self._right, capacity=capacity.reshape(at.price.shape), user=user * at.total)
        residual = replace(residual, rho=rho / self.marginal.scale)
        none = Products(self._right.pair, self._right.capacity)
        return self._solve(replace(residual, units=units * users), none)

    def _left(self, residual: Residuals, step: Step) -> Array:
        """What a step leaves of the equations of capacities, users, worth and units; the others are kept."""
        user = residual.user / self.point.total
        units = residual.units / len(user) if self.free else 0.0 * residual.units
        return np.concatenate(
            [residual.capacity.ravel(), user, self.marginal.scale * residual.rho, units]
        ) + self._effect(step)

    def _effect(self, step: Step) -> Array:
        q, at, marginal = self.welfare, self.point, self.marginal
        sums, use = step.sums, step.use
        if q.remainder is not None:
            sums, use = sums + step.remainder * q.remainder.sums, use + step.remainder * q.remainder.use
        linear = marginal.of_share * step.total / at.total + q.of_price * step.user_price / at.user_price
        for unit, change in zip(marginal.of_units, step.units, strict=True):
            linear -= unit * change
        units = q.change_units(at, step.total, step.user_price, step.units) if self.free else 0.0 * step.units
        return np.concatenate(
            [
                np.where(q.row, use + step.idle, 0.0).ravel(),
                (sums - step.total) / at.total,
                marginal.scale * linear,
                units / len(sums),
            ]
        )

    def _units(self, left: Array) -> Array:
        """The changes of units that undo what is `left` of their equations."""
        each = zip(self._by_units, np.eye(len(left)), strict=True)
        slopes = [self.welfare.change_units(self.point, total, user_price, one) for (_, user_price, total), one in each]
        try:
            return np.asarray(np.linalg.solve(np.transpose(slopes), -left))
        except np.linalg.LinAlgError:
            return np.full(len(left), np.nan)  # the run ends, as with every number that is none

    def _solve(self, residual: Residuals, products: Products) -> Step:
        q, at = self.welfare, self.point
        users, pairs = len(self.slope), len(q.server)
        shift = -residual.rho / self.stiffness
        idle = products.capacity / np.where(q.row, at.price, 1.0)
        rhs, base, free = idle + residual.capacity, np.empty(users), np.empty(users)
        given, errors = (q.start, q.server, q.per_task), (products.pair, residual.pair)
        _pairs.pushed(*given, self.weight, at.slack, *errors, shift - residual.user, self.whole, base, free, rhs)
        price = self._prices(rhs)
        cost = self._cost(price)
        user_price = free + cost / self.whole
        units = np.zeros(len(self.marginal.of_units))
        if self.free:
            summed = base + self.among * user_price - cost
            total = np.where(self.elastic, residual.user + summed, shift - self.slope * user_price)
            units = self._units(residual.units + q.change_units(at, total, user_price, units))
            for by, unit, change in zip(self._by_units, self.marginal.of_units, units, strict=True):
                price, user_price = price + change * by[0], user_price + change * by[1]
                shift = shift + change * unit / self.stiffness
        tasks, slack = np.empty(pairs), np.empty(pairs)
        sums, use = np.empty(users), np.zeros(q.row.shape)
        _pairs.back(
            *given, price, user_price, residual.pair, at.tasks, at.slack, products.pair, tasks, slack, sums, use
        )
        total = np.where(self.elastic, residual.user + sums, shift - self.slope * user_price)
        idle = np.where(q.row, idle - at.idle * price / np.where(q.row, at.price, 1.0), 0.0)
        return Step(tasks, slack, price, idle, total, user_price, units, sums=sums, use=use)


def _sum(one: Step, other: Step, part: float = 1.0) -> Step:
    return Step(**{name: getattr(one, name) + part * getattr(other, name) for name in Step.__dataclass_fields__})
