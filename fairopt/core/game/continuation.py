"""Pseudo-arclength continuation (Keller 1977): a curve followed by its length, through folds of its parameter.

F(u, s) = 0 has one unknown more than equations, s the parameter. From a place on the curve a step of length h leads
along the tangent; Newton's method leads back in the plane across it:

    F_u n = -F,    F_u a + F_s = 0,    step = (n, 0) + c (a, 1),    <tangent, step> = 0.

A step is a tuple of arrays, the change of s last. Whoever is followed this way says what its equations are
(`OnCurve`). The curve of alpha (`curve.py`) has its own correctors.

Damped Newton steps lead to where a curve begins: shortened until they help, and taken until the equations hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

Step = tuple[Any, ...]
#: A place on a curve, an iterate, and a change of one.
P = TypeVar("P", bound="OnCurve")
T = TypeVar("T")
Move = TypeVar("Move")


@dataclass(frozen=True)
class StepControl:
    """Lengths of predictor steps, in logarithms of the parameter or in the length of the curve."""

    #: Lengths of the first step, the longest and the shortest.
    first: float
    longest: float
    shortest: float
    #: After a step of length s from which corrections failed, `shorter s` is tried.
    shorter: float
    #: After one that took k corrections, the next is `min(grow[k] s, longest)`.
    grow: tuple[float, ...]

    @property
    def most(self) -> int:
        """Most corrections."""
        return len(self.grow) - 1

    def after(self, length: float, corrections: int) -> float:
        """The next length after a step that took `corrections` corrections."""
        return min(length * self.grow[corrections], self.longest)


class OnCurve(Protocol):
    """A place near the curve."""

    @property
    def merit(self) -> float:
        """The size of F, which corrections make smaller."""
        ...

    def moved(self, step: Step, part: float) -> Self:
        """The place after a part of a step."""
        ...

    def solved(self, there: Self) -> tuple[Step, Step] | None:
        """(n, 0) for F at `there`, and (a, 1), by the matrix at this place; None where that is singular."""
        ...

    def product(self, one: Step, other: Step) -> float:
        """Inner product of steps, which says what length is."""
        ...

    def part(self, step: Step) -> float:
        """The part of a correction that is taken; 0 where it leads nowhere."""
        ...


#: After a step of length s from which corrections failed `SHORTER s` is tried.
SHORTER = 0.4
#: Corrections may make the merit so many times as large before it gets better.
_WORSE = 10.0
#: Newton steps of length t are accepted if `norm after <= (1 - DECREASE t) norm before`.
_DECREASE = 0.1


class Corrected(NamedTuple, Generic[P]):
    """Corrected point, its tangent (a, 1), and numbers of corrections and systems."""

    here: P
    along: Step | None
    corrections: int
    systems: int


def towards(here: OnCurve, along: Step, before: Step | None) -> Step:
    """The tangent (a, 1) at length 1, on as the one `before`, at first to where the parameter falls."""
    back = before is None or here.product(along, before) < 0
    scale = (-1 if back else 1) / np.sqrt(here.product(along, along))
    return tuple(scale * part for part in along)


def corrected(
    here: P, tangent: Step, length: float, reached: Callable[[P], bool], most: int, serves: float
) -> Corrected[P]:
    """Correct a predictor of `length` along the tangent, in the plane orthogonal to it."""
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
    most: int = 8,
    serves: float = 0.0,
) -> tuple[Corrected[P] | None, int, float]:
    """The curve at most `length` along the tangent, systems that were solved, and the length of the last attempt.

    None where no step of at least `shortest` succeeds with `most` corrections, or more than `budget` systems are
    needed. A matrix serves again while `merit <= serves merit before`.
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
    """Result of Newton's method: the point or None, and numbers of steps and of systems solved."""

    here: T | None
    steps: int
    systems: int


def backtracked(
    attempt: Callable[[float], T | None], length: float, shorter: float, shortest: float
) -> tuple[T | None, float]:
    """The first success among `attempt(length)`, `attempt(shorter length)`, ..., and its length.

    None, with the first length below `shortest`, where there is no success.
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
    """Newton's method from `here`, at most `most` steps.

    Parameters
    ----------
    solved : do the equations hold well enough at a point?
    step_at : Newton's step at a point; None where the matrix is singular or the step is not finite
    moved : the point after a part of a step
    norm : of the residuals at a point, which every step must make smaller
    shorter, shortest : otherwise `t = shorter t`, until `t < shortest`, where the step is given up
    longest : the first part of a step that is tried
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
            return (there, after) if after <= (1 - _DECREASE * t) * before else None

        found, _ = backtracked(attempt, longest(step), shorter, shortest)
        if found is None:
            return Reached(None, taken, taken + 1)
        here, before = found
    return Reached(None, most, most)
