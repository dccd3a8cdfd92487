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
curve is followed by its length. From a point on the way the interior point goes on, or the curve itself goes on to
where nothing is left of tau.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...engines.linalg.arclength import Step, stepped, towards
from ...engines.linalg.damped_newton import Reached, backtracked, damped_newton
from ...engines.linalg.step_control import signed_length
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from .coupling import CoupledGame
from .options import OPTIONS, HomotopyOptions

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Place:
    """A game of the homotopy at its solution, and the systems that were solved on the way."""

    here: CoupledGame
    steps: int

    @property
    def tau(self) -> float:
        """Its temperature."""
        return self.here.tau

    @cached_property
    def point(self) -> EquilibriumPoint:
        """Where the interior point can go on."""
        return self.here.point()


def follow(
    equations: EquilibriumSystem,
    last: float = 1e-7,
    budget: int = 600,
    options: HomotopyOptions = OPTIONS.homotopy,
    warm: bool = False,
) -> Iterator[Place]:
    """Points as tau falls from 1 to `last`, once alpha itself is reached, at most `budget` systems; none if large.

    `warm`: those before that as well.
    """
    start = decoupled(equations, options) if equations.row.size <= options.largest else None
    if start is not None:
        yield from cooled(start, last, budget, options, warm)


def cooled(
    place: Place, last: float, budget: int, options: HomotopyOptions = OPTIONS.homotopy, warm: bool = False
) -> Iterator[Place]:
    """Points as tau falls on to `last`, once alpha itself is reached, until `budget` systems are solved in all."""
    here, systems, control = place.here, place.steps, options.steps
    length = control.first
    while here.tau > last * (1 + 1e-9) and systems < budget:
        slope = here.slope()
        systems += 1

        def attempt(length: float, at: CoupledGame = here, slope: Array = slope) -> tuple[CoupledGame, int] | None:
            """The curve where log tau is lower by `length`, and the Newton steps there."""
            nonlocal systems
            guess = at.price + np.where(np.abs(slope) > 0.5, -length, np.expm1(-length)) * slope
            game = CoupledGame(at.q, guess, at.tau * np.exp(-length), at.unit, options=options.coupling)
            there = newton(game, control.most, options)
            systems += there.systems
            return None if there.here is None else (there.here, there.steps)

        length = min(length, float(np.log(here.tau / last)))
        found, length = backtracked(attempt, length, control.shorter, control.shortest)
        if found is not None:
            here, length = found[0], control.after(length, found[1])
        else:
            past, more = _past(here, options)
            systems += more
            if past is None:
                return
            here, length = past, options.past
        if warm or here.tau * here.q.alpha <= 1:
            yield Place(here, systems)


def newton(here: CoupledGame, most: int, options: HomotopyOptions = OPTIONS.homotopy) -> Reached[CoupledGame]:
    """The curve at the temperature of `here`."""
    return damped_newton(
        here,
        lambda at: float(np.abs(at.residual).max()) < max(options.near * at.tau, options.exact),
        lambda at: at.solve(at.residual) if np.isfinite(at.residual).all() else None,
        lambda at, step, t: at.moved(t * step),
        lambda at: float(np.linalg.norm(at.residual)),
        most,
        options.damping,
    )


def _past(here: CoupledGame, options: HomotopyOptions) -> tuple[CoupledGame | None, int]:
    """The curve followed by its length until tau has fallen a little, or None; and the systems solved."""
    origin, control = here.tau, options.steps
    at = _Bend(here, min(1.0, options.typical / here.q.row.sum()) / origin**2)

    def reached(at: _Bend) -> bool:
        return at.merit < options.near * at.game.tau

    length, before, solved = control.first, None, 0
    while solved < options.bend_systems:
        along: Step = (at.game.slope(), 1.0)
        # No longer than this, or a straight stretch ends at tau = 0.
        length = min(length, control.longest * abs(signed_length(along, None, at.product)))
        before = towards(at, along, before)
        budget = options.bend_systems - solved - 1
        found, more, length = stepped(at, before, length, control.shortest, budget, reached, options.bend)
        solved += 1 + more
        if found is None:
            return None, solved
        at = found.here
        if at.game.tau < (1 - options.past) * origin:
            return at.game, solved
        length *= control.grow[found.corrections]
    return None, solved


@dataclass(frozen=True)
class _Bend:
    """A game near the curve, of log prices and log tau (`OnCurve`)."""

    game: CoupledGame
    #: `length^2 = (d log tau)^2 + scale |d log price|^2`.
    scale: float

    @property
    def merit(self) -> float:
        return float(np.abs(self.game.residual).max())

    def moved(self, step: Step, part: float) -> _Bend:
        at = self.game
        tau = np.exp(np.log(at.tau) + part * step[1])
        return _Bend(CoupledGame(at.q, at.price + part * step[0], tau, at.unit, options=at.options), self.scale)

    def solved(self, there: _Bend) -> tuple[Step, Step] | None:
        both = self.game.solve(np.stack([there.game.residual, self.game.drift()]))
        return None if both is None else ((both[0], 0.0), (both[1], 1.0))

    def product(self, one: Step, other: Step) -> float:
        return float(self.scale * (one[0] * other[0]).sum() + one[1] * other[1])

    def part(self, step: Step) -> float:
        return float(1 / max(1.0, float(np.abs(step[0]).max()) / (2 * self.game.tau), abs(step[1])))


def decoupled(q: EquilibriumSystem, options: HomotopyOptions = OPTIONS.homotopy) -> Place | None:
    """tau = 1, from prices that are the same for all resources of a server and fill it."""
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))

    def even() -> CoupledGame:
        return CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit, options=options.coupling)

    for _ in range(60):
        most = np.where(served, np.where(q.row, even().residual, -np.inf).max(axis=1), 0.0)
        if np.abs(most).max() < 0.3:
            break
        unit = unit + np.clip(most, -2, 2)
    there = newton(even(), options.start_steps, options)
    return None if there.here is None else Place(there.here, there.systems)
