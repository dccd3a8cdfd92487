"""Columns of tables as numbers, and as whole numbers of units and microseconds: errors name the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from ._time import SECOND, Whole

#: The most that all servers together, or one task, may have of a resource, in its unit. Sums are exact as floats, and
#: decimal fractions of up to 12 digits are whole numbers of units whatever rounding made of them.
_MOST = 2**43
#: The longest time in seconds: a thousand years, far below what microseconds can count.
LONGEST = 3.2e10


def only_frames(**tables: object) -> None:
    for name, table in tables.items():
        if table is not None and not isinstance(table, pd.DataFrame):
            raise DataError(f"{name} is of type {type(table).__name__}; give a pandas DataFrame")
        if isinstance(table, pd.DataFrame) and not table.columns.is_unique:
            raise DataError(f"{name} has the column {table.columns[table.columns.duplicated()][0]!r} twice; rename one")


def cell(column: pd.Series[Any], row: int) -> str:
    """A value as its writer would type it: 3, not `np.int64(3)`."""
    value = column.iloc[row]
    return repr(value.item() if isinstance(value, np.generic) else value)


def error(table: str, row: int, frame: pd.DataFrame, what: str) -> DataError:
    """An error about a row, by its position and, where the table has one, its name."""
    named = next((f" ({column} {cell(frame[column], row)})" for column in ("job", "server", "user")
                  if column in frame.columns), "")  # fmt: skip
    return DataError(f"row {row} of {table}{named} {what}", (table, row))


def numbers(frame: pd.DataFrame, columns: Sequence[str], table: str) -> NDArray[np.float64]:
    """Columns as finite numbers >= 0."""
    values = np.empty((len(frame), len(columns)))
    for k, column in enumerate(columns):
        if column not in frame.columns:
            raise DataError(f"{table} has no column {column!r}; it has {', '.join(map(repr, frame.columns))}")
        values[:, k] = found = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float)
        for row in np.flatnonzero(~(np.isfinite(found) & (found >= 0))).tolist():
            raise error(table, row, frame, f"has {column} {cell(frame[column], row)}; it must be a number >= 0")
    return values


def counts(frame: pd.DataFrame, column: str, table: str = "tasks") -> Whole:
    if column not in frame:
        return np.ones(len(frame), dtype=np.int64)
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float)
    for row in np.flatnonzero(~((values >= 1) & (values == np.rint(values)) & (values <= 1e9))).tolist():
        raise error(table, row, frame, f"has {column} {cell(frame[column], row)}; it must be a whole number >= 1")
    if values.sum() > 1e9:
        raise DataError(f"{table} stand for {values.sum():.3g} in all; at most 10^9 can be simulated")
    return np.asarray(values, dtype=np.int64)


def microseconds(frame: pd.DataFrame, column: str, default: float | None, least: int = 0) -> Whole:
    if column not in frame:
        if default is None:
            raise DataError(f"tasks have no column {column!r}, in seconds; every task needs one")
        return np.full(len(frame), round(default * SECOND), dtype=np.int64)
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float)
    with np.errstate(invalid="ignore", over="ignore"):
        whole = np.rint(values * SECOND)
    for row in np.flatnonzero(~((whole >= least) & (values <= LONGEST))).tolist():
        wanted = "a microsecond or more" if least else "0 or more"
        raise error("tasks", row, frame, f"has {column} {cell(frame[column], row)}; it must be seconds, {wanted}")
    return np.asarray(whole, dtype=np.int64)


def units(amounts: NDArray[np.float64], demand: NDArray[np.float64], resources: list[str]) -> NDArray[np.float64]:
    """The smallest power of ten in which sums over all servers stay below `_MOST`."""
    most = np.maximum(amounts.sum(axis=0), demand.max(axis=0, initial=0.0))
    digits = np.floor(np.log10(_MOST / most)).clip(-300, 300)
    return np.array([float(f"1e{-int(d)}") for d in digits])


def in_units(demand: NDArray[np.float64], unit: NDArray[np.float64], frame: pd.DataFrame) -> Whole:
    """Rounded down, by less than a unit: what fits in real numbers fits in units as well (six times 1/6)."""
    whole = np.floor(demand / unit + 0.01).astype(np.int64)
    for row, r in np.argwhere((demand > 0) & (whole == 0)).tolist():
        raise error("tasks", row, frame, f"asks for {demand[row, r]:g} of a resource of which servers have "
                     f"{_MOST * unit[r]:.0e}; that is too little to count: leave it out or write 0")  # fmt: skip
    return whole
