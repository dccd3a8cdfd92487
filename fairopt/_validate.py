"""Turn what a person passes into the arrays of a cluster, or say exactly what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

Array = NDArray[np.float64]


def matrix(values: Any, what: str, rows: str, columns: str) -> Array:
    """A two-dimensional float array; `rows` and `columns` name its axes in the error."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{what} must be a table of numbers with one row per {rows} and one column per {columns}, "
            f"all rows of one length ({error})"
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"{what} must have shape ({rows}s, {columns}s) with at least one of each; got {array.shape}. "
            f"Pass a list of rows, even for a single {rows}: [[...]]"
        )
    return array


def vector(values: Any, what: str, users: Sequence[str], default: float) -> Array:
    """One number per user; a scalar counts for everyone, `None` means `default`."""
    if values is None:
        return np.full(len(users), default)
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be one number per user ({error})") from None
    if array.ndim == 0:
        array = np.full(len(users), float(array))
    if array.shape != (len(users),):
        raise DataError(f"{what} must have one number per user, {len(users)} in all; got shape {array.shape}")
    return array


def names(given: Iterable[object] | None, count: int, what: str) -> tuple[str, ...]:
    """`count` distinct names; by default 1, 2, ... behind the kind (user1, server1, resource1)."""
    if given is None:
        return tuple(f"{what}{index + 1}" for index in range(count))
    result = tuple(str(name) for name in given)
    if len(result) != count:
        raise DataError(f"{count} {what}s need {count} names; got {len(result)}: {', '.join(result[:8])}")
    if what == "resource" and (taken := {"weight", "max_tasks"} & set(result)):
        raise DataError(f"a resource cannot be called {taken.pop()!r}: the users' table has a column of that name")
    seen: set[str] = set()
    for index, name in enumerate(result):
        if name in seen:
            raise DataError(f"two {what}s are called {name!r}; give each its own name", (f"{what}s", index, "name"))
        seen.add(name)
    return result
