"""Column screening: pairs (user, server) clearly dearer than what their user pays take no part in Newton steps.

The rule, and what it spares, is the same in every interior point; what a pair has and how it comes back is not, and is
theirs. z is a pair's slack as a part of what its user pays, x its tasks, gap what is left of the gap, relative.
(Bixby's method for linear programs with many columns is a relative.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ScreeningOptions:
    """Which pairs leave, and when they come back."""

    #: With at most `many` pairs all take part, and where users have at most `coupled` resources in all their pairs on
    #: average: their couplings, the square of that, are what screening saves. (On a few types of servers prices swing
    #: so far at first that pairs would come and go without end.)
    many: int = 20_000
    coupled: float = 150.0
    #: Screen out (n, i) if `z[n,i] >= max(far gap, least_far)` and `x[n,i] <= little x[n]`.
    far: float = 25.0
    least_far: float = 5e-3
    little: float = 1e-3
    #: It comes back if `z[n,i] < nearer max(far gap, least_far)`,
    nearer: float = 0.25
    #: or if a full step would take away more than the part `soon` of its slack;
    soon: float = 0.5
    #: no step takes away more than the part `most`.
    most: float = 0.9
    #: It comes back with at most `back x[n]`.
    back: float = 2e-4
    #: Pairs are sorted anew once the part `worthwhile` of those that take part can leave.
    worthwhile: float = 0.2


#: What is used unless a caller says otherwise.
OPTIONS = ScreeningOptions()


def applies(pairs: int, resources: int, users: int, gap: float, options: ScreeningOptions = OPTIONS) -> bool:
    """Are there enough pairs, in all and for a user, and is the gap known?"""
    return pairs > options.many and pairs * resources > options.coupled * users and bool(np.isfinite(gap))


def far(gap: float, options: ScreeningOptions = OPTIONS) -> float:
    """The slack from which on a pair may be screened out."""
    return max(options.far * gap, options.least_far)


def staying(dear: Mask, start: Index, user: Index) -> Mask:
    """(pairs,): all but those that are `dear` and have little; nobody loses all pairs."""
    kept = ~dear
    kept |= ~np.logical_or.reduceat(kept, start[:-1])[user]
    return kept


def worthwhile(kept: Mask, options: ScreeningOptions = OPTIONS) -> bool:
    """Do enough pairs leave?"""
    return bool(np.count_nonzero(kept) <= (1 - options.worthwhile) * len(kept))


def longest(rate: float, options: ScreeningOptions = OPTIONS) -> float:
    """The longest step, at most 1, if a full one takes away at most the part `rate` of any screened slack."""
    return min(options.most / max(rate, options.most), 1.0)
