"""Equilibria of the per-server game followed along a smoothed path, where the interior point jams.

Complementarity `a >= 0, b >= 0, a b = 0` is smoothed to `a b = mu`, a, b > 0, in the form of Chen, Harker, Kanzow and
Smale, `a + b - sqrt((a - b)^2 + 4 mu) = 0`, for every pair (its part of the user's tasks against its slack) and every
resource (what idles against its price; `interior` has the equations). For almost all data the solutions form a smooth
curve from large mu to mu = 0. It need not fall: prices slide along a server while mu hardly changes, and mu may rise
again for a while, wherever equilibria are nearly not unique (exact ties, zero demands). So mu is an unknown too, and
the curve is followed by its length: a step along the tangent, and Newton steps back in the plane across it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..engines import structured
from .equations import Equations, Point
from .interior import Found

Array = NDArray[np.float64]
Step = tuple[Array, Array, Array, float]  # of log prices, log levels, tasks, log mu
Units = tuple[Array, Array]  # tasks (users,) and log prices (servers, resources) in which pairs and prices are measured

#: Where to begin, and by what part of mu something may be wrong on the curve: the next ones more careful.
PATHS = ((3.0, 0.3), (1.0, 0.1), (0.3, 0.03))
#: The first step, the longest and the shortest.
_STEP, _LONGEST, _SHORTEST = 0.5, 2.0, 1e-7
#: Lengths are those of log mu together with so many typical prices and tasks, however many there are.
_TYPICAL = 10.0
#: By what the next step differs from one that took so many corrections.
_GROW = (2.0, 2.0, 1.7, 1.4, 1.1, 0.9, 0.7, 0.6)
#: Corrections may make matters so much worse before they get better.
_WORSE = 10.0


@dataclass(frozen=True)
class _Place:
    """A point near the curve; tasks may be negative, as the smoothed equations allow."""

    log_price: Array  # (servers, resources), log v
    log_level: Array  # (users,)
    tasks: Array  # (pairs,)
    log_mu: float

    def moved(self, step: Step, t: float) -> _Place:
        return _Place(
            self.log_price + t * step[0],
            self.log_level + t * step[1],
            self.tasks + t * step[2],
            self.log_mu + t * step[3],
        )

    def since(self, other: _Place) -> Step:
        return (
            self.log_price - other.log_price,
            self.log_level - other.log_level,
            self.tasks - other.tasks,
            self.log_mu - other.log_mu,
        )


def follow(equations: Equations, tol: float, mu: float = 3.0, near: float = 0.1, budget: int = 1000) -> Iterator[Found]:
    """Points from `mu` on, until the error is below `tol`, no step is short enough, or `budget` systems are solved."""
    place, units, solved = _start(equations, mu, near)
    step, before = _STEP, None
    while place is not None and solved < budget:
        kept, units, hold = units, _units(equations, place), False
        here = _Smoothed(equations, place, units)
        tangent = _towards(here, here.tangent(), before)
        solved += 1
        while True:
            ahead, turns, worst = place.moved(tangent, step), 0, np.inf
            while turns < len(_GROW):
                # Units follow the point, but not while the last digits are found; where they jump, they are held.
                units = kept if hold else _units(equations, ahead) if turns < 2 else units
                there = _Smoothed(equations, ahead, units)
                worst = there.merit if turns == 0 else worst
                if there.largest < near * there.mu or not there.merit <= _WORSE * worst:
                    break
                correction = there.across(tangent, ahead.since(place), step)
                solved += 1
                if correction is None:
                    break
                ahead, turns = ahead.moved(correction, _damped(equations, correction)), turns + 1
            if turns < len(_GROW) and there.largest < near * there.mu:
                break
            step *= 0.4
            if step < 1e-4 and not hold:
                hold, step = True, 0.1
            if step < _SHORTEST or solved > budget:
                return
        place, before = ahead, tangent
        found = _found(equations, place, solved)
        yield found
        if found.error <= tol:
            return
        step = min(step * _GROW[turns], _LONGEST)


class _Smoothed:
    """The smoothed equations at one place: what is wrong, and Newton's steps."""

    def __init__(self, equations: Equations, at: _Place, units: Units) -> None:
        q = self.equations = equations
        self.at, self.unit = at, units[0][q.polytope.pair_user]
        self.mu, self.power = float(np.exp(at.log_mu)), q.power
        true, self.share, _ = q.priced(_point(q, at), q.alpha)
        self.slack = true / q.power
        self.total, slope = q.totals(at.log_level, self.mu)
        self.slope = slope * q.power
        self.part = at.tasks / self.unit
        self.idle = 1 - q.used(at.tasks)
        self.price = np.where(q.row, np.exp(q.power * (at.log_price - units[1])), 1.0)
        self.wrong_pairs, self.root_pairs = _smoothed(self.part, self.slack, self.mu)
        rows, self.root_rows = _smoothed(self.idle, self.price, self.mu)
        self.wrong_rows = np.where(q.row, rows, 0.0)
        self.gap = np.add.reduceat(at.tasks, q.start[:-1]) - self.total
        wrong = (self.wrong_pairs, self.wrong_rows, self.gap / self.total)
        self.merit = float(np.sqrt(sum((part**2).sum() for part in wrong)))
        self.largest = float(max(np.abs(part).max() for part in wrong))

    def tangent(self) -> Step:
        """By how much everything changes as log mu does by 1 along the curve."""
        return (*self._solve(*self._rates), 1.0)

    def across(self, tangent: Step, moved: Step, length: float) -> Step | None:
        """Newton's step to the curve in the plane `length` along the tangent; None where mu would jump."""
        newton: Step = (*self._solve(self.wrong_pairs, self.wrong_rows, self.gap), 0.0)
        along = self.tangent()
        off = self.product(tangent, moved) - length + self.product(tangent, newton)
        change = -off / self.product(tangent, along)
        if not abs(change) <= 1.5:
            return None
        prices, levels, tasks = (a + change * b for a, b in zip(newton[:3], along[:3], strict=True))
        return prices, levels, tasks, change

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps: log prices in the power of slacks, tasks in the user's own."""
        parts = one[2] * other[2] / self.total[self.equations.polytope.pair_user] ** 2
        scale = min(1.0, _TYPICAL / self.equations.row.sum())
        return float(scale * (self.power * (one[0] * other[0]).sum() + parts.sum()) + one[3] * other[3])

    @property
    def _rates(self) -> tuple[Array, Array, Array]:
        """What becomes wrong as log mu grows."""
        rows = np.where(self.equations.row, -self.mu / self.root_rows, 0.0)
        # A user near its limit keeps the further from it the larger mu is (`Equations.totals`).
        room = 1 - self.total / self.equations.limit
        gap = np.where(np.isfinite(self.equations.limit), self.slope / self.power * self.mu / (room + self.mu), 0.0)
        return -self.mu / self.root_pairs, rows, gap

    def _solve(self, pairs: Array, rows: Array, gap: Array) -> tuple[Array, Array, Array]:
        """The step that takes away what is wrong, to first order."""
        q = self.equations
        first, last = q.start[:-1], q.polytope.pair_user
        to_part, weight, to_idle, factors = self._linear
        fixed = -self.unit * pairs / to_part
        whole = np.add.reduceat(weight, first) + self.slope
        level = (gap + np.add.reduceat(fixed, first)) / whole
        rhs = np.where(q.row, -rows / to_idle + q.used(fixed - weight * level[last]), 0.0)
        d_price = np.where(q.row, factors.solve(rhs.ravel()).reshape(rhs.shape), 0.0)
        cost = np.einsum("pr,pr->p", self.share, d_price[q.server])
        d_level = level - np.add.reduceat(weight * cost, first) / whole
        return d_price, d_level, fixed - weight * (d_level[last] + cost)

    @cached_property
    def _linear(self) -> tuple[Array, Array, Array, structured.Factors]:
        """Slopes over parts, weights of pairs, slopes over what idles, and the prices' system."""
        q = self.equations
        to_part, to_slack = _slopes(self.part, self.slack, self.root_pairs, self.mu)
        to_idle, to_price = _slopes(self.idle, self.price, self.root_rows, self.mu)
        weight = self.unit * (to_slack / to_part) * (1 + self.power * self.slack)
        own = np.where(q.row, self.power * self.price * to_price / to_idle, 1.0)
        factors = structured.factor(q.start, q.server, weight, q.per_task, self.share, self.slope, own)
        return to_part, weight, to_idle, factors


def _smoothed(one: Array, other: Array, mu: float) -> tuple[Array, Array]:
    """Half of `a + b - root`, without a subtraction where both are positive, and the root."""
    root, add = np.sqrt((one - other) ** 2 + 4 * mu), one + other
    return np.where(add > 0, 2 * (one * other - mu) / (add + root), (add - root) / 2), root


def _slopes(one: Array, other: Array, root: Array, mu: float) -> tuple[Array, Array]:
    """The derivatives of `_smoothed`, without a subtraction."""
    more = one - other
    first = np.where(more > 0, 2 * mu / (root * (root + more)), (1 - more / root) / 2)
    second = np.where(more < 0, 2 * mu / (root * (root - more)), (1 + more / root) / 2)
    return first, second


def _units(q: Equations, at: _Place) -> Units:
    """Tasks in the user's own; a price in what makes it the part that it has in its users' costs, in levels."""
    total = q.totals(at.log_level, float(np.exp(at.log_mu)))[0]
    point = _point(q, at, np.maximum(at.tasks, 1e-12 * total[q.polytope.pair_user]))
    true, share, _ = q.priced(point, q.alpha)
    return total, at.log_price - np.log(q.parts(point, share, true, q.used(point.tasks))) / q.alpha


def _point(q: Equations, at: _Place, tasks: Array | None = None) -> Point:
    tasks = at.tasks if tasks is None else tasks
    return Point(tasks, tasks, at.log_price, at.log_level, at.log_price, float(np.exp(at.log_mu)), q.power)


def _found(q: Equations, at: _Place, solved: int) -> Found:
    point = _point(q, at, np.maximum(at.tasks, 0.0))
    true, share, _ = q.priced(point, q.alpha)
    total = q.totals(at.log_level, 0.0)[0]
    error = q.error(point, true, q.largest_parts(q.wanted(point, share, true)), total)
    return Found(point, error, solved, by="smoothed path")


def _damped(q: Equations, step: Step) -> float:
    """The part of a step that changes no price, in the power of slacks, by more than a factor e^2."""
    return min(1.0, 2 / max(float(np.abs(step[0]).max()) * q.power, 1e-300))


def _towards(here: _Smoothed, tangent: Step, before: Step | None) -> Step:
    """The tangent at length 1, towards small mu at first, then on."""
    sign = -1.0 if before is None or here.product(tangent, before) < 0 else 1.0
    scale = sign / np.sqrt(here.product(tangent, tangent))
    return tangent[0] * scale, tangent[1] * scale, tangent[2] * scale, tangent[3] * scale


def _start(q: Equations, mu: float, near: float) -> tuple[_Place | None, Units, int]:
    """The curve at `mu`, which is large: damped Newton steps."""
    first = q.begin(mu)
    total = np.add.reduceat(first.tasks, q.start[:-1])
    place = _Place(first.log_price, np.log(total), first.tasks, float(np.log(mu)))
    units = _units(q, place)
    for solved in range(60):
        here = _Smoothed(q, place, units)
        if here.largest < near * here.mu:
            return place, units, solved
        step: Step = (*here._solve(here.wrong_pairs, here.wrong_rows, here.gap), 0.0)
        t = _damped(q, step)
        for _ in range(10):
            if _Smoothed(q, place.moved(step, t), units).merit <= (1 - 0.1 * t) * here.merit:
                break
            t *= 0.5
        place = place.moved(step, t)
    return None, units, 60
