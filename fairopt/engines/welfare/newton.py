"""Newton steps on the conditions of `welfare`: users are eliminated one by one, prices remain (`structured`).

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

from ..linalg import structured
from ..linalg.conjugate_residuals import reduced
from .conditions import COUNTS, Welfare
from .point import Point, Residuals

Array = NDArray[np.float64]

#: Single precision is tried above the first mu; below the second, pairs of little weight are left out off the diagonal.
_SINGLE, _SPARSE, _LEAST_WEIGHT = 1e-8, 1e-6, 1e-6
#: What refinement may leave, as a part of what is left of the gap.
_ENOUGH = 1e-3


@dataclass(frozen=True)
class Products:
    """What `x z`, `lam w` and `v xi` should change by."""

    pair: Array
    capacity: Array
    limit: Array


@dataclass(frozen=True)
class Step(Point):
    """Changes of a point, with what those of tasks come to."""

    sums: Array = field(kw_only=True)  # (users,)
    use: Array = field(kw_only=True)  # (servers, resources)


class Newton:
    """The conditions at one point, linearised."""

    def __init__(self, welfare: Welfare, point: Point, mu: float, free: bool, single: bool = True) -> None:
        self.welfare, self.point, self.mu, self.free = welfare, point, mu, free
        #: Is the matrix in single precision? Refinement finds out whether that is enough.
        self.single = single and mu > _SINGLE
        self.worth = welfare.worth(point)
        self.wrong = welfare.residuals(point, self.worth)
        own = welfare.limited
        self.stiffness = np.maximum(self.worth.of_share / point.total, 1e-60)
        self.stiffness[own] += point.excess / point.room
        self.slope = welfare.of_price / (point.pay * self.stiffness)
        self.weight = point.tasks / point.slack
        self.among = welfare.summed(self.weight)  # the slope of tasks in pay, prices as they are
        self.whole = self.slope + self.among
        #: Users whose tasks follow from their pairs rather than from what they pay.
        self.elastic = self.slope > 0.5 * self.whole

    @property
    def wrong_worth(self) -> float:
        """Largest error of what a task is worth, of users who count."""
        counts = self.welfare.spent(self.point) > COUNTS
        return float(np.abs(self.worth.scale * self.wrong.rho)[counts].max(initial=0.0))

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
            least=(_LEAST_WEIGHT if self.mu < _SPARSE else 0.0) * self.slope,
            single=self.single,
        )

    @cached_property
    def _by_units(self) -> list[tuple[Array, Array, Array]]:
        """Steps of prices, pay and totals per unit of welfare, and of what else is free."""
        return [self._by(unit) for unit in self.worth.of_units]

    def _by(self, unit: Array) -> tuple[Array, Array, Array]:
        from ..linalg import _pairs

        q = self.welfare
        rhs, shift = np.zeros(q.row.shape), unit / self.stiffness
        factor = shift / self.whole
        _pairs.gathered(q.start, q.server, q.per_task, self.weight, factor, rhs)
        prices = self._prices(rhs)
        cost = self._cost(prices)
        pay = factor + cost / self.whole
        # H and sum D, of which one may be tiny: the sum of the pairs is the better one where H is large.
        total = np.where(self.elastic, self.among * pay - cost, shift - self.slope * pay)
        return prices, pay, total

    def _prices(self, rhs: Array) -> Array:
        rows = self.welfare.row
        return np.where(rows, self.factors.solve(np.where(rows, rhs, 0.0).ravel()).reshape(rows.shape), 0.0)

    def _cost(self, prices: Array) -> Array:
        from ..linalg import _pairs

        q, result = self.welfare, np.empty(len(self.slope))
        _pairs.weighted_cost(q.start, q.server, q.per_task, self.weight, prices, result)
        return result

    def direction(self, products: Products) -> Step:
        """The Newton step, up to rounding: all equations put right, products changed, pairs aside left with nothing."""
        rest, left, wrong = self.welfare.rest, self.point.rest, self.wrong
        if rest is not None:
            wrong = replace(wrong, user=wrong.user - left * rest.sums, capacity=wrong.capacity - left * rest.use)
        return replace(self._solve(wrong, products), rest=-left)

    def corrected(self, step: Step, products: Products, rho: Array | None = None) -> Step:
        """A step that changes products by so much more, and is off by `rho` less in the users' equations."""
        right = self._right if rho is None else replace(self._right, rho=rho)
        return _sum(step, self._solve(right, products))

    @cached_property
    def _right(self) -> Residuals:
        """Nothing wrong."""
        wrong = self.wrong
        none = (np.zeros_like(wrong.pair), np.zeros_like(wrong.capacity), np.zeros_like(wrong.user))
        return Residuals(*none, np.zeros_like(wrong.limit), np.zeros_like(wrong.rho), np.zeros_like(wrong.units))

    def refined(self, step: Step, rho: Array) -> Step:
        """The step without what elimination and rounding left wrong; `rho` is for the users' equations."""
        wrong = replace(self.wrong, rho=rho)
        enough = _ENOUGH * self.mu * len(self.weight) / len(self.slope)
        step, done = reduced(step, lambda found: self._left(wrong, found), self._undone, self._effect, _sum, enough)
        if not done and self.single:
            self.single = False
            del self.factors
            self.__dict__.pop("_by_units", None)
            step, _ = reduced(step, lambda found: self._left(wrong, found), self._undone, self._effect, _sum, enough)
        return step

    def _undone(self, left: Array) -> Step:
        """The step, up to rounding, that puts right what is left."""
        at, users, rows = self.point, len(self.slope), self.point.price.size
        capacity, user, rho, units = np.split(left, [rows, rows + users, rows + 2 * users])
        wrong = replace(self._right, capacity=capacity.reshape(at.price.shape), user=user * at.total)
        wrong = replace(wrong, rho=rho / self.worth.scale)
        none = Products(self._right.pair, self._right.capacity, self._right.limit)
        return self._solve(replace(wrong, units=units * users), none)

    def _left(self, wrong: Residuals, step: Step) -> Array:
        """What a step leaves of the equations of capacities, users, worth and units; the others are kept."""
        user = wrong.user / self.point.total
        units = wrong.units / len(user) if self.free else 0.0 * wrong.units
        return np.concatenate([wrong.capacity.ravel(), user, self.worth.scale * wrong.rho, units]) + self._effect(step)

    def _effect(self, step: Step) -> Array:
        q, at, worth = self.welfare, self.point, self.worth
        sums, use = step.sums, step.use
        if q.rest is not None:
            sums, use = sums + step.rest * q.rest.sums, use + step.rest * q.rest.use
        linear = worth.of_share * step.total / at.total + q.of_price * step.pay / at.pay + q.excess(step)
        for unit, change in zip(worth.of_units, step.units, strict=True):
            linear -= unit * change
        units = q.change_units(at, step.total, step.pay, step.units) if self.free else 0.0 * step.units
        return np.concatenate(
            [
                np.where(q.row, use + step.idle, 0.0).ravel(),
                (sums - step.total) / at.total,
                worth.scale * linear,
                units / len(sums),
            ]
        )

    def _units(self, left: Array) -> Array:
        """The changes of units that undo what is `left` of their equations."""
        each = zip(self._by_units, np.eye(len(left)), strict=True)
        slopes = [self.welfare.change_units(self.point, total, pay, one) for (_, pay, total), one in each]
        try:
            return np.asarray(np.linalg.solve(np.transpose(slopes), -left))
        except np.linalg.LinAlgError:
            return np.full(len(left), np.nan)  # the run ends, as with every number that is none

    def _solve(self, wrong: Residuals, products: Products) -> Step:
        from ..linalg import _pairs

        q, at, own = self.welfare, self.point, self.welfare.limited
        users, pairs = len(self.slope), len(q.server)
        shift = -wrong.rho / self.stiffness
        shift[own] -= (products.limit + at.excess * wrong.limit) / at.room / self.stiffness[own]
        idle = products.capacity / np.where(q.row, at.price, 1.0)
        rhs, base, free = idle + wrong.capacity, np.empty(users), np.empty(users)
        given, errors = (q.start, q.server, q.per_task), (products.pair, wrong.pair)
        _pairs.pushed(*given, self.weight, at.slack, *errors, shift - wrong.user, self.whole, base, free, rhs)
        price = self._prices(rhs)
        cost = self._cost(price)
        pay = free + cost / self.whole
        units = np.zeros(len(self.worth.of_units))
        if self.free:
            summed = base + self.among * pay - cost
            total = np.where(self.elastic, wrong.user + summed, shift - self.slope * pay)
            units = self._units(wrong.units + q.change_units(at, total, pay, units))
            for by, unit, change in zip(self._by_units, self.worth.of_units, units, strict=True):
                price, pay = price + change * by[0], pay + change * by[1]
                shift = shift + change * unit / self.stiffness
        tasks, slack = np.empty(pairs), np.empty(pairs)
        sums, use = np.empty(users), np.zeros(q.row.shape)
        _pairs.back(*given, price, pay, wrong.pair, at.tasks, at.slack, products.pair, tasks, slack, sums, use)
        total = np.where(self.elastic, wrong.user + sums, shift - self.slope * pay)
        room = -wrong.limit - total[own]
        excess = (products.limit - at.excess * room) / at.room
        idle = np.where(q.row, idle - at.idle * price / np.where(q.row, at.price, 1.0), 0.0)
        return Step(tasks, slack, price, idle, total, pay, room, excess, units, sums=sums, use=use)


def _sum(one: Step, other: Step, part: float = 1.0) -> Step:
    return Step(**{name: getattr(one, name) + part * getattr(other, name) for name in Step.__dataclass_fields__})
