"""Read delimited trace files fast, and name the line when one is wrong.

The fast path counts the separators of every line at once, lets pandas' C parser read the columns that are
used, and checks them as whole arrays. Only when one of these fails are single lines looked at. None of the
formats quotes fields, so a separator always separates.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from ..model._shown import short

_DTYPE = {"int": "int64", "number": "float64", "text": "str"}
SUFFIXES = (".csv", ".csv.gz")


@dataclass(frozen=True)
class Column:
    """A column that is used. `optional`: an empty field is a legitimate missing value."""

    name: str
    kind: Literal["int", "number", "text"] = "number"
    optional: bool = False
    least: float = 0
    most: float = math.inf


@dataclass(frozen=True)
class Format:
    """`fields`: the names of all fields of a file without a header; None if the first line names them."""

    columns: tuple[Column, ...]
    fields: tuple[str, ...] | None = None
    separator: str = ","


@dataclass(frozen=True)
class CsvTable:
    """The good rows in file order, and how many rows there were and were skipped."""

    frame: pd.DataFrame
    rows: int
    skipped: int


def read(path: Path, layout: Format, skip_malformed: bool = False) -> CsvTable:
    """The columns of `layout` from a plain or gzipped file.

    Raises
    ------
    DataError
        Naming the file, the line (from 1, the header included) and what is wrong with it, unless
        `skip_malformed`; always for a file that cannot be unpacked, a wrong header, or no rows at all.
    """
    raw = _content(path)
    ends = _line_ends(raw)
    names = _names(path, raw, ends, layout)
    first = int(layout.fields is None)
    rows = len(ends) - first
    if rows < 1:
        raise DataError(f"{path} holds no rows")
    separators = np.flatnonzero(np.frombuffer(raw, np.uint8) == ord(layout.separator))
    fields = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    good = np.arange(first, len(ends))
    malformed = good[fields[good] != len(names)]
    if malformed.size and not skip_malformed:
        raise _malformed(path, malformed[0], f"has {fields[malformed[0]]} fields instead of {len(names)}")
    good = good[fields[good] == len(names)]
    frame = _parse(_lines(raw, ends, good), names, layout, len(good))
    if frame is None:
        good = _without_faults(path, raw, ends, good, names, layout, skip_malformed)
        frame = _parse(_lines(raw, ends, good), names, layout, len(good))
        if frame is None:
            raise DataError(f"{path} cannot be read as a table of {', '.join(names)}")
    return CsvTable(frame, rows, rows - len(good))


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); fetch it again") from None


def _line_ends(raw: bytes) -> NDArray[np.intp]:
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == ord("\n"))
    return ends if raw.endswith(b"\n") or not raw else np.append(ends, len(raw))


def _names(path: Path, raw: bytes, ends: NDArray[np.intp], layout: Format) -> tuple[str, ...]:
    if layout.fields is not None:
        return layout.fields
    header = raw[: ends[0]].decode(errors="replace") if len(ends) else ""
    names = tuple(name.strip() for name in header.split(layout.separator))
    for column in layout.columns:
        if column.name not in names:
            raise _malformed(path, 0, f"is the header; it should name {column.name!r} and is {header.strip()[:80]!r}")
        if names.count(column.name) > 1:
            raise _malformed(path, 0, f"is the header; it names {column.name!r} twice")
    return names


def _lines(raw: bytes, ends: NDArray[np.intp], wanted: NDArray[np.intp]) -> bytes:
    """The wanted lines; consecutive ones, the common case, are one slice."""
    if not wanted.size:
        return b""
    starts = np.concatenate([[0], ends[:-1] + 1])
    if wanted[-1] - wanted[0] + 1 == len(wanted):
        return raw[starts[wanted[0]] : ends[wanted[-1]]]
    return b"\n".join(raw[starts[line] : ends[line]] for line in wanted)


def _frame(body: bytes, names: tuple[str, ...], layout: Format) -> pd.DataFrame:
    where = {names.index(column.name): column for column in layout.columns}
    frame = pd.read_csv(
        io.BytesIO(body),
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


def _parse(body: bytes, names: tuple[str, ...], layout: Format, rows: int) -> pd.DataFrame | None:
    """The typed table, or None if something in it is wrong."""
    try:
        with np.errstate(invalid="ignore"):  # where a column of whole numbers holds others
            frame = _frame(body, names, layout)
    except (ValueError, OverflowError):
        return None
    if len(frame) != rows:  # a stray carriage return ends a line for pandas
        return None
    for column in layout.columns:
        values = frame[column.name]
        missing = values.isna()
        if missing.any() and not column.optional:
            return None
        if column.kind == "int" and values.dtype != np.int64:  # some versions of pandas turn to unsigned ones
            return None
        if column.kind != "text":
            inside = (values >= column.least) & (values <= column.most) & np.isfinite(values)
            if not (inside | missing).all():
                return None
    return frame


def _without_faults(
    path: Path,
    raw: bytes,
    ends: NDArray[np.intp],
    lines: NDArray[np.intp],
    names: tuple[str, ...],
    layout: Format,
    skip_malformed: bool,
) -> NDArray[np.intp]:
    """Look at every line: the good ones, or an error at the first bad one."""
    good = []
    for line, fields in zip(lines, _texts(_lines(raw, ends, lines), names, layout), strict=True):
        faults = (_fault(column, text) for column, text in zip(layout.columns, fields, strict=True))
        fault = next((fault for fault in faults if fault), None)
        if fault is None:
            good.append(line)
        elif not skip_malformed:
            raise _malformed(path, line, f"has {fault}")
    if not good:
        raise DataError(f"{path} holds no rows that are not malformed")
    return np.array(good)


def _texts(body: bytes, names: tuple[str, ...], layout: Format) -> list[tuple[str, ...]]:
    if not body:
        return []
    where = [names.index(column.name) for column in layout.columns]
    rows = (line.split(layout.separator) for line in body.decode(errors="replace").split("\n"))
    return [tuple(row[index].strip() for index in where) for row in rows]


def _fault(column: Column, text: str) -> str | None:
    """Say what is wrong with one field, or None."""
    if text == "":
        return None if column.optional else f"no {column.name}"
    if column.kind == "text":
        return None
    whole = column.kind == "int"
    try:
        value = int(text) if text.lstrip("+-").isdecimal() else float(text)  # a float is too coarse for an id
    except ValueError:
        value = math.nan
    if not abs(value) <= sys.float_info.max or "_" in text or (whole and (value % 1 or abs(value) >= 2**63)):
        return f"{column.name} {short(text)}, which is not a {'whole ' if whole else ''}number"
    if not column.least <= value <= column.most:
        allowed = f">= {column.least:g}" if math.isinf(column.most) else f"from {column.least:g} to {column.most:g}"
        return f"{column.name} {text}; it must be {allowed}"
    return None


def _malformed(path: Path, index: int, what: str) -> DataError:
    line = int(index) + 1
    message = f"{path}, line {line}: the line {what}. Mend or remove it, or pass skip_malformed=True"
    return DataError(message, ("line", line))


def table_files(folder: Path, start: str = "") -> list[Path]:
    """The `.csv` and `.csv.gz` files of a folder whose names begin with `start`, by name."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.startswith(start) and path.name.endswith(SUFFIXES))


def locate(
    directory: str | Path, known_as: str, holds: Callable[[Path], bool], layout: str, parts: Collection[str] = ()
) -> Path:
    """The folder that `holds` the trace: `directory`, or a sub-folder whose name begins with `known_as`.

    Where `directory` is one of the `parts` of a trace, a folder by that name, its parent is meant.

    Raises
    ------
    DataError
        When there is none, with the expected `layout`.
    """
    root = existing(directory, layout)
    for folder in (root.parent if root.name in parts else root, *_subfolders(root, known_as)):
        if holds(folder):
            return folder
    raise DataError(f"{root} holds no trace that can be read here; expected {layout}")


def existing(directory: str | Path, layout: str) -> Path:
    """`directory` as a path, if it is a folder."""
    root = Path(directory)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; expected {layout}")
    return root


def _subfolders(root: Path, known_as: str) -> Iterable[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and path.name.startswith(known_as))
