r"""Entropy homotopy from decoupled servers to the per-server game.

For a temperature tau in (0, 1] a server counts the tasks of a user as `X^(1-tau) x^tau`, with total tasks X and tasks x
on the server itself, so that with log levels `l_ni = log(phi_n gamma_ni) - log norm_i(n)`

.. math:: \log X_n = \tau \log \sum_i e^{l_{ni}/\tau}, \qquad x_{ni} = X_n\, \mathrm{softmax}(l_n/\tau)_i.

At tau = 1 servers are decoupled; tau = 0 is the game. Complementarity of prices is removed by a barrier term of weight
eps = 0.01 tau, a demand `eps/v_ir^h` for resource r of server i alone with h = min(alpha, 1/2), so that

.. math:: F_{ir}(\log v) = \log(use_{ir} + \epsilon_i/v_{ir}^h) = 0, \qquad a = \min(\alpha, 1/\tau)
    \text{ in place of } \alpha,

has log prices as its only unknowns. It is solved by Newton's method for decreasing tau, with a predictor along the
tangent. Where a price changes much while tau hardly does (a resource begins to bind whose price had no effect), the
curve is followed by pseudo-arclength continuation until tau has decreased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...model._arrays import Array, Mask
from .continuation import SHORTER, Reached, Step, StepControl, backtracked, damped_newton, stepped, towards
from .coupling import CoupledGame
from .equilibrium_system import EquilibriumSystem

#: Step control of log tau.
STEPS = StepControl(0.5, 4.0, 1e-4, 0.35, (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6))
#: Largest residual `max |F|` of points on the curve relative to tau.
_RESIDUAL_PER_TAU = 0.1
#: Largest numbers of steps to the beginning of the curve.
_MOST_STEPS = 60
#: Relative decrease of tau after which a fold has been passed.
_FOLD_CROSSED = 0.02


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
    """Follow the curve from tau = 1 to `last` within `budget` systems: points with a = alpha; none if too large.

    With `warm` points at larger tau are included; `most` as in `CoupledGame`. Active sets change by one user at a time:
    the default budget is larger the fewer prices, and the cheaper systems, there are.
    """
    # The cost of a system is cubic in the number of prices.
    start = decoupled(equations, most) if equations.row.size <= 1000 else None
    if start is not None:
        budget = int(np.clip(2e5 / equations.row.sum(), 600, 6000)) if budget is None else budget
        yield from cooled(start, last, budget, warm)


def cooled(place: Place, last: float, budget: int, warm: bool = False) -> Iterator[Place]:
    """Continue the curve to `last`: points with a = alpha, until `budget` systems are solved in total."""
    here, systems, length = place.here, place.steps, STEPS.first
    while here.tau > last * (1 + 1e-9) and systems < budget:
        slope = here.slope()
        systems += 1

        def colder(length: float, at: CoupledGame = here, slope: Array = slope) -> CoupledGame:
            """Game with log tau lower by `length`, at predicted prices."""
            guess = at.price + np.where(np.abs(slope) > 0.5, -length, np.expm1(-length)) * slope
            return CoupledGame(at.q, guess, at.tau * np.exp(-length), at.unit, most=at.most)

        found, more, length = ahead(colder, min(length, float(np.log(here.tau / last))), STEPS)
        systems += more
        if found is None:
            found, more = _around_fold(here, budget - systems)
            systems, length = systems + more, _FOLD_CROSSED
        if found is None:
            return
        here = found
        if warm or here.tau * here.q.alpha <= 1:
            yield Place(here, systems)


def ahead(
    predicted: Callable[[float], CoupledGame], length: float, control: StepControl
) -> tuple[CoupledGame | None, int, float]:
    """Corrected point from `predicted(length)` with backtracking of the length, systems, and the next length."""
    systems = 0

    def attempt(length: float) -> Reached[CoupledGame] | None:
        nonlocal systems
        there = newton(predicted(length), control.most)
        systems += there.systems
        return None if there.here is None else there

    found, length = backtracked(attempt, length, control.shorter, control.shortest)
    return (None, systems, length) if found is None else (found.here, systems, control.after(length, found.steps))


def newton(here: CoupledGame, most: int, shortest: float = 0.02) -> Reached[CoupledGame]:
    """Correct a point to the curve at its temperature by damped Newton steps."""
    return damped_newton(
        here,
        lambda at: float(np.abs(at.residual).max()) < max(_RESIDUAL_PER_TAU * at.tau, 1e-12),
        lambda at: at.solve(at.residual) if np.isfinite(at.residual).all() else None,
        lambda at, step, t: at.moved(t * step),
        lambda at: float(np.linalg.norm(at.residual)),
        most,
        SHORTER,
        shortest,
    )


def _around_fold(here: CoupledGame, most: int) -> tuple[CoupledGame | None, int]:
    """Follow the curve by arc length until tau has decreased: the point or None, and the systems solved."""
    origin, control = here.tau, STEPS
    at = _ArclengthPoint(here, min(1.0, 10.0 / here.q.row.sum()) / origin**2)

    def reached(at: _ArclengthPoint) -> bool:
        return at.merit < _RESIDUAL_PER_TAU * at.game.tau

    length, previous, solved = control.first, None, 0
    while solved < most:
        raw_tangent: Step = (at.game.slope(), 1.0)
        # The step in log tau is bounded, since on a straight section it could reach tau = 0.
        length = min(length, control.longest * np.sqrt(at.product(raw_tangent, raw_tangent)))
        previous = towards(at, raw_tangent, previous)
        budget = most - solved - 1
        found, systems, length = stepped(at, previous, length, control.shortest, budget, reached)
        solved += 1 + systems
        if found is None:
            return None, solved
        at = found.here
        if at.game.tau < (1 - _FOLD_CROSSED) * origin:
            return at.game, solved
        length *= control.grow[found.corrections]
    return None, solved


@dataclass(frozen=True)
class _ArclengthPoint:
    """Point near the curve in log prices and log tau, in the form of `continuation.OnCurve`."""

    game: CoupledGame
    #: `length^2 = (d log tau)^2 + scale |d log price|^2`.
    scale: float

    @property
    def merit(self) -> float:
        """Largest residual."""
        return float(np.abs(self.game.residual).max())

    def moved(self, step: Step, part: float) -> _ArclengthPoint:
        """Point after a step of length `part`."""
        at = self.game
        tau = np.exp(np.log(at.tau) + part * step[1])
        return _ArclengthPoint(CoupledGame(at.q, at.price + part * step[0], tau, at.unit, most=at.most), self.scale)

    def solved(self, there: _ArclengthPoint) -> tuple[Step, Step] | None:
        """Newton step from `there` at constant tau, and the tangent; None if the Jacobian is singular."""
        both = self.game.solve(np.stack([there.game.residual, self.game.drift()]))
        return None if both is None else ((both[0], 0.0), (both[1], 1.0))

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps."""
        return float(self.scale * (one[0] * other[0]).sum() + one[1] * other[1])

    def part(self, step: Step) -> float:
        """Step length that bounds changes of log prices by 2 tau, and of log tau by 1."""
        return float(1 / max(1.0, float(np.abs(step[0]).max()) / (2 * self.game.tau), abs(step[1])))


def decoupled(q: EquilibriumSystem, most: float = 0.5) -> Place | None:
    """Solution at tau = 1, by Newton's method from equal prices of the resources of a server."""
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))

    def uniform_prices() -> CoupledGame:
        return CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit, most=most)

    for _ in range(_MOST_STEPS):
        log_overuse = np.where(served, np.where(q.row, uniform_prices().residual, -np.inf).max(axis=1), 0.0)
        if np.abs(log_overuse).max() < 0.3:
            break
        unit = unit + np.clip(log_overuse, -2, 2)
    solution = newton(uniform_prices(), _MOST_STEPS, 1e-3)
    return None if solution.here is None else Place(solution.here, solution.systems)
