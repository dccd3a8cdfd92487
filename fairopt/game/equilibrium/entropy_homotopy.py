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

from ...engines.linalg.damped_newton import Reached, backtracked, damped_newton
from ...engines.linalg.step_control import signed_length
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from .coupling import CoupledGame
from .options import OPTIONS, HomotopyOptions

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Step = tuple[Array, float]  # of log prices and log tau


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
    q, unit, origin, control = here.q, here.unit, here.tau, options.steps
    scale = min(1.0, options.typical / q.row.sum()) / origin**2

    def product(one: Step, other: Step) -> float:
        return float(scale * (one[0] * other[0]).sum() + one[1] * other[1])

    length, before, solved = control.first, None, 0
    while solved < options.bend_systems:
        along: Step = (here.slope(), 1.0)
        solved += 1
        norm = signed_length(along, before, product)
        tangent: Step = (along[0] / norm, along[1] / norm)
        length = min(length, control.longest * abs(norm))  # or a straight stretch ends at tau = 0
        while True:
            log_tau = np.log(here.tau) + length * tangent[1]
            guess = here.price + length * tangent[0]
            there = CoupledGame(q, guess, np.exp(log_tau), unit, options=options.coupling)
            first = float(np.abs(there.residual).max())
            for turns in range(len(control.grow)):
                residual = float(np.abs(there.residual).max())
                if residual < options.near * there.tau or not residual <= 10 * first or turns == control.most:
                    break
                both = there.solve(np.stack([there.residual, there.drift()]))
                solved += 1
                if both is None:
                    break
                change = -product(tangent, (both[0], 0.0)) / product(tangent, (both[1], 1.0))
                step = both[0] + change * both[1]
                part = 1 / max(1.0, float(np.abs(step).max()) / (2 * there.tau), abs(change))
                log_tau += part * change
                there = CoupledGame(q, there.price + part * step, np.exp(log_tau), unit, options=options.coupling)
            if residual < options.near * there.tau:
                break
            length *= options.bend_shorter
            if length < control.shortest or solved > options.bend_systems:
                return None, solved
        here, before = there, tangent
        if here.tau < (1 - options.past) * origin:
            return here, solved
        length *= control.grow[turns]
    return None, solved


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
