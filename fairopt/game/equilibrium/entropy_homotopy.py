"""Near an equilibrium of the per-server game, from servers that know nothing of each other.

For every temperature tau in (0, 1] a game lies between: a server counts a user's tasks as `X^(1-tau) x^tau`, X in all
and x on the server itself, so that with levels `l_ni = log(phi_n gamma_ni) - log norm_i(n)`

    log X_n = tau log sum_i e^(l_ni/tau),    x_ni = X_n softmax(l_n/tau)_i.

At tau = 1 every server is alone, with a problem of its own; tau = 0 is the game. Nor is there any complementarity in
prices: a barrier term of little weight eps = 0.01 tau wants nothing but the one resource r of server i, and takes
`eps/v_ir` of it (`eps/v^alpha` for alpha < 1), so that

    F_ir(log v) = log(use_ir + eps_i/v_ir) = 0,    a = min(alpha, 1/tau) in place of alpha,

has the logs of prices as its only unknowns. It is followed by Newton's method as tau falls, log v extrapolated along
its tangent. Where a price slides while tau hardly changes (a resource comes to bind whose price had no effect), the
curve is followed by its length. From a point on the way the interior point goes on, or the curve itself goes on to
where nothing is left of tau.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..model.equilibrium_system import EquilibriumSystem, Point
from .coupling import CoupledGame

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Step = tuple[Array, float]  # of log prices and log tau

#: The first step of log tau, the longest and the shortest; the next one by Newton steps taken.
_STEP, _LONGEST, _SHORTEST = 0.5, 4.0, 1e-4
#: Across a bend: at most so many systems, until log tau has fallen by so much. Lengths as in `smoothing`.
_BEND, _PAST, _TYPICAL = 200, 0.02, 10.0
#: By what the next step differs from one that took so many Newton steps, and the most of them.
GROW = (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6)
MOST = len(GROW) - 1
#: On the curve: by what part of tau something may be wrong, and by how much at the least, as numbers are rounded.
_NEAR, _EXACT = 0.1, 1e-12
#: Most prices: every system takes the third power of it.
_LARGEST = 1000


@dataclass(frozen=True)
class Place:
    """A game between at its solution, after so many systems."""

    here: CoupledGame
    steps: int

    @property
    def tau(self) -> float:
        """Its temperature."""
        return self.here.tau

    @cached_property
    def point(self) -> Point:
        """Where the interior point can go on."""
        return self.here.point()


def follow(equations: EquilibriumSystem, last: float = 1e-7, budget: int = 600) -> Iterator[Place]:
    """Points as tau falls from 1 to `last`, once alpha itself is reached, at most `budget` systems; none if large."""
    start = _start(equations) if equations.row.size <= _LARGEST else None
    if start is not None:
        yield from cooled(start, last, budget)


def cooled(place: Place, last: float, budget: int) -> Iterator[Place]:
    """Points as tau falls on to `last`, once alpha itself is reached, until `budget` systems are solved in all."""
    here, steps = place.here, place.steps
    length = _STEP
    while here.tau > last * (1 + 1e-9) and steps < budget:
        slope = here.slope()
        steps += 1
        while True:
            length = min(length, float(np.log(here.tau / last)))
            guess = here.price + np.where(here.barrier > 0.5, -length, np.expm1(-length)) * slope
            there, taken = newton(CoupledGame(here.q, guess, here.tau * np.exp(-length), here.unit), MOST)
            steps += taken
            if there is not None:
                here, length = there, min(length * GROW[taken], _LONGEST)
                break
            length *= 0.35
            if length < _SHORTEST:
                there, taken = _past(here)
                steps += taken
                if there is None:
                    return
                here, length = there, _PAST
                break
        if here.tau * here.q.alpha <= 1:
            yield Place(here, steps)


def newton(here: CoupledGame, most: int) -> tuple[CoupledGame | None, int]:
    """The curve at the temperature of `here`, or None, and the Newton steps taken."""
    for taken in range(most + 1):
        if np.abs(here.residual).max() < max(_NEAR * here.tau, _EXACT):
            return here, taken
        step = here.solve(here.residual) if taken < most and np.isfinite(here.residual).all() else None
        if step is None:
            return None, taken
        norm, t = np.linalg.norm(here.residual), 1.0
        while True:
            there = here.moved(t * step)
            if np.linalg.norm(there.residual) < (1 - 0.1 * t) * norm:
                break
            t *= 0.4
            if t < 0.02:
                return None, taken + 1
        here = there
    return None, most


def _past(here: CoupledGame) -> tuple[CoupledGame | None, int]:
    """The curve followed by its length until tau has fallen a little, or None; and the systems solved."""
    q, unit, origin = here.q, here.unit, here.tau
    scale = min(1.0, _TYPICAL / q.row.sum()) / origin**2

    def product(one: Step, other: Step) -> float:
        return float(scale * (one[0] * other[0]).sum() + one[1] * other[1])

    length, before, solved = _STEP, None, 0
    while solved < _BEND:
        along: Step = (here.slope(), 1.0)
        solved += 1
        norm = np.sqrt(product(along, along)) * (-1 if before is None or product(along, before) < 0 else 1)
        tangent: Step = (along[0] / norm, along[1] / norm)
        length = min(length, _LONGEST * abs(norm))  # or a straight stretch ends at tau = 0
        while True:
            log_tau = np.log(here.tau) + length * tangent[1]
            there = CoupledGame(q, here.price + length * tangent[0], np.exp(log_tau), unit)
            first = float(np.abs(there.residual).max())
            for turns in range(len(GROW)):
                residual = float(np.abs(there.residual).max())
                if residual < _NEAR * there.tau or not residual <= 10 * first or turns == MOST:
                    break
                both = there.solve(np.stack([there.residual, there.drift()]))
                solved += 1
                if both is None:
                    break
                change = -product(tangent, (both[0], 0.0)) / product(tangent, (both[1], 1.0))
                step = both[0] + change * both[1]
                part = 1 / max(1.0, float(np.abs(step).max()) / (2 * there.tau), abs(change))
                log_tau += part * change
                there = CoupledGame(q, there.price + part * step, np.exp(log_tau), unit)
            if residual < _NEAR * there.tau:
                break
            length *= 0.4
            if length < _SHORTEST or solved > _BEND:
                return None, solved
        here, before = there, tangent
        if here.tau < (1 - _PAST) * origin:
            return here, solved
        length *= GROW[turns]
    return None, solved


def _start(q: EquilibriumSystem) -> Place | None:
    """tau = 1, from prices that are the same for all resources of a server and fill it."""
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))
    for _ in range(60):
        full = np.where(
            q.row, CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit).residual, -np.inf
        )
        most = np.where(served, full.max(axis=1), 0.0)
        if np.abs(most).max() < 0.3:
            break
        unit = unit + np.clip(most, -2, 2)
    here, steps = newton(CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit), 60)
    return None if here is None else Place(here, steps)
