"""Iterative refinement of Newton steps by conjugate residuals.

Factors are made in single precision, damped, or without what weighs little; the exact equations then put steps right.
Where factors are wrong in a few directions only (parts of a cluster hang together by next to nothing, and the damping
shows), each of those takes one correction, not hundreds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Step = TypeVar("Step")


@dataclass(frozen=True)
class RefinementOptions:
    """When refinement ends."""

    #: Most refinements of a step.
    most: int = 8
    #: Each must leave less than the part `closer` of the residual, in the 2-norm.
    closer: float = 0.7


#: What is used unless a caller says otherwise.
OPTIONS = RefinementOptions()


class Sum(Protocol[Step]):
    """`one + part other`."""

    def __call__(self, one: Step, other: Step, part: float = 1.0) -> Step: ...


def reduced(
    step: Step,
    left_by: Callable[[Step], Array],
    undone: Callable[[Array], Step],
    effect_of: Callable[[Step], Array],
    plus: Sum[Step],
    sufficient: float,
    options: RefinementOptions = OPTIONS,
) -> tuple[Step, bool]:
    """A step that leaves no more than `sufficient` of any equation, or else the best found and False.

    Parameters
    ----------
    left_by : what a step leaves of the equations
    undone : the step that factors give for putting so much right
    effect_of : by how much a step changes what is left
    plus : sums of steps
    """
    done: list[tuple[Step, Array]] = []
    left = left_by(step)
    for _ in range(options.most):
        if float(np.abs(left).max()) <= sufficient:
            return step, True
        more = undone(left)
        effect = -effect_of(more)
        for other, of_other in done:
            part = -float(effect @ of_other)
            more, effect = plus(more, other, part), effect + part * of_other
        norm = float(np.linalg.norm(effect))
        if not norm > 0:  # what is left has been corrected in this very direction
            break
        more, effect = plus(more, more, 1 / norm - 1), effect / norm
        tried = plus(step, more, float(left @ effect))
        after = left_by(tried)
        if not np.linalg.norm(after) < options.closer * np.linalg.norm(left):
            break
        step, left = tried, after
        done.append((more, effect))
    return step, bool(np.abs(left).max() <= sufficient)
