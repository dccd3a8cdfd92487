"""Continuation: how long the next step along a curve is, and which way along it leads on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Step = TypeVar("Step")


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


@dataclass(frozen=True)
class FactorControl(StepControl):
    """The same for factors of the parameter, whose logarithms are lengths."""

    def after(self, length: float, corrections: int) -> float:
        return float(min(length ** self.grow[corrections], self.longest))


def signed_length(along: Step, before: Step | None, product: Callable[[Step, Step], float]) -> float:
    """The length of a tangent, negative where it leads back: `along / signed_length` goes on.

    Parameters
    ----------
    before : the tangent at the point before; None at the first, from where the parameter falls
    product : inner product of steps
    """
    return float(np.sqrt(product(along, along))) * (-1 if before is None or product(along, before) < 0 else 1)
