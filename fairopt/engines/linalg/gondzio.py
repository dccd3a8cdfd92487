"""Gondzio's correctors: a step made longer by bringing back the products that leave their neighbourhood.

Source: Gondzio, "Multiple centrality corrections in a primal-dual method for linear programming", COAP 6 (1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Step = TypeVar("Step")
Lengths = tuple[float, ...]  # of one step, or of its primal and its dual part


@dataclass(frozen=True)
class CorrectorOptions:
    """How many correctors, and what they must bring. Lengths t are parts of a step, from 0 to 1."""

    #: Most correctors of a step.
    most: int = 5
    #: No corrector if `t > full`.
    full: float = 0.9
    #: A corrector aims at the length `far = min(1, stretch t + longer)`,
    stretch: float = 1.1
    longer: float = 0.5
    #: and is kept if its step has at least the length `t + gain (far - t) + least_gain`.
    gain: float = 0.01
    least_gain: float = 0.0
    #: Products are brought back to between `low target` and `high target`.
    low: float = 0.1
    high: float = 10.0


def beyond(products: Array, target: float, options: CorrectorOptions) -> Array:
    """What brings products back to between `low target` and `high target`, taking away at most `high target`."""
    low, high = options.low * target, options.high * target
    return np.asarray(np.maximum(np.clip(products, low, high) - products, -high))


def corrected(
    step: Step,
    retried: Callable[[Step, Lengths], Step],
    longest: Callable[[Step], Lengths],
    options: CorrectorOptions,
    most: int | None = None,
) -> tuple[Step, Lengths]:
    """The last step that a corrector made longer, and its lengths.

    Parameters
    ----------
    retried : the step with a corrector for the products after the lengths that are aimed at
    longest : the longest lengths, at most 1, after which nothing is negative
    most : fewer correctors than the options allow
    """
    lengths = longest(step)
    for _ in range(options.most if most is None else min(options.most, most)):
        t = min(lengths)
        if t > options.full:
            break
        far = tuple(min(1.0, options.stretch * each + options.longer) for each in lengths)
        tried = retried(step, far)
        further = longest(tried)
        if min(further) < t + options.gain * (min(far) - t) + options.least_gain:
            break
        step, lengths = tried, further
    return step, lengths
