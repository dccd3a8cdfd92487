"""Turn what a person passes into the arrays of a cluster, or say exactly what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

Array = NDArray[np.float64]


def number(value: object, what: str, wanted: str) -> float:
    """A parameter as a float, NumPy's numbers included, NaN not; `wanted` completes "it must be" in the error."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        kind = "a truth value" if isinstance(value, bool | np.bool_) else f"of type {type(value).__name__}"
        raise DataError(f"{what} is {value!r}, {kind}; it must be {wanted}")
    if np.isnan(result := float(value)):
        raise DataError(f"{what} is {result:g}; it must be {wanted}")
    return result


def alpha(value: object) -> float:
    """The parameter of alpha-fairness, from 0 to infinity."""
    wanted = "a number from 0 (efficient) to infinity (max-min)"
    result = number(value, "alpha", wanted)
    if not result >= 0:
        raise DataError(f"alpha is {result:g}; it must be {wanted}")
    return result


def tolerance(value: object) -> float:
    """What a certificate must reach: finite and > 0."""
    wanted = "a number > 0, such as 1e-6"
    result = number(value, "tol", wanted)
    if not (np.isfinite(result) and result > 0):
        raise DataError(f"tol is {result:g}; it must be {wanted}")
    return result


def matrix(values: Any, what: str, rows: str, columns: str) -> Array:
    """A two-dimensional float array; `rows` and `columns` name its axes in the error."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        row, fault = _fault(values, error)
        raise DataError(
            f"{what} must be a table of numbers with one row per {rows} and one column per {columns}, "
            f"all rows of one length: {fault}",
            () if row is None else (f"{rows}s", row, what),
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"{what} must have shape ({rows}s, {columns}s) with at least one of each; got {array.shape}. "
            f"Pass a list of rows, even for a single {rows}: [[...]]"
        )
    return array


def _fault(table: Any, error: Exception) -> tuple[int | None, str]:
    """The first row of a table that NumPy refused, and what is wrong with it; else what NumPy says."""
    length = None
    for row, values in enumerate(table if isinstance(table, Sequence | np.ndarray) else ()):
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            return row, f"row {row} is {values!r}, which is not a list"
        for column, value in enumerate(values):
            if not _is_number(value):
                return row, f"row {row} has {value!r} in column {column}, which is not a number"
        length = len(values) if length is None else length
        if len(values) != length:
            return row, f"row {row} has {len(values)} entries, and row 0 has {length}"
    return None, str(error)


def _is_number(value: object) -> bool:
    """Can NumPy make one number of it?"""
    try:
        return np.array(value, dtype=float).ndim == 0
    except (TypeError, ValueError):
        return False


def vector(values: Any, what: str, users: Sequence[str], default: float) -> Array:
    """One number per user; a scalar counts for everyone, `None` means `default`."""
    if values is None:
        return np.full(len(users), default)
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        listed = values if isinstance(values, list | tuple | np.ndarray) else ()
        for row, (user, value) in enumerate(zip(users, listed, strict=False)):
            if not _is_number(value):
                raise DataError(
                    f"user {user!r} (row {row}) has {what} {value!r}; {what} must be one number per user",
                    ("users", row, what),
                ) from None
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


def eligibility(values: Any, users: Sequence[str], servers: Sequence[str]) -> NDArray[np.bool_]:
    """The placement constraints (users, servers); `None` allows everything."""
    shape = len(users), len(servers)
    everywhere = np.broadcast_to(np.True_, shape)  # a view of one number
    if values is None:
        return everywhere
    if isinstance(values, np.ndarray) and not any(values.strides) and values.shape == shape and values.all():
        return everywhere
    try:
        array = np.array(values)
    except ValueError as error:
        row, fault = _fault(values, error)
        raise DataError(
            f"eligible must be a table (users, servers), all rows of one length: {fault}",
            () if row is None else ("users", row, "eligible"),
        ) from None
    if array.shape != shape:
        raise DataError(f"eligible must have shape (users, servers) = {shape}; got {array.shape}")
    if array.dtype != bool:
        given = array if array.dtype.kind in "iuf" else np.array(values, dtype=object)  # NumPy may have made it text
        for row, column in np.argwhere(~np.isin(given, (0, 1))).tolist():
            raise DataError(
                f"user {users[row]!r} has eligible {given[row, column]} for server {servers[column]!r}; "
                "eligible must hold only true or false (1 or 0)",
                ("users", row, "eligible"),
            )
        array = given.astype(bool)
    return everywhere if array.all() else array


def amounts(table: Array, kind: str, what: str, labels: Sequence[str], resources: Sequence[str]) -> None:
    """Capacities and demands are finite numbers >= 0."""
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if bad.size:
        row, column = (int(index) for index in bad[0])
        raise DataError(
            f"{kind} {labels[row]!r} (row {row}) has {what} {table[row, column]:g} of "
            f"{resources[column]!r}; it must be a finite number >= 0",
            (f"{kind}s", row, what, resources[column]),
        )


def users(labels: Sequence[str], weight: Array, max_tasks: Array, demand: Array) -> None:
    """Weights > 0, task limits >= 0, and everyone demands something."""
    for row in np.flatnonzero(~(np.isfinite(weight) & (weight > 0))).tolist():
        raise DataError(
            f"user {labels[row]!r} (row {row}) has weight {weight[row]:g}; it must be a finite number > 0",
            ("users", row, "weight"),
        )
    for row in np.flatnonzero(~(max_tasks >= 0)).tolist():
        raise DataError(
            f"user {labels[row]!r} (row {row}) has max_tasks {max_tasks[row]:g}; "
            "it must be >= 0 (leave it out, or use inf, for no limit)",
            ("users", row, "max_tasks"),
        )
    for row in np.flatnonzero(~demand.any(axis=1)).tolist():
        raise DataError(
            f"user {labels[row]!r} (row {row}) demands nothing; give it a demand > 0 for some resource, or drop it",
            ("users", row, "demand"),
        )
