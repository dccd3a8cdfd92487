"""Fast reader of delimited trace files, whose errors name the line.

The separators of every line are counted, pandas' C parser reads the columns that are used, and these columns are
checked as whole arrays. Only if a check fails are fields checked one by one. No format quotes fields, so that every
separator ends a field.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import short

_DTYPE = {"int": "int64", "number": "float64", "text": "str"}
SUFFIXES = (".csv", ".csv.gz")


@dataclass(frozen=True)
class Column:
    """Column to be read; numbers are from 0 to `most`, and if `optional`, an empty field is a valid missing value."""

    name: str
    kind: Literal["int", "number", "text"] = "number"
    optional: bool = False
    most: float = math.inf


@dataclass(frozen=True)
class Format:
    """Format of a file; `fields` are the names of all fields if there is no header, or None if there is a header."""

    columns: tuple[Column, ...]
    fields: tuple[str, ...] | None = None
    separator: str = ","


def read(path: Path, layout: Format, skip_malformed: bool, report: Counter[str], of: str = "") -> pd.DataFrame:
    """Read the columns of `layout` from a plain or gzipped file, and return the valid rows in the order of the file.

    The numbers of rows read and of malformed rows skipped are added to `report`, with names that begin with `of`.

    Raises
    ------
    DataError
        A row is malformed, unless `skip_malformed`; or the file cannot be unpacked, has a wrong header or no valid row.
        The message names the file, the line (from 1, the header included) and the fault.
    """
    raw = content(path)
    lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
    names = layout.fields or _header(path, lines, layout)
    first, separator = int(layout.fields is None), layout.separator.encode()
    if len(lines) <= first:
        raise DataError(f"{path} holds no rows")
    fields = [line.count(separator) + 1 for line in lines]
    good = [number for number in range(first, len(lines)) if fields[number] == len(names)]
    whole = len(good) == len(lines) - first
    frame = _parse([lines[number] for number in good], names, layout) if whole or skip_malformed else None
    if frame is None:
        good = _without_faults(path, lines, range(first, len(lines)), names, layout, skip_malformed)
        frame = _parse([lines[number] for number in good], names, layout)
        if frame is None:
            raise DataError(f"{path} cannot be read as a table of {', '.join(names)}")
    report[f"{of}rows read"] += len(lines) - first
    report[f"{of}rows skipped as malformed"] += len(lines) - first - len(good)
    return frame


#: `MOST_KEPT`: largest number of rows of a table that is kept for the next draw (160 MB). `_KEPT`: the last table of
#: every kind, with the state of its files and its counts.
MOST_KEPT = 2_000_000
_KEPT: dict[str, tuple[object, pd.DataFrame, Counter[str]]] = {}


def once(
    kind: str, read: Callable[[Counter[str]], pd.DataFrame], files: Iterable[Path], how: object, report: Counter[str]
) -> pd.DataFrame:
    """Return the result of `read` for `files`, from the cache if neither the files nor the options `how` have changed.

    The counts of `read` are added to `report`. The cache has the last table of each `kind`, if its number of rows is at
    most `MOST_KEPT`, since a hundred draws from a trace would otherwise read the trace a hundred times. Callers must
    not modify the table.
    """
    state = {str(path.absolute()): path.stat() for path in files}
    here = how, [(path, of.st_size, of.st_mtime_ns) for path, of in state.items()]
    before, table, counts = _KEPT.pop(kind, (None, pd.DataFrame(), Counter()))
    if before != here:
        counts = Counter()
        table = read(counts)
    if len(table) <= MOST_KEPT:
        _KEPT[kind] = here, table, counts
    report.update(counts)
    return table


def content(path: Path) -> bytes:
    """Return the content of a file, unpacked if its suffix is `.gz`; raise `DataError` if it cannot be unpacked."""
    try:
        found = path.read_bytes()
        return gzip.decompress(found) if path.suffix == ".gz" else found
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); fetch it again") from None


def _header(path: Path, lines: list[bytes], layout: Format) -> tuple[str, ...]:
    header = lines[0].decode(errors="replace") if lines else ""
    names = tuple(name.strip() for name in header.split(layout.separator))
    for column in layout.columns:
        if column.name not in names:
            raise _malformed(path, 0, f"is the header; it should name {column.name!r} and is {header.strip()[:80]!r}")
        if names.count(column.name) > 1:
            raise _malformed(path, 0, f"is the header; it names {column.name!r} twice")
    return names


def _frame(lines: list[bytes], names: tuple[str, ...], layout: Format) -> pd.DataFrame:
    where = {names.index(column.name): column for column in layout.columns}
    frame = pd.read_csv(
        io.BytesIO(b"\n".join(lines)),
        sep=layout.separator,
        header=None,
        usecols=list(where),
        dtype={index: _DTYPE[column.kind] for index, column in where.items()},
        keep_default_na=False,
        na_values=[""],
        quoting=csv.QUOTE_NONE,
        skipinitialspace=True,  # also the tab after a semicolon
        encoding_errors="replace",
    )
    return frame.rename(columns={index: column.name for index, column in where.items()})


def _parse(lines: list[bytes], names: tuple[str, ...], layout: Format) -> pd.DataFrame | None:
    """Parse a table with types, or return None if any field is invalid."""
    try:
        with np.errstate(invalid="ignore"):  # a column of integers may have invalid values
            frame = _frame(lines, names, layout)
    except (ValueError, OverflowError):
        return None
    if len(frame) != len(lines):  # a stray carriage return ends a line for pandas
        return None
    for column in layout.columns:
        values = frame[column.name].to_numpy()  # comparing arrays takes a tenth of the time of comparing series
        missing = pd.isna(values)
        if missing.any() and not column.optional:
            return None
        if column.kind == "int" and values.dtype != np.int64:  # some versions of pandas choose unsigned integers
            return None
        if column.kind != "text":
            inside = (values >= 0) & (values <= column.most) & np.isfinite(values)
            if not (inside | missing).all():
                return None
    return frame


def _without_faults(
    path: Path, lines: list[bytes], numbers: range, names: tuple[str, ...], layout: Format, skip_malformed: bool
) -> list[int]:
    """Indices of valid lines; raise at the first invalid line, or, with `skip_malformed`, only if no line is valid."""
    good, where = [], [(column, names.index(column.name)) for column in layout.columns]
    for number in numbers:
        fields = lines[number].decode(errors="replace").split(layout.separator)
        fault: str | None = f"{len(fields)} fields instead of {len(names)}"
        if len(fields) == len(names):
            faults = (_fault(column, fields[index].strip()) for column, index in where)
            fault = next((fault for fault in faults if fault), None)
        if fault is None:
            good.append(number)
        elif not skip_malformed:
            raise _malformed(path, number, f"has {fault}")
    if not good:
        raise DataError(f"{path} holds no rows that are not malformed")
    return good


def _fault(column: Column, text: str) -> str | None:
    """Describe the fault of a field; None if it is valid."""
    if text == "":
        return None if column.optional else f"no {column.name}"
    if column.kind == "text":
        return None
    whole, most = column.kind == "int", min(column.most, sys.float_info.max)
    try:
        value = int(text) if text.lstrip("+-").isdecimal() else float(text)  # a float cannot represent every id
    except ValueError:
        value = math.nan
    if 0 <= value <= most and "_" not in text and not (whole and (value % 1 or value >= 2**63)):
        return None
    allowed = ">= 0" if math.isinf(column.most) else f"from 0 to {column.most:g}"
    return f"{column.name} {short(text)}; it must be a {'whole ' if whole else ''}number {allowed}"


def _malformed(path: Path, index: int, what: str) -> DataError:
    line = index + 1
    message = f"{path}, line {line}: the line {what}. Mend or remove it, or pass skip_malformed=True"
    return DataError(message, ("line", line))


def table_files(folder: Path, start: str = "") -> list[Path]:
    """List the `.csv` and `.csv.gz` files of a folder whose names begin with `start`, in the order of names."""
    if not folder.is_dir():
        return []
    return [folder / name for name in sorted(os.listdir(folder)) if name.startswith(start) and name.endswith(SUFFIXES)]


def locate(
    directory: str | Path, known_as: str, holds: Callable[[Path], bool], layout: str, parts: Collection[str] = ()
) -> Path:
    """Find the folder that `holds` the trace: `directory`, or a sub-folder whose name begins with `known_as`.

    If `directory` has the name of one of the `parts` of a trace, its parent is tried instead.

    Raises
    ------
    DataError
        There is no such folder; the message has the expected `layout`.
    """
    root = existing(directory, layout)
    below = sorted(path for path in root.iterdir() if path.is_dir() and path.name.startswith(known_as))
    for folder in (root.parent if root.name in parts else root, *below):
        if holds(folder):
            return folder
    raise DataError(f"{root} holds no trace that can be read here; expected {layout}")


def existing(directory: str | Path, layout: str) -> Path:
    """Return `directory` as a path; raise `DataError` with the expected `layout` unless it is a folder."""
    root = Path(directory)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; expected {layout}")
    return root
