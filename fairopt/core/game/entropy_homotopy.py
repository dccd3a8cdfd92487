"""Near an equilibrium of the per-server game, from servers that know nothing of each other.

For every temperature tau in (0, 1] a game lies between: a server counts a user's tasks as `X^(1-tau) x^tau`, X in all
and x on the server itself, so that with levels `l_ni = log(phi_n gamma_ni) - log norm_i(n)`

    log X_n = tau log sum_i e^(l_ni/tau),    x_ni = X_n softmax(l_n/tau)_i.

At tau = 1 every server is alone, with a problem of its own; tau = 0 is the game. Nor is there any complementarity in
prices: a barrier term of little weight eps = 0.01 tau wants nothing but the one resource r of server i, and takes
`eps/v_ir^h` of it, h = min(alpha, 1/2), so that

    F_ir(log v) = log(use_ir + eps_i/v_ir^h) = 0,    a = min(alpha, 1/tau) in place of alpha,

has the logs of prices as its only unknowns. It is followed by Newton's method as tau falls, log v extrapolated along
its tangent. Where a price slides while tau hardly changes (a resource comes to bind whose price had no effect), the
curve is followed by its length, on to where nothing is left of tau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...model._arrays import Array, Mask
from .continuation import SHORTER, Reached, Step, StepControl, backtracked, damped_newton, stepped, towards
from .coupling import CoupledGame
from .equilibrium_system import EquilibriumSystem

#: Lengths of log tau between two games.
STEPS = StepControl(0.5, 4.0, 1e-4, 0.35, (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6))
#: On the curve `max |F|` is below this part of tau.
_NEAR = 0.1
#: Across a bend tau falls by this part.
_PAST = 0.02


@dataclass(frozen=True)
class Place:
    """Solution at one temperature, and the number of linear systems solved so far."""

    here: CoupledGame
    steps: int

    @property
    def tau(self) -> float:
        """Temperature."""
        return self.here.tau


def follow(
    equations: EquilibriumSystem,
    last: float = 1e-7,
    budget: int | None = None,
    warm: bool = False,
    most: float = 0.5,
) -> Iterator[Place]:
    """Follow the curve from tau = 1 to `last` within `budget` systems: points from where a = alpha; none if large.

    `warm`: those before that as well; `most` as in `CoupledGame`. Users change over one by one: of thousands on a few
    servers, whose systems are small, thousands of systems are worth it.
    """
    # Every system takes the third power of the number of prices.
    start = decoupled(equations, most) if equations.row.size <= 1000 else None
    if start is not None:
        budget = int(np.clip(2e5 / equations.row.sum(), 600, 6000)) if budget is None else budget
        yield from cooled(start, last, budget, warm)


def cooled(place: Place, last: float, budget: int, warm: bool = False) -> Iterator[Place]:
    """Follow the curve on to `last`: points from where a = alpha, until `budget` systems are solved in all."""
    here, systems, length = place.here, place.steps, STEPS.first
    while here.tau > last * (1 + 1e-9) and systems < budget:
        slope = here.slope()
        systems += 1

        def colder(length: float, at: CoupledGame = here, slope: Array = slope) -> CoupledGame:
            """Game with log tau lower by `length`, at the prices to be expected."""
            guess = at.price + np.where(np.abs(slope) > 0.5, -length, np.expm1(-length)) * slope
            return CoupledGame(at.q, guess, at.tau * np.exp(-length), at.unit, most=at.most)

        found, more, length = ahead(colder, min(length, float(np.log(here.tau / last))), STEPS)
        systems += more
        if found is None:
            found, more = _past(here, budget - systems)
            systems, length = systems + more, _PAST
        if found is None:
            return
        here = found
        if warm or here.tau * here.q.alpha <= 1:
            yield Place(here, systems)


def ahead(
    predicted: Callable[[float], CoupledGame], length: float, control: StepControl
) -> tuple[CoupledGame | None, int, float]:
    """Point to which Newton's method leads from `predicted(length)` or nearer, systems, and the next length."""
    systems = 0

    def attempt(length: float) -> Reached[CoupledGame] | None:
        nonlocal systems
        there = newton(predicted(length), control.most)
        systems += there.systems
        return None if there.here is None else there

    found, length = backtracked(attempt, length, control.shorter, control.shortest)
    return (None, systems, length) if found is None else (found.here, systems, control.after(length, found.steps))


def newton(here: CoupledGame, most: int, shortest: float = 0.02) -> Reached[CoupledGame]:
    """Correct to the curve at the temperature of `here` by damped Newton steps."""
    return damped_newton(
        here,
        lambda at: float(np.abs(at.residual).max()) < max(_NEAR * at.tau, 1e-12),
        lambda at: at.solve(at.residual) if np.isfinite(at.residual).all() else None,
        lambda at, step, t: at.moved(t * step),
        lambda at: float(np.linalg.norm(at.residual)),
        most,
        SHORTER,
        shortest,
    )


def _past(here: CoupledGame, most: int) -> tuple[CoupledGame | None, int]:
    """Follow the curve by arc length until tau has fallen a little: the point or None, and the systems solved."""
    origin, control = here.tau, STEPS
    at = _Bend(here, min(1.0, 10.0 / here.q.row.sum()) / origin**2)

    def reached(at: _Bend) -> bool:
        return at.merit < _NEAR * at.game.tau

    length, before, solved = control.first, None, 0
    while solved < most:
        along: Step = (at.game.slope(), 1.0)
        # No longer than this, or a straight stretch ends at tau = 0.
        length = min(length, control.longest * np.sqrt(at.product(along, along)))
        before = towards(at, along, before)
        budget = most - solved - 1
        found, more, length = stepped(at, before, length, control.shortest, budget, reached)
        solved += 1 + more
        if found is None:
            return None, solved
        at = found.here
        if at.game.tau < (1 - _PAST) * origin:
            return at.game, solved
        length *= control.grow[found.corrections]
    return None, solved


@dataclass(frozen=True)
class _Bend:
    """Point near the curve, in log prices and log tau (`OnCurve`)."""

    game: CoupledGame
    #: `length^2 = (d log tau)^2 + scale |d log price|^2`.
    scale: float

    @property
    def merit(self) -> float:
        return float(np.abs(self.game.residual).max())

    def moved(self, step: Step, part: float) -> _Bend:
        at = self.game
        tau = np.exp(np.log(at.tau) + part * step[1])
        return _Bend(CoupledGame(at.q, at.price + part * step[0], tau, at.unit, most=at.most), self.scale)

    def solved(self, there: _Bend) -> tuple[Step, Step] | None:
        both = self.game.solve(np.stack([there.game.residual, self.game.drift()]))
        return None if both is None else ((both[0], 0.0), (both[1], 1.0))

    def product(self, one: Step, other: Step) -> float:
        return float(self.scale * (one[0] * other[0]).sum() + one[1] * other[1])

    def part(self, step: Step) -> float:
        return float(1 / max(1.0, float(np.abs(step[0]).max()) / (2 * self.game.tau), abs(step[1])))


def decoupled(q: EquilibriumSystem, most: float = 0.5) -> Place | None:
    """Solution at tau = 1, from equal prices of all resources of a server."""
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))

    def even() -> CoupledGame:
        return CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit, most=most)

    for _ in range(60):
        fullest = np.where(served, np.where(q.row, even().residual, -np.inf).max(axis=1), 0.0)
        if np.abs(fullest).max() < 0.3:
            break
        unit = unit + np.clip(fullest, -2, 2)
    there = newton(even(), 60, 1e-3)
    return None if there.here is None else Place(there.here, there.systems)
