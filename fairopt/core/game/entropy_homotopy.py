r"""Entropy homotopy from decoupled servers to the per-server game.

For a temperature tau in (0, 1] the utility of user n on server i is a function of :math:`X_n^{1-\tau} x_{ni}^\tau`
instead of its total tasks :math:`X_n`, with its tasks :math:`x_{ni}` on the server itself. With the log level l of a
pair, the log of the tasks at which its cost equals the marginal utility,

.. math::
    l_{ni} = \log(\phi_n \gamma_{ni}) - \frac1a \log \sum_r D_{nir} v_{ir}^a, \qquad a = \min(\alpha, 1/\tau),

    \log X_n = \tau \log \sum_i e^{l_{ni}/\tau}, \qquad x_{ni} = X_n\, \mathrm{softmax}(l_n/\tau)_i

At tau = 1 servers are decoupled; tau = 0 is the game. Complementarity of prices is removed by a barrier term of weight
:math:`\epsilon = 0.01 \tau`, a demand for resource r of server i alone that decreases in its price, so that

.. math:: F_{ir}(\log v) = \log(y_{ir} + \epsilon\, (\bar v_i/v_{ir})^h) = 0, \qquad h = \min(\alpha, 1/2),

with the use y of rows and a unit :math:`\bar v_i` of prices, has log prices as its only unknowns. It is solved by
Newton's method for decreasing tau, with a predictor along the tangent. Where a price changes much while tau is nearly
constant (a resource begins to bind whose price had no effect), the curve is followed by pseudo-arclength continuation
until tau has decreased.

Pairs that no longer have tasks may be left out as tau decreases; the equations of a candidate are solved with all
pairs. For crowds of users `crowd` has points at low temperatures to begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...model._arrays import Array, Mask
from ..accuracy import CONVERGED, NEGLIGIBLE, SHORTER, SHORTEST
from .continuation import Reached, Step, StepControl, backtracked, damped_newton, stepped, towards
from .coupling import CoupledGame
from .equilibrium_system import EquilibriumSystem

#: Step control of log tau.
STEPS = StepControl(0.5, 4.0, 1e-4, 0.35, (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6))
#: Largest residual `max |F|` of points on the curve relative to tau.
_RESIDUAL_PER_TAU = 0.1
#: Largest number of Newton steps to the point at tau = 1.
_MOST_STEPS = 60
#: Relative decrease of tau at which the curve counts as having passed a fold.
_FOLD_CROSSED = 0.02
#: Default last temperature.
_LAST_TAU = 1e-7
#: The homotopy is not tried with more than `_MOST_PRICES` prices, since the cost of a linear system grows like the cube
#: of their number, nor with more than `_FEW_PRICES` prices if the product of the numbers of pairs and prices, to which
#: the cost of a matrix is proportional, exceeds `_MOST_WORK`.
_MOST_PRICES, _MOST_WORK, _FEW_PRICES = 1000, 4e6, 64
#: Default number of linear systems: `_BUDGET_TIMES_PRICES` over the number of prices, from `_LEAST_BUDGET` to
#: `_MOST_BUDGET`.
_BUDGET_TIMES_PRICES, _LEAST_BUDGET, _MOST_BUDGET = 2e5, 600, 6000
#: Log prices are extrapolated linearly in tau, or in log tau if their derivative in log tau exceeds this value.
_LINEAR_IN_TAU = 0.5
#: Smallest fraction of a Newton step that is tried (`_SHORTEST_STEP`), and residual that is due to rounding
#: (`_ROUNDING`).
_SHORTEST_STEP, _ROUNDING = 0.02, CONVERGED
#: Newton's method at tau = 1 begins at equal prices of a server's resources, at which the log of its largest use is at
#: most `_NEAR_FULL` in absolute value; each step towards these prices changes their logs by at most `_MOST_CHANGE`.
_NEAR_FULL, _MOST_CHANGE = 0.3, 2
#: Relative accuracy with which the last temperature is attained.
_AT_LAST = NEGLIGIBLE
#: Pairs without tasks are left out once at most this fraction of the pairs has tasks.
_LISTED_ANEW = 0.7


@dataclass(frozen=True)
class Place:
    """Point of the curve, and the number of linear systems solved up to it."""

    here: CoupledGame
    steps: int

    @property
    def tau(self) -> float:
        """Temperature."""
        return self.here.tau


def follow(
    equations: EquilibriumSystem,
    last: float = _LAST_TAU,
    budget: int | None = None,
    warm: bool = False,
    most: float = 0.5,
    listed: bool = False,
) -> Iterator[Place]:
    """Follow the curve from tau = 1 to `last`, and yield its points with `tau <= 1/alpha`, where a = alpha.

    No point is yielded if there are too many prices or pairs, or if Newton's method fails at tau = 1.

    Parameters
    ----------
    last : final temperature
    budget : largest number of linear systems. By default it decreases with the number of prices, in which the cost of a
        system is cubic. Many steps may be needed, as active sets change by one user at a time
    warm : include points of larger tau
    most : largest power of prices in barrier terms, as in `CoupledGame`
    listed : leave out pairs without tasks; the game of each point then has its own pairs, fewer at lower temperatures
    """
    begin, prices = list[Place](), int(equations.row.sum())
    cheap = prices <= _FEW_PRICES or prices * len(equations.server) <= _MOST_WORK
    if cheap and equations.row.size <= _MOST_PRICES:
        start = decoupled(equations, most)
        begin += [] if start is None else [start]
        del start  # frees its arrays of all pairs, of which `cooled` keeps only a part
    if begin:
        if budget is None:
            budget = int(np.clip(_BUDGET_TIMES_PRICES / equations.row.sum(), _LEAST_BUDGET, _MOST_BUDGET))
        yield from cooled(begin.pop(), last, budget, warm, listed)


def cooled(place: Place, last: float, budget: int, warm: bool = False, listed: bool = False) -> Iterator[Place]:
    """Continue the curve from a point to the temperature `last`, and yield points as `follow` does.

    The curve ends early once `budget` linear systems are solved, including those up to `place`, or if a step fails.
    """
    here, systems, length = place.here, place.steps, STEPS.first
    del place  # frees its arrays, which may have many more pairs
    while here.tau > last * (1 + _AT_LAST) and systems < budget:
        if listed and np.count_nonzero(here.part) <= _LISTED_ANEW * len(here.part):
            q = here.q.restricted(np.flatnonzero(here.part))
            here = CoupledGame(q, here.price, here.tau, here.unit, most=here.most)
        slope = here.slope()
        systems += 1

        def colder(length: float, at: CoupledGame = here, slope: Array = slope) -> CoupledGame:
            """Game with log tau lower by `length`, at predicted prices."""
            guess = at.price + np.where(np.abs(slope) > _LINEAR_IN_TAU, -length, np.expm1(-length)) * slope
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
    """Correct `predicted(length)` with backtracking; return the point, number of linear systems, and next length.

    The point is None if no length from `control.shortest` on succeeds.
    """
    systems = 0

    def attempt(length: float) -> Reached[CoupledGame] | None:
        nonlocal systems
        there = newton(predicted(length), control.most)
        systems += there.systems
        return None if there.here is None else there

    found, length = backtracked(attempt, length, control.shorter, control.shortest)
    return (None, systems, length) if found is None else (found.here, systems, control.after(length, found.steps))


def newton(here: CoupledGame, most: int, shortest: float = _SHORTEST_STEP) -> Reached[CoupledGame]:
    """Correct a point to the curve at its temperature by at most `most` damped Newton steps, of at least `shortest`."""
    return damped_newton(
        here,
        lambda at: float(np.abs(at.residual).max()) < max(_RESIDUAL_PER_TAU * at.tau, _ROUNDING),
        lambda at: at.solve(at.residual) if np.isfinite(at.residual).all() else None,
        lambda at, step, t: at.moved(t * step),
        lambda at: float(np.linalg.norm(at.residual)),
        most,
        SHORTER,
        shortest,
    )


def _around_fold(here: CoupledGame, most: int) -> tuple[CoupledGame | None, int]:
    """Follow the curve by arc length until tau has decreased; return the point, or None, and number of systems."""
    origin, control = here.tau, STEPS
    at = _ArclengthPoint(here, min(1.0, 10.0 / here.q.row.sum()) / origin**2)

    def reached(at: _ArclengthPoint) -> bool:
        return at.merit < _RESIDUAL_PER_TAU * at.game.tau

    length, previous, solved = control.first, None, 0
    while solved < most:
        raw_tangent: Step = (at.game.slope(), 1.0)
        # The step in log tau is bounded, since on a straight section of the curve it could lead to tau = 0.
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
    #: Weight of log prices in the length of the curve, `length^2 = (d log tau)^2 + scale |d log price|^2`.
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
    """Point of the curve at tau = 1, where every server is a problem of its own; None if Newton's method fails.

    Newton's method starts at equal prices of a server's resources, at which its fullest resource is nearly exhausted.
    """
    served: Mask = np.asarray(q.row.any(axis=1))
    unit = np.zeros(len(served))

    def uniform_prices() -> CoupledGame:
        return CoupledGame(q, np.repeat(unit[:, None], q.row.shape[1], axis=1), 1.0, unit, most=most)

    for _ in range(_MOST_STEPS):
        log_overuse = np.where(served, np.where(q.row, uniform_prices().residual, -np.inf).max(axis=1), 0.0)
        if np.abs(log_overuse).max() < _NEAR_FULL:
            break
        unit = unit + np.clip(log_overuse, -_MOST_CHANGE, _MOST_CHANGE)
    solution = newton(uniform_prices(), _MOST_STEPS, SHORTEST)
    return None if solution.here is None else Place(solution.here, solution.systems)
