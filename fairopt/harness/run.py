"""Running a cell: a row comes back whatever its code raises, with provenance."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ..base import clock, files, plugins
from ..base.errors import DataError
from ..base.libraries import of_an_extra
from ..base.loops import compiling
from ..base.version import __version__
from ..mechanisms.reference import solvers
from . import stack
from .cell import Cell, Row
from .ends import Elsewhere
from .solve import Solve


def run(cell: Cell, traces: str | None = None, threads: int | None = 1) -> Row:
    """The row of a cell: numbers, or the error. `threads`: of BLAS; None leaves them alone.

    Raises
    ------
    Elsewhere
        This process cannot answer: its code, its data or its plug-ins are other than where the sweep was started.
    """
    check(cell)
    watch = clock.Watch()
    try:
        with pools().limit(limits=threads), compiling():  # the same digits in every process
            cell.job.warm()
            row = cell.requested | cell.job.answer(cell, traces)
    except Elsewhere:
        raise
    except Exception as error:  # a row, not the end of a sweep of thousands
        row = failed(cell, error)
    return row | here(threads) | {"elapsed": watch.seconds, "loops": watch.loops}


def together(cells: Sequence[Cell], traces: str | None, threads: int | None) -> tuple[list[Row], list[Cell]]:
    """Rows of draws that are solved together, and the cells that are to be solved alone: all of them if that fails.

    Raises
    ------
    Elsewhere
        As `run`.
    """
    check(cells[0])
    watch, found = clock.Watch(), dict[str, Row]()
    try:
        with pools().limit(limits=threads), compiling():
            cells[0].job.warm()
            found = stack.rows(cells, traces)
    except Elsewhere:
        raise
    except Exception:  # whose error it is will be seen
        return [], [*cells]
    took = {"elapsed": watch.seconds / len(cells), "loops": watch.loops / len(cells)}
    done = [cell for cell in cells if cell.key in found]
    return [cell.requested | found[cell.key] | here(threads) | took for cell in done], [
        cell for cell in cells if cell.key not in found
    ]


def check(cell: Cell) -> None:
    """Raise `Elsewhere` if here is not what the sweep was started with: processes may have read other files."""
    try:
        plugins.needed(cell.plugins)
        here = cell.job.code(cell.measures)
    except DataError as error:
        raise Elsewhere(f"a worker does not know {cell.job.what}, or its plug-in is another one: {error}") from None
    if here != cell.code:
        raise Elsewhere(f"a worker on {platform.node()} has other code for {cell.job.what}; install the same")


def warm_up(cells: Iterable[Cell]) -> None:
    """Compile what processes that begin together would all compile: of the package's own, which is known to end."""
    for job in {cell.job for cell in cells}:
        ours = type(job.what.made).__module__.startswith("fairopt.")
        if ours and isinstance(job, Solve) and job.engine != "declarative":
            with compiling():
                job.warm()


def failed(cell: Cell, error: BaseException) -> Row:
    """The row of a cell that has only an error."""
    text = files.unplaced(f"{type(error).__name__}: {' '.join(str(error).split())}")
    return cell.requested | here(None) | {"status": "failed", "error": text}


def here(threads: int | None) -> Row:
    """Provenance of a row: machine, versions and time."""
    return provenance() | {"process": os.getpid(), "threads": threads or 0, "finished": datetime.now(UTC)}


@cache
def provenance() -> Row:
    """The columns of a row that are the same for every cell of a process: versions, machine, commit."""
    return {
        "fairopt": __version__,
        "commit": _commit(),
        "versions": json.dumps(dict(solvers.versions()), sort_keys=True),
        "python": platform.python_version(),
        "machine": f"{platform.node()} ({platform.system()} {platform.machine()})",
        "cores": os.cpu_count() or 0,
    }


def _commit() -> str | None:
    """The commit of a checkout, `+` if files under version control were changed; None elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head, changed = (
            subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True, timeout=10).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+" if changed.strip() else "")


@cache
def pools() -> Any:
    """The thread pools of this process; looking for them takes longer than a small cell, so it is done once."""
    return of_an_extra("threadpoolctl").ThreadpoolController()
