"""Equilibria of the per-server game followed along a smoothed path, where the interior point jams.

Complementarity `a >= 0, b >= 0, a b = 0` is smoothed to `a b = mu`, a, b > 0, in the form of Chen, Harker, Kanzow and
Smale, `a + b - sqrt((a - b)^2 + 4 mu) = 0`, for every pair (its part of the user's tasks against its slack) and every
resource (what idles against its price). With tasks x[n,i], level prices v[i,r], every user's level `U_n` (what its
tasks cost where they cost least) and `p_ni = sum_r D_nir v_ir^alpha`, k = min(alpha, 4), the two factors are

    x_ni / X_n(U_n)    and    (p_ni^(k/alpha) (U_n / (phi_n gamma_ni))^k - 1)/k,      v_ir^k    and    1 - use_ir.

For almost all data the solutions form a smooth curve from large mu to mu = 0. It need not fall: prices slide along a
server while mu hardly changes, and mu may rise again for a while, wherever equilibria are nearly not unique (exact
ties, zero demands). So mu is an unknown too, and the curve is followed by its length: a step along the tangent, and
Newton steps back in the plane across it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.algebra import Equations
from ...engines.linalg.arclength import CorrectionOptions, Step, stepped, towards
from ...engines.linalg.damped_newton import DampingOptions, Reached, damped_newton
from ...engines.linalg.step_control import StepControl
from ..model.candidate import Candidate
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem

Array = NDArray[np.float64]
Units = tuple[Array, Array]  # tasks (users,) and log prices (servers, resources) in which pairs and prices are measured

#: What answers from here say that they were found by.
METHOD_NAME = "smoothed path"
_STEPS = StepControl(0.5, 2.0, 1e-7, 0.4, (2.0, 2.0, 1.7, 1.4, 1.1, 0.9, 0.7, 0.6, 0.6, 0.6))
_CORRECTIONS = CorrectionOptions(most=9, serves=0.3)


@dataclass(frozen=True)
class CurvePoint:
    """A point near the curve; tasks may be negative, as the smoothed equations allow. Steps are of all four."""

    log_price: Array  # (servers, resources), log v
    log_level: Array  # (users,)
    tasks: Array  # (pairs,)
    log_mu: float

    def moved(self, step: Step, t: float) -> CurvePoint:
        """The point after the part t of a step."""
        return CurvePoint(
            self.log_price + t * step[0],
            self.log_level + t * step[1],
            self.tasks + t * step[2],
            self.log_mu + t * step[3],
        )


def follow(
    equations: EquilibriumSystem,
    tol: float,
    mu: float = 3.0,
    near: float = 0.3,
    budget: int = 1000,
) -> Iterator[Candidate]:
    """Points from `mu` on, until the error is below `tol`, no step is short enough, or `budget` systems are solved.

    What is wrong at the first is below `near mu`.
    """
    here, _, solved = start_of_curve(equations, mu, near)
    if here is None:
        return
    control = _STEPS

    def reached(at: SmoothedSystem) -> bool:
        return bool(at.largest < near * at.mu)

    met, step, before, along, least = here, control.first, None, None, np.inf
    while solved < budget:
        if along is None:
            along, solved = here.tangent, solved + 1
        tangent = towards(here, along, before)
        while True:
            shortest = control.shortest if here is met else 1e-4
            left = budget - solved
            found, more, step = stepped(here, tangent, step, shortest, left, reached, _CORRECTIONS)
            solved += more
            if found is not None:
                break
            if here is met or solved > budget:
                return
            # Units have jumped: on with those that it was met in.
            here, step = met, 0.1
            tangent, solved = towards(here, here.tangent, tangent), solved + 1
        met, along, before = found.here, found.along, tangent
        here = SmoothedSystem(equations, met.at)
        offered = _found(equations, met.at, solved)
        yield offered
        if offered.error <= tol:
            return
        least = min(least, met.mu)
        # mu rises where the curve bends, but seldom so far unless another curve, which leads back, has been met.
        if met.mu > min(10 * mu, 30 * least):
            return
        step = control.after(step, found.corrections)


class SmoothedSystem:
    """The smoothed equations at one place: what is wrong, and Newton's steps."""

    @np.errstate(over="ignore")  # a point far off has an infinite merit
    def __init__(
        self,
        equations: EquilibriumSystem,
        at: CurvePoint,
        units: Units | None = None,
    ) -> None:
        q = self.equations = equations
        self.at, self.mu, self.power = at, float(np.exp(at.log_mu)), q.power
        true, self.share, _ = q.priced(_point(q, at), q.alpha)
        self.total, slope = q.totals(at.log_level, self.mu)
        self.slope = slope * q.power
        self.units = _units(q, at, true, self.share, self.total) if units is None else units
        self.unit = self.units[0][q.user]
        self.residual_pairs, self.rate_pairs, self.to_part, to_slack = _smoothed(
            at.tasks / self.unit, true / q.power, self.mu
        )
        self.weight = self.unit * (to_slack / self.to_part) * (1 + true)
        price = np.where(q.row, np.exp(q.power * (at.log_price - self.units[1])), 1.0)
        found = _smoothed(np.where(q.row, 1 - q.used(at.tasks), 0.0), price, self.mu)
        self.residual_rows, self.rate_rows = np.where(q.row, found[:2], 0.0)
        self.to_idle = np.where(q.row, found[2], 1.0)
        self.own = np.where(q.row, q.power * price * found[3] / found[2], 1.0)
        self.gap = q.sums(at.tasks) - self.total
        wrong = np.concatenate([self.residual_pairs, self.residual_rows.ravel(), self.gap / self.total])
        self.merit, self.largest = float(np.linalg.norm(wrong)), float(np.abs(wrong).max())

    def newton(self, there: SmoothedSystem) -> Step:
        """Newton's step to the curve from `there`, at the same mu, by the system here."""
        return (*self._solve(there.residual_pairs, there.residual_rows, there.gap), 0.0)

    @cached_property
    def tangent(self) -> Step:
        """By how much everything changes as log mu does by 1 along the curve."""
        q = self.equations
        # A user near its limit keeps the further from it the larger mu is (`EquilibriumSystem.totals`).
        room = 1 - self.total / q.limit
        gap = np.where(np.isfinite(q.limit), self.slope / self.power * self.mu / (room + self.mu), 0.0)
        return (*self._solve(self.rate_pairs, self.rate_rows, gap), 1.0)

    def moved(self, step: Step, part: float) -> SmoothedSystem:
        """The equations after a part of a step, in the same units."""
        return SmoothedSystem(self.equations, self.at.moved(step, part), self.units)

    def solved(self, there: SmoothedSystem) -> tuple[Step, Step]:
        """Newton's step from `there`, and the tangent."""
        return self.newton(there), self.tangent

    def part(self, step: Step) -> float:
        """The part of a step that changes no price, in the power of slacks, by more than a factor e^2; 0: mu jumps."""
        return _damped(self.equations, step) if abs(step[-1]) <= 1.5 else 0.0

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps: log prices in the power of slacks, tasks in the user's own."""
        parts = float((one[2] * other[2] / self.total[self.equations.user] ** 2).sum())
        scale = min(1.0, 10.0 / self.equations.row.sum())
        return float(scale * (self.power * (one[0] * other[0]).sum() + parts) + one[3] * other[3])

    def _solve(self, pairs: Array, rows: Array, gap: Array) -> tuple[Array, Array, Array]:
        """The step that takes away what is wrong, to first order."""
        q = self.equations
        fixed, whole = -self.unit * pairs / self.to_part, self.slope + q.sums(self.weight)
        level = (gap + q.sums(fixed)) / whole
        rhs = np.where(q.row, q.used(fixed - self.weight * level[q.user]) - rows / self.to_idle, 0.0)
        sharp = np.array([1e-7 * max(float(np.abs(rhs).max()), 1e-300)])
        prices, of_users, _ = self._factored.solve(rhs, np.zeros(len(level)), np.zeros(1), sharp)
        d_level = level - of_users
        paid = self._factored.pairs.cost(prices)
        return prices / self._price, d_level, fixed - self.weight * (d_level[q.user] + paid)

    @cached_property
    def _price(self) -> Array:
        """v^alpha by that of the server's dearest resource, (servers, resources), of which changes are equations'."""
        q = self.equations
        log_price = np.where(q.row, q.alpha * self.at.log_price, -np.inf)
        top = log_price.max(axis=1, initial=-1e300, keepdims=True)
        return np.asarray(np.exp(np.maximum(log_price - top, -600.0)))

    @cached_property
    def _factored(self) -> Equations:
        """The prices' system."""
        q, price = self.equations, self._price
        pairs = q.pairs.worth(np.maximum(q.pairs.worth(None).cost(price), 1e-280))
        idle = np.where(q.row, self.own / price, np.inf)
        return Equations(pairs, self.weight, idle, self.slope, np.zeros(len(self.slope)), self.mu > 1e-5)


def _smoothed(one: Array, other: Array, mu: float) -> tuple[Array, Array, Array, Array]:
    """Half of `a + b - root`, `root = sqrt((a - b)^2 + 4 mu)`, and its slopes over log mu, a and b.

    Without a subtraction, where there is one to avoid.
    """
    more, add = one - other, one + other
    root = np.sqrt(more * more + 4 * mu)
    half = np.where(add > 0, 2 * (one * other - mu) / (np.abs(add) + root), (add - root) / 2)
    small, large = 2 * mu / (root * (root + np.abs(more))), (1 + np.abs(more) / root) / 2
    return half, -mu / root, np.where(more > 0, small, large), np.where(more < 0, small, large)


def _units(q: EquilibriumSystem, at: CurvePoint, true: Array, share: Array, total: Array) -> Units:
    """Tasks in the user's own; a price in what makes it the largest part that it has in anybody's cost, in levels.

    (Then mu is what the certificate will find. With the average part in its users' costs that was 2 to 20 times mu.)
    """
    point = _point(q, at, np.maximum(at.tasks, 1e-12 * np.repeat(total, np.diff(q.start))))
    parts = np.where(q.row, np.maximum(q.largest_parts(q.wanted(point, share, true)), 1e-300), 1.0)
    return total, at.log_price - np.log(parts) / q.alpha


def _point(q: EquilibriumSystem, at: CurvePoint, tasks: Array | None = None) -> EquilibriumPoint:
    tasks = at.tasks if tasks is None else tasks
    return EquilibriumPoint(tasks, tasks, at.log_price, at.log_level, at.log_price, float(np.exp(at.log_mu)), q.power)


def _found(q: EquilibriumSystem, at: CurvePoint, solved: int) -> Candidate:
    point = _point(q, at, np.maximum(at.tasks, 0.0))
    return Candidate(point, error_of(q, point), solved, by=METHOD_NAME)


def error_of(q: EquilibriumSystem, point: EquilibriumPoint) -> float:
    """How far a point is from an equilibrium, by its tasks and prices."""
    true, share, _ = q.priced(point, q.alpha)
    total = q.totals(point.log_level, 0.0)[0]
    return q.error(point, true, q.largest_parts(q.wanted(point, share, true)), total, q.used(point.tasks))


def _damped(q: EquilibriumSystem, step: Step) -> float:
    """The part of a step that changes no price, in the power of slacks, by more than a factor e^2."""
    return min(1.0, 2 / max(float(np.abs(step[0]).max()) * q.power, 1e-300))


def start_of_curve(q: EquilibriumSystem, mu: float, near: float) -> Reached[SmoothedSystem]:
    """The curve at `mu`."""
    first = q.begin(mu)
    total = np.add.reduceat(first.tasks, q.start[:-1])
    at = CurvePoint(np.where(q.row, first.log_price, 0.0), np.log(total), first.tasks, float(np.log(mu)))
    return damped_newton(
        SmoothedSystem(q, at),
        lambda here: here.largest < near * here.mu,
        lambda here: here.newton(here),
        lambda here, step, t: here.moved(step, t),
        lambda here: here.merit,
        39,
        DampingOptions(shorter=0.5),
        lambda step: _damped(q, step),
    )
