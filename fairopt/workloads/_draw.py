"""Draw some of many, with an explicit generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError


def choose(count: int, wanted: int | float | None, rng: np.random.Generator | None, what: str) -> NDArray[np.intp]:
    """Indices of `wanted` out of `count`, without replacement, ascending.

    `wanted` is a number (int), a fraction in (0, 1] (float; rounded, at least one) or None for all.
    Nothing is drawn, and no `rng` is needed, when all are wanted.
    """
    if wanted is None:
        return np.arange(count)
    number = _number(count, wanted, what)
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


def _number(count: int, wanted: int | float, what: str) -> int:
    if isinstance(wanted, float):
        if not 0 < wanted <= 1:
            raise DataError(f"a fraction of the {what} must be above 0 and at most 1; got {wanted!r}")
        return max(1, round(wanted * count))
    positive(wanted, what)
    if wanted > count:
        raise DataError(f"{wanted} {what} are wanted, but there are only {count}; ask for fewer")
    return wanted
