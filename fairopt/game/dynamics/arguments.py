"""Checks of arguments of the distributed game: plain numbers, or an error that names the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DataError
from ...model._validate import number, whole

#: Tasks are exponentials of logs of prices over alpha: rounding leaves them an error of `_ROUNDING/alpha`.
_ROUNDING = 1e-15
#: From `alpha = _PLAIN` on that bounds no tolerance.
_PLAIN = 1e-3


def alpha_of(value: Any, tol: float) -> float:
    """Check alpha: positive, possibly infinite, and not so small that rounding alone misses the tolerance."""
    rule = "a number > 0, perhaps infinite. For alpha = 0 use AlphaPFVDS(0)"
    alpha = number(value, "alpha", rule)
    if not alpha > 0:
        raise DataError(f"alpha is {alpha:g}; it must be {rule}")
    least = min(_ROUNDING / tol, _PLAIN)
    if alpha < least:
        raise DataError(
            f"alpha is {alpha:g}; for tol={tol:g} it must be at least {least:g}, as rounding errors of tasks grow like "
            f"{_ROUNDING:g}/alpha. Relax tol, or use AlphaPFVDS(0) for alpha = 0"
        )
    return alpha


def damping_of(value: Any) -> float | None:
    """Check the damping: in (0, 2), or None for the order's own."""
    if value is None:
        return None
    rule = "between 0 (stand still) and 2, 1 for the response itself"
    damping = number(value, "damping", rule)
    if not 0 < damping < 2:
        raise DataError(f"damping is {damping:g}; it must be {rule}")
    return damping


def rounds_of(value: Any) -> int:
    """Check a number of rounds: a whole number, at least 1."""
    return whole(value, "max_rounds")


def generator_of(value: Any) -> np.random.Generator:
    """Return a generator, made from a seed if need be."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"rng is {value!r}; it must be a seed (a whole number >= 0) or a generator ({error})") from None


def choice_of(value: Any, what: str, known: tuple[str, ...]) -> str:
    """Check that a name is among the known ones."""
    if not isinstance(value, str) or value not in known:
        raise DataError(f"{what} {value!r} is not one of {', '.join(known)}; choose one of them")
    return value
