"""The conditions of `FairnessEfficiency`: what a task is worth has a part for efficiency too, beside that of `welfare`.

    rho = B (log pi - log (f + e^tau u)) = 0,      A log s + B log f - B g - theta = 0      (users)
    e^tau sum u s : sum f s = efficient : fair

f is what a task is worth for fairness. It is a number of its own, changed by steps of moderate size: at alpha = 500 the
power of s that it comes to would jump by decades. Tau is a second unit, with the last line as its equation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...model.fairness_efficiency import FairnessEfficiency, log_sum
from ...model.polytope import Polytope
from .conditions import Welfare
from .options import OPTIONS, ConditionsOptions
from .point import Point, Start, Worth, bend

Array = NDArray[np.float64]


class WelfareAndEfficiency(Welfare):
    """The conditions for one polytope and criterion."""

    wavers = True  # f is changed by what a step says, but by no more than a factor
    least = 0.1  # where f is nothing, tasks are bound by mu alone, and below this the prices' matrix is near singular

    def __init__(
        self, polytope: Polytope, criterion: FairnessEfficiency, options: ConditionsOptions = OPTIONS.conditions
    ) -> None:
        super().__init__(polytope, criterion, options)
        self.ratio = float(np.log(criterion.efficient) - np.log(criterion.fair))
        self.log_share: Array = np.log(self.own.share) + np.log(self.unit)

    def marginal(self, point: Point) -> Worth:
        """By how much the log of what a task is worth misses what is paid, (users,)."""
        marginal = np.logaddexp(point.fair, point.units[1] + self.log_share)
        part = np.exp(point.fair - marginal)
        slopes = self.of_share * part, (part, self.of_price * (1 - part))
        residual = self.of_price * (np.log(point.user_price) - marginal) + part * self._unfair(point)
        # Errors count in tasks, or where worth hardly depends on them in prices.
        return Worth(residual, *slopes, 1 / np.maximum(self.of_price, slopes[0]))

    def _unfair(self, point: Point) -> Array:
        """By how much B log f misses what it should be, (users,)."""
        wanted = self.of_price * self.gain + point.units[0] - self.of_share * np.log(point.total)
        return np.asarray(self.of_price * point.fair - wanted)

    def _fairer(self, at: Point, step: Point) -> Array:
        """What log f changes by in a step, (users,)."""
        wanted = step.units[0] - self._unfair(at) - self.of_share * step.total / at.total
        return np.asarray(wanted / self.of_price)

    def second_order(self, at: Point, marginal: Worth, step: Point) -> Array:
        """What rho deviates from its tangent by, after a step."""
        part = marginal.of_units[0]
        of_marginal = bend(part * self._fairer(at, step) + (1 - part) * step.units[1])
        return np.asarray(self.of_price * (bend(step.user_price / at.user_price) - of_marginal))

    def _parts(self, point: Point) -> tuple[Array, Array, float]:
        """What users have of all that is spent for efficiency and for fairness, and the log of the ratio of these."""
        logs = np.log(point.total)
        efficient, fair = point.units[1] + self.log_share + logs, point.fair + logs
        sums = log_sum(efficient), log_sum(fair)
        return np.exp(efficient - sums[0]), np.exp(fair - sums[1]), float(sums[0] - sums[1])

    def residual_units(self, point: Point) -> Array:
        """What is wrong with the unit of welfare, and with the ratio of efficiency and fairness once f is right."""
        _, fair, ratio = self._parts(point)
        return np.append(super().residual_units(point), ratio - self.ratio + fair @ self._unfair(point) / self.of_price)

    def change_units(self, point: Point, total: Array, user_price: Array, units: Array) -> Array:
        """By how much a step changes those, to first order."""
        efficient, fair, _ = self._parts(point)
        grown = total / point.total
        ratio = units[1] + efficient @ grown - fair @ (grown + (units[0] - self.of_share * grown) / self.of_price)
        return np.append(super().change_units(point, total, user_price, units), ratio)

    def begin(self) -> Point:
        """As for welfare alone, efficiency having its part of what users spend."""
        point = super().begin()
        fair = self.gain + (point.units[0] - self.of_share * np.log(point.total)) / self.of_price
        tau = self.ratio - self._parts(replace(point, fair=fair, units=np.zeros(2)))[2]
        spent = np.logaddexp(fair, tau + self.log_share)
        scale = np.log(len(spent)) - log_sum(spent + np.log(point.total))
        units = np.array([point.units[0] + self.of_price * scale, tau + scale])
        user_price = np.maximum(np.exp(spent + scale), 1e-12)
        cost, pays = self.cost(point.price), np.repeat(user_price, np.diff(self.start))
        slack = np.maximum(cost - pays, 0.1 * np.maximum(cost, pays))
        return replace(point, user_price=user_price, slack=slack, units=units, fair=fair + scale)

    def fits(self, start: Start) -> bool:
        """Is it a start for the same cluster, and for such a welfare?"""
        return super().fits(start) and start.point.fair.shape == self.unit.shape

    def begin_from(self, start: Start) -> Point:
        """A point of another alpha, in the units of this one; theta where it fits best."""
        point = start.point
        fair = point.fair - np.log(start.unit / self.unit)
        return super().begin_from(replace(start, point=replace(point, fair=fair)))

    def fitting(self, point: Point) -> Array:
        """The units that fit most users of a point, (units,)."""
        free = replace(point, units=np.zeros(2))
        return np.array([float(np.median(self._unfair(free))), point.units[1]])

    def moved(self, at: Point, step: Point, t: float) -> Point:
        """The point after a part t of a step, f nearer to what it should be there."""
        little, grown = np.log(self.options.little), t * self._fairer(at, step)
        room = little + at.units[1] + self.log_share - at.fair
        change = np.log1p(np.maximum(grown, -0.5))
        change = np.where(grown < -0.5, np.maximum(grown, np.log(self.options.fair_fall)), change)
        # Where f hardly counts it goes wherever it should, until it does.
        change = np.where(room > 0, np.where(grown > 0, np.clip(grown, change, room), grown), change)
        return replace(super().moved(at, step, t), fair=at.fair + change)
