"""Who computes the cells: this process, processes of this machine, or a Dask cluster. All give the same rows.

An executor is a generator of lists of rows in the order in which cells finish; closing it stops the work. Workers get
small cells by the dozen and hand in what they have after a quarter of a second: what dies with one is that much and
the cell it was at.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import _dask
from ._ends import Stopped
from .kinds import AnyCell, run, warm_up
from .run import Row

Executor = Callable[[Sequence[AnyCell], str | None, int | None], Iterator[list[Row]]]


@dataclass(frozen=True)
class ExecutorOptions:
    """How cells are handed to processes."""

    #: Processes that die (memory) take the pool with them; it is started again this often.
    restarts: int = 3
    #: Cells that are sent together at most;
    together: int = 16
    #: seconds after which no more of them are begun;
    batch_seconds: float = 0.25
    #: and turns of a worker at least.
    turns: int = 8


#: What is used unless a caller says otherwise.
OPTIONS = ExecutorOptions()

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def serial(cells: Sequence[AnyCell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
    """One after another, here."""
    for cell in cells:
        yield [run(cell, traces, threads)]


def processes(jobs: int) -> Executor:
    """`jobs` processes of this machine, by joblib."""

    def execute(cells: Sequence[AnyCell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        warm_up(cells)
        left = {cell.key: cell for cell in cells}
        queue, deaths = deque(_batches(cells, jobs)), 0
        begun: set[str] = set()

        def tasks() -> Iterator[Any]:
            while queue:
                batch = queue.popleft()
                begun.update(cell.key for cell in batch)
                yield delayed(_worker)(batch, traces, threads)

        try:
            while left:
                pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
                try:
                    with _threads(threads):
                        for rows, remaining in pool(tasks()):
                            for row in rows:
                                del left[row["key"]]
                            queue.extend([cell] for cell in remaining)
                            yield rows
                except TerminatedWorkerError as error:
                    deaths += 1
                    if deaths > OPTIONS.restarts:
                        raise Stopped(f"processes die again and again (memory?); use fewer --jobs. {error}") from None
                    # Those that were under way come last: others need not wait for one that kills.
                    queue = deque([cell] for cell in sorted(left.values(), key=lambda cell: cell.key in begun))
                    begun = set()
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)

    return execute


def dask(address: str) -> Executor:
    """The workers of a running Dask scheduler, such as `tcp://HOST:8786`; needs `fairopt[dask]`."""

    def execute(cells: Sequence[AnyCell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
        with _dask.connected(address) as client:
            batches = _batches(cells, max(len(client.ncores()), 1))
            yield from _dask.execute(client, batches, several, traces, threads)

    return execute


def several(cells: Sequence[AnyCell], traces: str | None, threads: int | None) -> tuple[list[Row], Sequence[AnyCell]]:
    """Rows of the first cells, those begun within `OPTIONS.batch_seconds`, one at least; and the others."""
    end, rows = time.monotonic() + OPTIONS.batch_seconds, []
    for cell in cells:
        rows.append(run(cell, traces, threads))
        if time.monotonic() > end:
            break
    return rows, cells[len(rows) :]


def _batches(cells: Sequence[AnyCell], workers: int) -> list[Sequence[AnyCell]]:
    """Cells that are sent together: sending costs as much as a small cell takes. Those of one cluster stay together."""
    size = max(1, min(OPTIONS.together, len(cells) // (OPTIONS.turns * workers)))
    return [cells[k : k + size] for k in range(0, len(cells), size)]


def _worker(cells: Sequence[AnyCell], traces: str | None, threads: int | None) -> tuple[list[Row], Sequence[AnyCell]]:
    """In a process of a pool: Ctrl-C is for the one who started it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return several(cells, traces, threads)


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """What processes started in here are told about threads, for pools that read it only when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    if threads is not None:
        os.environ.update({name: str(threads) for name in _THREAD_VARIABLES})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
