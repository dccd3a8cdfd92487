"""Workloads in files of one's own: a folder of CSV tables, or a file in the Standard Workload Format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..._libraries import pd
from ...errors import DataError
from ...model import _files
from ...scheduling.workload import FIRST_LINE, Workload
from .swf import read_swf

_TABLES = ("tasks", "servers", "users", "changes")


def is_file(name: str) -> bool:
    """Does a name stand for a folder of tables or an SWF file, rather than for a source?"""
    return name.endswith((".swf", ".swf.gz")) or (Path(name) / "tasks.csv").is_file()


def load(path: str | Path) -> Workload:
    """The workload in a folder (`tasks.csv`, `servers.csv`, and if they are there `users.csv` and `changes.csv`, with
    the columns of `Workload.from_frames`) or in an SWF file (`.swf`, `.swf.gz`).

    Raises
    ------
    DataError
        With the file and the line.
    """
    folder = Path(path)
    if folder.name.endswith((".swf", ".swf.gz")):
        return read_swf(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; a workload is a folder with tasks.csv and servers.csv, or FILE.swf")
    tables = {name: _table(folder / f"{name}.csv") for name in _TABLES}
    for name in ("tasks", "servers"):
        if tables[name] is None:
            raise DataError(f"{folder} has no {name}.csv; a workload is a folder with tasks.csv and servers.csv")
    given: Any = tables
    try:
        found = Workload.from_frames(**given, source=folder.absolute().name)
    except DataError as error:
        if len(error.where) == 2 and isinstance(error.where[1], int):
            place = folder / f"{error.where[0]}.csv"
            raise DataError(f"{place}:{error.where[1] + FIRST_LINE}: {error}", error.where) from None
        raise DataError(f"{folder}: {error}", error.where) from None
    return dataclasses.replace(found, file=str(folder / "tasks.csv"))


def save(workload: Workload, folder: str | Path) -> None:
    """Write the tables into a folder, which is made; each file whole or not at all.

    Parameters
    ----------
    workload : what is written, as `tasks.csv`, `servers.csv` and, if servers come or go, `changes.csv`
    folder : where; files that are there are replaced

    Raises
    ------
    DataError
        A file cannot be written.
    OSError
        The folder cannot be made.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, table in workload.to_frames().items():
        if name != "changes" or len(table):
            _files.write(place / f"{name}.csv", table.to_csv(index=False), "table of a workload")


def _table(path: Path) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    try:
        return pd.read_csv(
            path, dtype=dict.fromkeys(("user", "job", "server", "type", "on", "after"), str), skipinitialspace=True
        )
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from None
