"""Pseudo-arclength continuation (Keller 1977): a curve followed by its length, through folds of its parameter.

F(u, s) = 0 has one unknown more than equations, s the parameter. From a place on the curve a step of length h leads
along the tangent; Newton's method leads back in the plane across it:

    F_u n = -F,    F_u a + F_s = 0,    step = (n, 0) + c (a, 1),    <tangent, step> = 0.

A step is a tuple of arrays, the change of s last. Whoever is followed this way says what its equations are
(`OnCurve`). The curve of alpha (`game/curve/curve.py`) has its own correctors, as docs/architecture.md says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from .step_control import signed_length

Step = tuple[Any, ...]


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


@dataclass(frozen=True)
class CorrectionOptions:
    """Options of correctors, and of what is tried where they fail."""

    #: Most corrections of a step.
    most: int = 8
    #: After a step of length s from which corrections failed, `shorter s` is tried.
    shorter: float = 0.4
    #: Corrections may make the merit `worse` times as large before it gets better.
    worse: float = 10.0
    #: A matrix serves again while `merit <= serves merit before`; 0: never.
    serves: float = 0.0


P = TypeVar("P", bound=OnCurve)


class Corrected(NamedTuple, Generic[P]):
    """Corrected point, its tangent (a, 1), numbers of corrections and systems, and the length used."""

    here: P
    along: Step | None
    corrections: int
    systems: int
    length: float


def towards(here: OnCurve, along: Step, before: Step | None) -> Step:
    """The tangent (a, 1) at length 1, on as the one `before`, at first to where the parameter falls."""
    scale = 1 / signed_length(along, before, here.product)
    return tuple(scale * part for part in along)


def corrected(
    here: P, tangent: Step, length: float, reached: Callable[[P], bool], options: CorrectionOptions
) -> Corrected[P]:
    """Correct a predictor of `length` along the tangent, in the plane orthogonal to it."""
    first = here.moved(tangent, length)
    there, system, along, systems, merit = first, first, None, 0, 0.0
    for turns in range(options.most + 1):
        if reached(there) or not there.merit <= options.worse * first.merit or turns == options.most:
            break
        if not there.merit <= options.serves * merit:
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
    return Corrected(there, along, turns, systems, length)


def stepped(
    here: P,
    tangent: Step,
    length: float,
    shortest: float,
    budget: int,
    reached: Callable[[P], bool],
    options: CorrectionOptions,
) -> tuple[Corrected[P] | None, int, float]:
    """The curve at most `length` along the tangent, systems that were solved, and the length of the last attempt.

    None where no step of at least `shortest` succeeds, or more than `budget` systems are needed.
    """
    systems = 0
    while True:
        found = corrected(here, tangent, length, reached, options)
        systems += found.systems
        if reached(found.here):
            return found, systems, length
        length *= options.shorter
        if length < shortest or systems > budget:
            return None, systems, length
