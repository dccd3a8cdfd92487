"""Damped Newton steps: a step is shortened until it helps, and taken until the equations hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
Step = TypeVar("Step")


@dataclass(frozen=True)
class DampingOptions:
    """When a step of length t is accepted, and what is tried otherwise."""

    #: Accepted: `norm after <= (1 - decrease t) norm before`.
    decrease: float = 0.1
    #: Otherwise `t = shorter t`,
    shorter: float = 0.4
    #: until `t < shortest`, where the step is given up.
    shortest: float = 1e-3


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
    step_at: Callable[[T], Step | None],
    moved: Callable[[T, Step, float], T],
    norm: Callable[[T], float],
    most: int,
    options: DampingOptions,
    longest: Callable[[Step], float] = lambda step: 1.0,
) -> Reached[T]:
    """Newton's method from `here`, at most `most` steps.

    Parameters
    ----------
    solved : do the equations hold well enough at a point?
    step_at : Newton's step at a point; None where the matrix is singular or the step is not finite
    moved : the point after a part of a step
    norm : of the residuals at a point, which every step must make smaller
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

        def attempt(t: float, at: T = here, step: Step = step, before: float = before) -> tuple[T, float] | None:
            there = moved(at, step, t)
            after = norm(there)
            return (there, after) if after <= (1 - options.decrease * t) * before else None

        found, _ = backtracked(attempt, longest(step), options.shorter, options.shortest)
        if found is None:
            return Reached(None, taken, taken + 1)
        here, before = found
    return Reached(None, most, most)
