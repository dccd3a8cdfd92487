"""Computation of cells: rows with provenance, for results and for errors."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ..base import clock, files, plugins, version
from ..base.errors import DataError, EngineWarning
from ..base.libraries import of_an_extra
from ..base.loops import compiling
from ..mechanisms.reference import solvers
from . import stack
from .cell import Cell, Row
from .ends import Elsewhere
from .solve import Solve


def run(cell: Cell, traces: str | None = None, threads: int | None = 1) -> Row:
    """Compute the row of a cell, with its results or with the error that the computation raised.

    Parameters
    ----------
    cell : Cell
    traces : str, optional
        Folder of the traces.
    threads : int, optional
        Number of threads of BLAS; None leaves the number unchanged.

    Raises
    ------
    Elsewhere
        The code, the data or the plug-ins of this process differ from those of the sweep.
    """
    found, error, took = _computed(cell, threads, lambda: cell.job.answer(cell, traces))
    return (failed(cell, error) if error else cell.requested | found) | here(threads) | took


def _computed(cell: Cell, threads: int | None, compute: Callable[[], Row]) -> tuple[Row, Exception | None, Row]:
    """Result, or the error that was raised, and the time taken; an error in one cell must not end the sweep."""
    check(cell)
    watch, found, error = clock.Watch(), Row(), None
    try:
        # A fixed number of threads and compiled loops yield the same digits in every process.
        with pools().limit(limits=threads), compiling():
            cell.job.warm()
            found = compute()
    except Elsewhere:
        raise
    except Exception as raised:
        error = raised
    return found, error, {"elapsed": watch.seconds, "loops": watch.loops}


def together(cells: Sequence[Cell], traces: str | None, threads: int | None) -> tuple[list[Row], list[Cell]]:
    """Compute rows of draws that are solved together; return them, and the cells that have to be solved individually.

    If the joint solution fails, an `EngineWarning` is issued, and all cells have to be solved individually.

    Raises
    ------
    Elsewhere
        The code, the data or the plug-ins of this process differ from those of the sweep.
    """
    found, error, took = _computed(cells[0], threads, lambda: stack.rows(cells, traces))
    if error:  # solving each cell individually attributes the error to the cell that causes it
        said = f"draws are solved one by one, as solving them together failed ({type(error).__name__}: {error})"
        warnings.warn(f"{said}: please report it", EngineWarning, stacklevel=2)
    took = here(threads) | {name: value / len(cells) for name, value in took.items()}
    rows = [cell.requested | found[cell.key] | took for cell in cells if cell.key in found]
    return rows, [cell for cell in cells if cell.key not in found]


def check(cell: Cell) -> None:
    """Raise `Elsewhere` if the code of this process is not that of the sweep, since files may change during a sweep."""
    try:
        plugins.needed(cell.plugins)
        here = cell.job.code(cell.measures)
    except DataError as error:
        raise Elsewhere(f"a worker does not know {cell.job.what}, or its plug-in is another one: {error}") from None
    if here != cell.code:
        raise Elsewhere(f"a worker on {platform.node()} has other code for {cell.job.what}; install the same")


def warm_up(cells: Iterable[Cell]) -> None:
    """Compile loops for mechanisms of the package before workers start, each of which would otherwise compile them."""
    for job in {cell.job for cell in cells}:
        ours = type(job.what.made).__module__.startswith("fairopt.")
        if ours and isinstance(job, Solve) and job.engine != "declarative":
            with compiling():
                job.warm()


def failed(cell: Cell, error: BaseException) -> Row:
    """Row of a cell that failed with an error."""
    text = files.unplaced(f"{type(error).__name__}: {' '.join(str(error).split())}")
    return cell.requested | here(None) | {"status": "failed", "error": text}


def here(threads: int | None) -> Row:
    """Provenance of a row: versions, machine, process and time."""
    return provenance() | {"process": os.getpid(), "threads": threads or 0, "finished": datetime.now(UTC)}


@cache
def provenance() -> Row:
    """Provenance shared by all cells of a process: versions, machine, and commit."""
    return {
        "fairopt": version.__version__,
        "commit": version.commit(Path(__file__).resolve().parents[2]) or version.built(),
        "versions": json.dumps(dict(solvers.versions()), sort_keys=True),
        "python": platform.python_version(),
        "machine": f"{platform.node()} ({platform.system()} {platform.machine()})",
        "cores": os.cpu_count() or 0,
    }


@cache
def pools() -> Any:
    """Thread pools of this process, detected once, as the detection takes longer than a small cell."""
    return of_an_extra("threadpoolctl").ThreadpoolController()
