"""The store: one tidy table in a folder of Parquet parts, which any number of sweeps may write at once.

A part is written aside and renamed, so that it is there whole or not at all, and its name holds the digest of its
bytes, so that a part that was cut off, changed or put there by somebody else is noticed. Nothing is ever written over:
a cell that comes twice counts once. Finished cells are written one by one and gathered into larger parts on the way, by
one process at a time: parts are dropped when all that was read of them is in another, and that is safely on disk.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._libraries import pa, pd, pq
from ..errors import DataError
from .schema import CELLS, CHANCE_INSIDE, Schema

Row = dict[str, Any]


@dataclass(frozen=True)
class StoreOptions:
    """When parts of a store are gathered, and dropped."""

    #: Parts of single cells that a writer leaves before it gathers them.
    gather: int = 200
    #: Parts of fewer cells are gathered with those of the next sweep.
    small_part: int = 50
    #: Files written aside are dropped when they are this old, in seconds.
    stale: float = 3600.0


#: What is used unless a caller says otherwise.
OPTIONS = StoreOptions()


class _OtherVersion(DataError):
    """A part that another version of fairopt wrote."""


@dataclass(frozen=True)
class Damage:
    """A part that is not read, and why."""

    path: Path
    reason: str
    ours: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Contents:
    """What a store holds: `table`, one row per cell, and the parts that were not read."""

    table: pa.Table
    damaged: tuple[Damage, ...]
    small: tuple[tuple[Path, pa.Table], ...] = field(default=(), repr=False)  # parts of few cells, whoever wrote them
    schema: Schema = field(default=CELLS, repr=False)

    def frame(self, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """One row per cell, of the given keys in their order, or of all: inputs, numbers, then times and versions."""
        frame = self.table.select(list(self.schema.columns)).to_pandas()
        return frame if keys is None else frame.set_index("key").reindex(_there(keys, frame)).reset_index()

    def long(self, name: str, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """A long table (`use`, `curve`, `reached`, `allocated`) of these cells, with a first column `key`."""
        if name not in self.schema.long:
            raise DataError(f"the store has no table {name!r}; it has {', '.join(self.schema.long)}")
        lists = self.table.column(name).combine_chunks()
        rows = pa.compute.list_parent_indices(lists)
        inside = pa.compute.list_flatten(lists)
        columns = {"key": self.table.column("key").combine_chunks().take(rows)}
        columns |= {part: pa.compute.struct_field(inside, part) for part in self.schema.long[name]}
        frame = pa.table(columns).to_pandas()
        return frame if keys is None else frame[frame["key"].isin(set(keys))].reset_index(drop=True)

    def same_as(self, other: Contents) -> list[str]:
        """The columns in which two stores differ, of those that may not: no seconds, no machines. Empty if equal."""
        mine, yours = (one.table.sort_by("key") for one in (self, other))
        if mine.column("key") != yours.column("key"):
            return ["key"]
        plain = [name for name in self.schema.inputs | self.schema.found if name != "experiment"]
        found = [name for name in plain if not _same(mine.column(name), yours.column(name))]
        for name, parts in self.schema.long.items():
            a, b = (one.long(name) for one in (self, other))
            a, b = (frame.sort_values("key", kind="stable").reset_index(drop=True) for frame in (a, b))
            found += [f"{name}.{part}" for part in parts
                      if part != CHANCE_INSIDE and not a[["key", part]].equals(b[["key", part]])]  # fmt: skip
        return found


@dataclass
class Store:
    """A folder of parts; made when the first cell is written."""

    folder: Path
    schema: Schema = field(default=CELLS, repr=False)
    _single: list[tuple[Path, pa.Table]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)

    def read(self) -> Contents:
        """All cells, each once: a result counts before an error, and the first result before later ones.

        Raises
        ------
        DataError
            The folder is a file.
        """
        parts, damaged = self._parts()
        small = tuple((path, table) for path, table in parts.items() if table.num_rows < OPTIONS.small_part)
        return Contents(
            _once(pa.concat_tables([self.schema.arrow.empty_table(), *parts.values()])),
            damaged,
            small,
            self.schema,
        )

    def write(self, rows: Sequence[Row]) -> None:
        """Store finished cells, now: what is killed after this loses nothing of them.

        Raises
        ------
        OSError
            They cannot be written; nothing of them is.
        """
        table = pa.Table.from_pylist(list(rows), schema=self.schema.arrow)
        self._single.append((self._write(table), table))
        if len(self._single) >= OPTIONS.gather:
            self.gather()

    def adopt(self, contents: Contents) -> None:
        """Gather the small parts of others with the next: what a writer left that was killed, or is still at it."""
        known = {path for path, _ in self._single}
        self._single += [part for part in contents.small if part[0] not in known]

    def gather(self) -> None:
        """Put the single parts of this writer into one, safely on disk, then drop them; later, if another gathers."""
        with self._alone() as alone:
            if alone:
                here = {path: table for path, table in self._single if path.exists()}  # others may have gathered some
                self._into_one(here)
                self._single = []

    def gather_all(self) -> int:
        """The same for all parts in the folder, whoever wrote them; how many went into the one.

        Raises
        ------
        DataError
            Another process gathers them at this moment, or nobody may write to the folder.
        """
        if not self.folder.is_dir():
            return 0
        with self._alone() as alone:
            if not alone:
                raise DataError(
                    f"the parts of {self.folder} are not gathered: another process is at it, or you may not write "
                    "there; try again when it has ended, as somebody who may"
                )
            self.tidy()
            return self._into_one(self._parts()[0])

    def _into_one(self, parts: dict[Path, pa.Table]) -> int:
        """Write all that was read of these parts as one, and drop them but for that; how many were dropped."""
        if len(parts) < 2:
            return 0
        whole = self._write(_once(pa.concat_tables(parts.values())).combine_chunks(), sync=True)
        dropped = parts.keys() - {whole}
        for path in dropped:
            path.unlink(missing_ok=True)
        return len(dropped)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Does this process alone gather? Two at once could each drop what the other has written."""
        import sqlite3  # whose locks every system has, and ends with the process

        alone = True
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(closing(sqlite3.connect(self.folder / "gathering.lock", timeout=0)))
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                alone = False
            yield alone

    def tidy(self) -> None:
        """Drop what killed writers had begun to write aside; living ones rename within seconds."""
        for aside in self.folder.glob(".*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - aside.stat().st_mtime > OPTIONS.stale:
                    aside.unlink()

    def set_aside(self, damaged: Iterable[Damage]) -> None:
        """Rename our damaged parts, so that they are named once; files of others are left alone."""
        for damage in damaged:
            if damage.ours and damage.path.exists():
                os.replace(damage.path, damage.path.with_suffix(".damaged"))

    def _listed(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet")) if self.folder.is_dir() else []

    def _parts(self) -> tuple[dict[Path, pa.Table], tuple[Damage, ...]]:
        """Every part that can be read, and those that cannot.

        The folder is listed until nothing is new: what another has gathered meanwhile is in a part that is listed then.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{self.folder} is a file; the store is a folder")
        parts: dict[Path, pa.Table] = {}
        damaged: dict[Path, Damage] = {}
        for _ in range(100):
            if not (new := [path for path in self._listed() if path not in parts and path not in damaged]):
                return parts, tuple(damaged.values())
            for path in new:
                try:
                    parts[path] = _checked(path, self.schema)
                except FileNotFoundError:  # gathered since
                    continue
                except DataError as error:  # of another version: whole, and good for those who have that
                    ours = _ours(path) and not isinstance(error, _OtherVersion)
                    damaged[path] = Damage(path, str(error), ours)
        raise DataError(f"{self.folder} changes faster than it can be read; try again")

    def _write(self, table: pa.Table, sync: bool = False) -> Path:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd" if table.num_rows > 1 else "none")
        data = sink.getvalue().to_pybytes()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"part-{_digest(data)}.parquet"
        aside = self.folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with open(aside, "wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(aside, path)
            if sync and os.name == "posix":  # elsewhere folders cannot be opened
                folder = os.open(self.folder, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        return path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _ours(path: Path) -> bool:
    return path.stem.startswith("part-") and len(path.stem) == len("part-") + 32


def _checked(path: Path, schema: Schema) -> pa.Table:
    """A part whose bytes are those that were written."""
    if not _ours(path):
        raise DataError("not a part that fairopt wrote (its name has no digest); it is left alone")
    data = path.read_bytes()
    if path.stem != f"part-{_digest(data)}":
        raise DataError("cut off or changed since it was written (its bytes do not have the digest in its name)")
    table = pq.read_table(pa.BufferReader(data))
    at = schema.arrow.get_field_index("wall")
    if table.column_names == [*schema.arrow.names[:at], *schema.arrow.names[at + 1 :]]:
        table = table.add_column(at, "wall", table.column(at - 1))  # older parts: the seconds before it were the wall's
    made = (table.schema.metadata or {}).get(b"format", b"nothing").decode()
    if made != schema.format or not table.schema.equals(schema.arrow):
        raise _OtherVersion(
            f"written by another version (format {made}, here {schema.format}); keep it in a store of its own"
        )
    return table


def _once(table: pa.Table) -> pa.Table:
    """Each cell once: results before errors; of results the first that was finished, of errors the last."""
    if not table.num_rows:
        return table
    keys = table.column("key").to_numpy(zero_copy_only=False)
    failed = table.column("status").to_numpy(zero_copy_only=False) == "failed"
    finished = table.column("finished").cast(pa.int64()).to_numpy()
    order = np.lexsort((np.where(failed, -finished, finished), failed))
    _, first = np.unique(keys[order].astype(str), return_index=True)
    chosen = order[first]
    return table.take(chosen[np.argsort(finished[chosen], kind="stable")])


def _there(keys: Iterable[str], frame: pd.DataFrame) -> list[str]:
    known = set(frame["key"])
    return [key for key in keys if key in known]


def _same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Bit by bit, but that NaN is NaN."""
    return bool(a.to_pandas().equals(b.to_pandas()))
