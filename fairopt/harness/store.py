"""Store of results: one row per cell in an SQLite file, to which several sweeps on a machine may write concurrently.

Each row is committed when its cell is finished, so that a crash of a sweep loses only the cells in progress. Rows are
compressed with a checksum: rows damaged on the disk are detected, reported and computed again.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, Self

from ..base.errors import DataError
from ..base.libraries import pa, pd
from .schema import CELLS, CHANCE_INSIDE, Schema

Row = dict[str, Any]

#: Longest wait for the lock of another writer, in seconds.
PATIENCE = 60.0
_MADE = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS format (name TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS cells (key TEXT PRIMARY KEY, failed INTEGER, finished INTEGER, row BLOB);
INSERT INTO format SELECT '{}' WHERE NOT EXISTS (SELECT * FROM format);
COMMIT
"""
_ANY = "SELECT * FROM sqlite_master"
#: One row per cell: a result replaces an error; of several results the first is kept, of several errors the last.
_WRITE = """
INSERT INTO cells VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET failed = excluded.failed, finished = excluded.finished, row = excluded.row
WHERE (excluded.failed, iif(excluded.failed, -excluded.finished, excluded.finished))
    < (failed, iif(failed, -finished, finished)) OR NOT whole(row)
"""


@dataclass(frozen=True)
class Contents:
    """Contents of a store: `table` with one row per cell, and the keys of `damaged` rows, which it excludes.

    >>> import fairopt as fo
    >>> contents = fo.harness.Store("no such folder").read()
    >>> contents.table.num_rows, contents.damaged
    (0, ())
    """

    table: pa.Table
    damaged: tuple[str, ...]
    schema: Schema = field(default=CELLS, repr=False)

    def followed_by(self, tables: Iterable[pa.Table]) -> Contents:
        """Contents with additional rows, which replace rows of the same key, and without long tables."""
        new = pa.concat_tables([self.table.select(list(self.schema.columns)).slice(0, 0), *tables])
        old = self.table.select(list(self.schema.columns))
        kept = pa.compute.invert(pa.compute.is_in(old.column("key"), value_set=new.column("key").combine_chunks()))
        return Contents(pa.concat_tables([old.filter(kept), new]), self.damaged, self.schema)

    def frame(self, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """Frame of one row per cell, for all keys, or for the given keys in their order, without unknown keys.

        Columns are in the order of `Schema.columns`: question, result, times and machines.
        """
        frame = self.table.select(list(self.schema.columns)).to_pandas()
        if keys is None:
            return frame
        known = set(frame["key"])
        return frame.set_index("key").loc[[key for key in keys if key in known]].reset_index()

    def long(self, name: str, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """Long table, such as `use` or `measured`, of the given keys or of all, with `key` as first column.

        Raises
        ------
        DataError
            The store has no such table.
        """
        if name not in self.schema.long:
            raise DataError(f"the store has no table {name!r}; it has {', '.join(self.schema.long)}")
        lists = self.table.column(name).combine_chunks()
        frame = pa.Table.from_struct_array(pa.compute.list_flatten(lists)).to_pandas()
        of = self.table.column("key").combine_chunks().take(pa.compute.list_parent_indices(lists))
        frame.insert(0, "key", of.to_pandas())
        return frame if keys is None else frame[frame["key"].isin(set(keys))].reset_index(drop=True)

    def with_measures(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Frame of cells with a column for each measure of their long table `measured`."""
        wide = self.long("measured", frame["key"]).pivot(index="key", columns="measure", values="value")
        return frame.merge(wide, on="key", how="left")

    def same_as(self, other: Contents) -> list[str]:
        """Names of columns in which two stores differ, seconds and machines excluded; empty if they agree."""

        def plain(one: Contents) -> dict[str, pd.Series]:
            frame = one.frame().sort_values("key", ignore_index=True)
            found = {name: frame[name] for name in self.schema.inputs | self.schema.found if name != "experiment"}
            for table, parts in self.schema.long.items():
                frame = one.long(table).sort_values("key", kind="stable", ignore_index=True)
                found |= {f"{table}.{part}": frame[part] for part in parts if part != CHANCE_INSIDE}
            return found

        mine, yours = plain(self), plain(other)
        return [name for name in mine if not mine[name].equals(yours[name])]


class Unwritable(OSError):
    """Failure to write rows to the store."""


@dataclass
class Store:
    """Folder with an SQLite file, which is created when the first cell is written.

    In a block `with store:` the file stays open, for many writes.

    Parameters
    ----------
    folder : str or Path
    schema : Schema
        Kind of cells: allocations (default) or simulations.

    >>> import fairopt as fo
    >>> fo.harness.Store("results/store").file.as_posix()
    'results/store/cells.sqlite'
    """

    folder: Path
    schema: Schema = field(default=CELLS, repr=False)
    _open: sqlite3.Connection | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)

    @property
    def file(self) -> Path:
        """Path of the SQLite file."""
        return self.folder / "cells.sqlite"

    def read(self) -> Contents:
        """Read all cells, each once: results take precedence over errors, and the first result over later results.

        Raises
        ------
        DataError
            The folder is a file, or its SQLite file is of another version or damaged as a whole.
        """
        found: list[tuple[str, bytes]] = []
        self._check_folder()
        if self.file.exists():
            with self._errors(DataError), closing(self._connected()) as base:
                if base.execute(_ANY).fetchone():
                    self._check(base)
                    found = base.execute("SELECT key, row FROM cells ORDER BY finished, key").fetchall()
        unpacked = {key: _unpacked(row) for key, row in found}
        rows = [row for row in unpacked.values() if row is not None]
        damaged = tuple(key for key, row in unpacked.items() if row is None)
        return Contents(pa.Table.from_pylist(rows, schema=self.schema.arrow), damaged, self.schema)

    def write(self, rows: Sequence[Row] | Packed) -> None:
        """Commit finished cells, given as rows or already packed.

        Raises
        ------
        OSError
            The cells cannot be written; none of them is stored.
        """
        if self._open is None:
            with self:
                return self.write(rows)
        packed = rows if isinstance(rows, Packed) else pack(rows, self.schema)
        with self._errors(Unwritable), self._open:
            self._open.executemany(_WRITE, packed.entries)
        return None

    def __enter__(self) -> Self:
        self._check_folder()
        with self._errors(Unwritable), ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            base = stack.enter_context(closing(sqlite3.connect(self.file, timeout=PATIENCE, check_same_thread=False)))
            base.create_function("whole", 1, lambda row: _unpacked(row) is not None, deterministic=True)
            with suppress(sqlite3.OperationalError):  # another process is changing the mode
                base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
            base.executescript(_MADE.format(self.schema.format))
            self._check(base)
            self._open, _ = base, stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _connected(self) -> sqlite3.Connection:
        """Open the file for reading, also on read-only media, provided that no write-ahead log is pending."""
        name = self.file.absolute().as_uri()
        base = sqlite3.connect(f"{name}?mode=rw", uri=True, timeout=PATIENCE)
        try:
            base.execute(_ANY)
        except sqlite3.OperationalError:
            base.close()
            if Path(f"{self.file}-wal").exists():
                raise
            base = sqlite3.connect(f"{name}?immutable=1", uri=True)
        return base

    def _check_folder(self) -> None:
        if self.folder.is_file():
            raise DataError(f"{self.folder} is a file; the store is a folder")
        if any(self.folder.glob("part-*.parquet")):
            raise DataError(
                f"{self.folder} is a store of a version before 0.2; keep it, and give this one another folder"
            )

    def _check(self, base: sqlite3.Connection) -> None:
        (made,) = base.execute("SELECT name FROM format").fetchone()
        if made != self.schema.format:
            raise DataError(
                f"{self.file} was written by another version (format {made}, here {self.schema.format}); "
                "keep it, and give this one another folder"
            )

    @contextmanager
    def _errors(self, kind: type[Exception]) -> Iterator[None]:
        """Convert operational errors of SQLite and of files to `kind`, and damage of the file to `DataError`."""
        file, left = quote(str(self.file)), quote(str(self.folder / "left.sqlite"))
        damaged = (
            f"{self.file} is damaged; move it away, and its cells are computed again, or save those that are left: "
            f"sqlite3 {file} .dump | sed 's/^ROLLBACK.*/COMMIT;/' | sqlite3 {left}, which then takes its place"
        )
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise kind(getattr(error, "strerror", None) or str(error)) from None
        except sqlite3.DatabaseError as error:
            raise DataError(f"{damaged} ({error})") from None


class Packed(NamedTuple):
    """Compressed rows for the file, and the same rows as a table without long tables."""

    entries: list[tuple[str, bool, int, bytes]]
    table: pa.Table

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def keys(self) -> list[str]:
        """Keys of the cells."""
        return [entry[0] for entry in self.entries]


def pack(rows: Iterable[Row], schema: Schema) -> Packed:
    """Compress rows for the store."""
    entries, plain = [], []
    for row in rows:
        whole = row | {"finished": round(row["finished"].timestamp() * 1e6)}
        # A window smaller than the default reduces the time to initialise the compressor.
        text, small = _ENCODE(whole).encode(), zlib.compressobj(1, wbits=12, memLevel=5)
        packed = small.compress(text) + small.flush()
        entries.append((row["key"], row["status"] == "failed", whole["finished"], packed))
        plain.append(whole)
    return Packed(entries, pa.Table.from_pylist(plain, schema=schema.plain))


#: One encoder for all rows, since its construction takes as long as the encoding of a row; NumPy's numbers are
#: converted to Python's.
_ENCODE = json.JSONEncoder(default=lambda value: value.item(), check_circular=False).encode


def _unpacked(row: bytes) -> Row | None:
    try:
        return dict(json.loads(zlib.decompress(row)))
    except (zlib.error, ValueError, TypeError):
        return None
