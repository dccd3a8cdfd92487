r"""Pseudo-arclength continuation: a curve is parametrised by its length, so that it can be followed through folds.

:math:`F(u, s) = 0` has one unknown more than equations, the parameter s. The predictor is a step of length h along the
unit tangent; the corrector is Newton's method in the hyperplane orthogonal to it,

.. math::
    F_u n = -F, \qquad F_u a + F_s = 0, \qquad step = (n, 0) + c\,(a, 1), \qquad \langle tangent, step \rangle = 0

A step is a tuple of arrays, the change of s last. Curves implement the protocol `OnCurve`. The curve of equilibria in
alpha (`curve`) has correctors of its own, as its active set changes.

`damped_newton` finds the first point of a curve, by steps that are shortened until the norm of F decreases.

Source: H. B. Keller, "Numerical solution of bifurcation and nonlinear eigenvalue problems" (1977).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from ..accuracy import CORRECTIONS, DECREASE, SHORTER

Step = tuple[Any, ...]
#: Types of a point of a curve, of an iterate of Newton's method, and of a step of such an iterate.
P = TypeVar("P", bound="OnCurve")
T = TypeVar("T")
Move = TypeVar("Move")


@dataclass(frozen=True)
class StepControl:
    """Control of the length of predictor steps, measured by the log of the parameter or by the length of the curve."""

    #: Lengths of the first, the longest and the shortest step.
    first: float
    longest: float
    shortest: float
    #: After a step of length h whose correction failed, the length `shorter h` is tried.
    shorter: float
    #: After a step of length h with k corrections the next step has the length `min(grow[k] h, longest)`.
    grow: tuple[float, ...]

    @property
    def most(self) -> int:
        """Largest number of corrections of a step."""
        return len(self.grow) - 1

    def after(self, length: float, corrections: int) -> float:
        """Length of the next step after a step of this `length` with this number of corrections."""
        return min(length * self.grow[corrections], self.longest)


class OnCurve(Protocol):
    """Point near a curve, with the operations that the corrector uses."""

    @property
    def merit(self) -> float:
        """Norm of F."""
        ...

    def moved(self, step: Step, part: float) -> Self:
        """Point after the fraction `part` of a step."""
        ...

    def solved(self, there: Self) -> tuple[Step, Step] | None:
        """Steps (n, 0), for F at `there`, and (a, 1), with the Jacobian at this point; None if it is singular."""
        ...

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps, which defines length and angles."""
        ...

    def part(self, step: Step) -> float:
        """Fraction of a correction that is taken; 0 to give the correction up."""
        ...


#: Largest merit of a corrected point relative to that of the predictor, since corrections may increase it at first.
_WORSE = 10.0


class Corrected(NamedTuple, Generic[P]):
    """Corrected point, tangent (a, 1) of the last linear system or None, and numbers of corrections and of systems."""

    here: P
    along: Step | None
    corrections: int
    systems: int


def towards(here: OnCurve, along: Step, before: Step | None) -> Step:
    """Unit tangent along (a, 1) or its negative, with a positive product with the unit tangent `before`.

    Without a tangent before, the parameter decreases along the result.
    """
    back = before is None or here.product(along, before) < 0
    scale = (-1 if back else 1) / np.sqrt(here.product(along, along))
    return tuple(scale * part for part in along)


def corrected(
    here: P, tangent: Step, length: float, reached: Callable[[P], bool], most: int, serves: float
) -> Corrected[P]:
    """Correct a predictor of `length` along the tangent, in the hyperplane orthogonal to the tangent.

    Parameters are those of `stepped`. If corrections fail, the last point is returned, which is not `reached`.
    """
    first = here.moved(tangent, length)
    there, system, along, systems, merit = first, first, None, 0, 0.0
    for turns in range(most + 1):
        if reached(there) or not there.merit <= _WORSE * first.merit or turns == most:
            break
        if not there.merit <= serves * merit:
            system, systems = there, systems + 1
        merit = there.merit
        both = system.solved(there)
        if both is None:
            break
        newton, along = both
        change = -here.product(tangent, newton) / here.product(tangent, along)
        step = tuple(one + change * other for one, other in zip(newton, along, strict=True))
        part = there.part(step)
        if not part > 0:
            break
        there = there.moved(step, part)
    return Corrected(there, along, turns, systems)


def stepped(
    here: P,
    tangent: Step,
    length: float,
    shortest: float,
    budget: int,
    reached: Callable[[P], bool],
    most: int = CORRECTIONS,
    serves: float = 0.0,
) -> tuple[Corrected[P] | None, int, float]:
    """Step along the curve; return the corrected point, number of linear systems, and length of the last attempt.

    The point is None if no attempt of a length from `shortest` on succeeds.

    Parameters
    ----------
    length, shortest : first length along the tangent, which is reduced after failures, and smallest length
    budget : number of linear systems after which no further attempt is made
    reached : test whether a point satisfies the equations
    most : largest number of corrections of a predictor
    serves : a Jacobian is used again while corrections reduce the merit at least by this factor
    """
    systems = 0
    while True:
        found = corrected(here, tangent, length, reached, most, serves)
        systems += found.systems
        if reached(found.here):
            return found, systems, length
        length *= SHORTER
        if length < shortest or systems > budget:
            return None, systems, length


class Reached(NamedTuple, Generic[T]):
    """Result of Newton's method: the solution, None for a failure, and numbers of steps and of linear systems."""

    here: T | None
    steps: int
    systems: int


def backtracked(
    attempt: Callable[[float], T | None], length: float, shorter: float, shortest: float
) -> tuple[T | None, float]:
    """First result other than None of `attempt(length)`, `attempt(shorter length)`, ..., and its length.

    If there is no such result, None and the first length below `shortest`.
    """
    while True:
        found = attempt(length)
        if found is not None:
            return found, length
        length *= shorter
        if length < shortest:
            return None, length


def damped_newton(
    here: T,
    solved: Callable[[T], bool],
    step_at: Callable[[T], Move | None],
    moved: Callable[[T, Move, float], T],
    norm: Callable[[T], float],
    most: int,
    shorter: float,
    shortest: float,
    longest: Callable[[Move], float] = lambda step: 1.0,
) -> Reached[T]:
    """Newton's method from `here` with backtracking, of at most `most` steps.

    Parameters
    ----------
    solved : test whether a point satisfies the equations
    step_at : Newton step at a point; None if the matrix is singular or the step is not finite
    moved : point after a fraction t of a step
    norm : norm of the residuals at a point, which every step must decrease
    shorter, shortest : factor by which t is reduced until the norm decreases, and the t below which the method fails
    longest : first fraction of a step that is tried
    """
    before: float | None = None
    for taken in range(most + 1):
        if solved(here):
            return Reached(here, taken, taken)
        step = step_at(here) if taken < most else None
        if step is None:
            return Reached(None, taken, taken)
        before = norm(here) if before is None else before

        def attempt(t: float, at: T = here, step: Move = step, before: float = before) -> tuple[T, float] | None:
            there = moved(at, step, t)
            after = norm(there)
            return (there, after) if after <= (1 - DECREASE * t) * before else None

        found, _ = backtracked(attempt, longest(step), shorter, shortest)
        if found is None:
            return Reached(None, taken, taken + 1)
        here, before = found
    return Reached(None, most, most)
