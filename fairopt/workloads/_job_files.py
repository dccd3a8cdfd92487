"""Workload files: a folder of CSV tables, or a file in the Standard Workload Format (SWF)."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.libraries import pd
from ..scheduling.workload import FIRST_LINE, MOST_SERVERS, Workload
from . import _csv

_FIELDS = 18
#: Status codes of partial executions of a job, which also has a line of its own.
_PARTS = (2, 3, 4)
_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*(\d+)")
_TABLES = ("tasks", "servers", "users", "changes")


def read_swf(path: str | Path) -> Workload:
    """Read a workload in SWF, on the servers and processors of its header (MaxNodes, MaxProcs).

    Without a header there are as many servers of one processor as the largest job requests. Memory is a resource if all
    jobs state it; servers then have the memory that their processors would need at the largest request. The requested
    time is the `walltime`. Jobs that did not run (no run time, no processors), and lines about partial executions of
    jobs, are excluded and counted.

    Raises
    ------
    DataError
        The file cannot be read, a line does not have 18 numbers, a time is negative, no job ran, or there are more
        nodes than can be simulated; the message names the file, and the line if one is invalid.
    """
    try:
        lines = _csv.content(Path(path)).decode(errors="replace").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    said = {name: int(value) for line in lines for name, value in _HEADER.findall(line)}
    rows, numbers = [], []
    for number, line in enumerate(lines, 1):
        text = line.partition(";")[0].split()
        if text:
            rows.append(_row(text, f"{path}:{number}"))
            numbers.append(number)
    table = np.array(rows, dtype=float).reshape(-1, _FIELDS)
    processors = np.where(table[:, 7] > 0, table[:, 7], table[:, 4])
    memory = np.where(table[:, 9] > 0, table[:, 9], table[:, 6])
    part = np.isin(table[:, 10], _PARTS)
    ran = (table[:, 3] > 0) & (processors > 0) & ~part
    if not ran.any():
        raise DataError(f"{path} has no job that ran; lines have 18 numbers, the 4th a run time, the 8th processors")
    for k in np.flatnonzero(ran & (table[:, 1] < 0)).tolist():
        raise DataError(f"{path}:{numbers[k]}: submitted at {table[k, 1]:g}; it must be seconds >= 0")
    kept, processors, memory = table[ran], processors[ran], memory[ran]
    tasks = pd.DataFrame(
        {
            "user": [f"user{int(user)}" for user in kept[:, 11]],
            "job": [f"job{int(job)}" for job in kept[:, 0]],
            "arrival": kept[:, 1],
            "duration": kept[:, 3],
            "walltime": np.maximum(kept[:, 8], 0.0),
            "tasks": processors,
            "cpu": 1.0,
        }
    )
    number = said.get("MaxProcs") or max(said.get("MaxNodes", 0), int(np.ceil(processors.max())))
    nodes = min(said.get("MaxNodes") or number, number)
    if nodes > MOST_SERVERS:
        raise DataError(f"{path} has {nodes} nodes; at most {MOST_SERVERS} can be simulated: mend MaxNodes or MaxProcs")
    # Processors are distributed as evenly as possible over nodes.
    each, count = np.unique((number + np.arange(nodes)) // nodes, return_counts=True)
    where = {"count": count, "cpu": each.astype(float)}
    if (memory > 0).all():
        tasks["memory"] = memory
        where["memory"] = each * float(memory.max())
    report: dict[str, int | float | str] = {
        "jobs": len(kept),
        "jobs that did not run, left out": int((~ran & ~part).sum()),
        "lines about parts of jobs, left out": int(part.sum()),
    }
    source = f"{Path(path).name}: {len(kept)} jobs, {int(processors.sum())} tasks of one processor"
    try:
        return Workload.from_frames(tasks, pd.DataFrame(where), source=source, report=report)
    except DataError as error:
        if error.where[:1] != ("tasks",):
            raise
        raise DataError(f"{path}:{np.array(numbers)[ran][error.where[1]]}: {error}", error.where) from None


def _row(text: list[str], where: str) -> list[float]:
    try:
        row = [float(value) for value in text]
    except ValueError:
        raise DataError(f"{where}: {' '.join(text)[:60]!r} is not 18 numbers") from None
    if len(row) != _FIELDS or not np.isfinite(row).all():
        found = len(row) if len(row) != _FIELDS else "infinite ones, or none, among the"
        raise DataError(f"{where}: there are {found} numbers; a job has {_FIELDS}, -1 for what is not known")
    return row


def is_file(name: str) -> bool:
    """True if a name is that of a folder of tables or of an SWF file, as opposed to a source."""
    return name.endswith((".swf", ".swf.gz")) or (Path(name) / "tasks.csv").is_file()


def load(path: str | Path) -> Workload:
    """Read a workload from a folder of tables, or from an SWF file (`.swf`, `.swf.gz`).

    A folder has `tasks.csv` and `servers.csv`, and optionally `users.csv` and `changes.csv`, with the columns of
    `Workload.from_frames`.

    Raises
    ------
    DataError
        A file is missing or invalid; the message names file and line.

    >>> import fairopt as fo
    >>> fo.workloads.load_workload("folder/of/tables")  # doctest: +SKIP
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
            place, line = folder / f"{error.where[0]}.csv", given[error.where[0]].index[error.where[1]] + FIRST_LINE
            raise DataError(f"{place}:{line}: {error}", error.where) from None
        raise DataError(f"{folder}: {error}", error.where) from None
    lines = given["tasks"].index.to_numpy()
    return dataclasses.replace(found, file=str(folder / "tasks.csv"), row=lines[found.row])


def save(workload: Workload, folder: str | Path) -> None:
    """Write a workload to a folder of tables, each file atomically.

    Parameters
    ----------
    workload : Workload
        Written as `tasks.csv`, `servers.csv`, `users.csv` and, if servers leave or return, `changes.csv`.
    folder : str or Path
        Created if it does not exist; existing files are replaced.

    Raises
    ------
    DataError
        A file cannot be written.
    OSError
        The folder cannot be created.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import fairopt as fo
    >>> day = fo.open_workload("google-day?tasks=20&servers=2&seed=1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fo.workloads.save_workload(day, folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['servers.csv', 'tasks.csv', 'users.csv']
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, table in workload.to_frames().items():
        if name != "changes" or len(table):
            files.write(place / f"{name}.csv", table.to_csv(index=False), "table of a workload")


def _table(path: Path) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    try:
        names = pd.read_csv(path, header=None, nrows=1, dtype=str, skipinitialspace=True, keep_default_na=False).iloc[0]
        found = pd.read_csv(
            path,
            dtype=dict.fromkeys(("user", "job", "server", "type", "on", "after"), str),
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],  # NA may be a name
            skip_blank_lines=False,
        )
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from None
    for name in names[names.duplicated()]:  # Pandas renames a duplicated column to cpu.1
        raise DataError(f"{path}:1: two columns are called {name!r}; rename one")
    if not isinstance(found.index, pd.RangeIndex):  # Pandas takes surplus fields for an index
        raise DataError(f"{path}:{FIRST_LINE}: there are more fields than the header has; remove them, or name them")
    return found.dropna(how="all")  # empty lines are removed
