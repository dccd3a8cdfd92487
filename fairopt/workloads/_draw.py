"""Draw some of many, with an explicit generator; and what the numbers that sources take must be.

A check stands in the type of an option, `users: Annotated[int, positive]`, so that a name is checked before anything is
read or drawn, and the function that takes it calls the same check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model._arrays import Index

Whole = NDArray[np.int64]


def choose(count: int, wanted: int | float | None, rng: np.random.Generator | None, what: str) -> Index:
    """Indices of `wanted` out of `count`, without replacement, ascending.

    `wanted` is a number (int), a fraction in (0, 1] (float; rounded, at least one) or None for all.
    Nothing is drawn, and no `rng` is needed, when all are wanted.
    """
    number = count
    if wanted is not None:
        amount(wanted, what)
        number = max(1, round(wanted * count)) if isinstance(wanted, float) else wanted
    if number > count:
        raise DataError(f"{wanted} {what} are wanted, but there are only {count}; ask for fewer")
    if number == count:
        return np.arange(count)
    return np.sort(needed(rng, f"draw {number} of {count} {what}").choice(count, size=number, replace=False))


def needed(rng: np.random.Generator | None, purpose: str) -> np.random.Generator:
    """`rng`, or a `DataError` that says what it is needed for."""
    if rng is None:
        raise DataError(f"a random generator is needed to {purpose}; pass rng=numpy.random.default_rng(seed)")
    return rng


def positive(number: int, what: str) -> int:
    """`number`, if it is a whole number >= 1."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise DataError(f"the number of {what} must be a whole number >= 1; got {number!r}")
    return int(number)


def amount(wanted: int | float, what: str) -> None:
    """A number of them, or a fraction in (0, 1]."""
    if not isinstance(wanted, float):
        positive(wanted, what)
    elif not 0 < wanted <= 1:
        raise DataError(f"a fraction of the {what} must be above 0 and at most 1; got {wanted!r}")


def probability(value: float, what: str) -> None:
    """In (0, 1]."""
    if not 0 < value <= 1:
        raise DataError(f"{what} must be in (0, 1]; got {value!r}")


def not_negative(value: float, what: str) -> None:
    """A finite number >= 0."""
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"{what} must be a number >= 0; got {value!r}")


def above_zero(value: float, what: str) -> None:
    """A finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise DataError(f"{what} must be a number > 0; got {value!r}")


def finite(value: float, what: str) -> None:
    """A finite number."""
    if not math.isfinite(value):
        raise DataError(f"{what} must be a number; got {value!r}")


class Room:
    """Idle amounts of nodes, (nodes, resources), in whole units such as milli-CPU and MiB."""

    def __init__(self, capacity: Whole) -> None:
        self.left = np.array(capacity, dtype=np.int64)

    def take(self, asks: Sequence[int], tried: Whole, count: int = 1) -> list[int]:
        """Run on the first `count` of the nodes tried that have room, and say which; where they are fewer, on none."""
        need = np.asarray(asks, dtype=np.int64)
        fits = tried[(self.left[tried] >= need).all(axis=1)]
        chosen = [int(k) for k in dict.fromkeys(fits.tolist())][:count]
        if len(chosen) < count:
            return []
        self.left[chosen] -= need
        return chosen
