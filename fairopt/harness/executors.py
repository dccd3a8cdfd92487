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
from typing import Any

from ..errors import FairoptError
from .cells import Cell
from .run import Row, failed, run

Executor = Callable[[Sequence[Cell], str | None, int | None], Iterator[list[Row]]]

#: Processes that die (memory) take the pool with them; it is started again this often.
_RESTARTS = 3
#: Cells that are sent together at most; seconds after which no more of them are begun; and turns of a worker at least.
_TOGETHER, _ENOUGH, _TURNS = 16, 0.25, 8
#: Seconds to wait for a Dask scheduler.
_PATIENCE = 20.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def serial(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
    """One after another, here."""
    for cell in cells:
        yield [run(cell, traces, threads)]


def processes(jobs: int) -> Executor:
    """`jobs` processes of this machine, by joblib."""

    def execute(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = {cell.key: cell for cell in cells}
        queue, deaths = deque(_batches(cells, jobs)), 0

        def tasks() -> Iterator[Any]:
            while queue:
                yield delayed(_worker)(queue.popleft(), traces, threads)

        try:
            while left:
                pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
                try:
                    with _threads(threads):
                        for rows, rest in pool(tasks()):
                            for row in rows:
                                del left[row["key"]]
                            queue.extend([cell] for cell in rest)
                            yield rows
                except TerminatedWorkerError as error:
                    deaths += 1
                    if deaths > _RESTARTS:
                        raise FairoptError(
                            f"processes die again and again with {len(left)} cells left (memory?); use fewer --jobs. "
                            f"What is finished is stored. {error}"
                        ) from None
                    queue = deque([cell] for cell in left.values())
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)

    return execute


def dask(address: str) -> Executor:
    """The workers of a running Dask scheduler, such as `tcp://HOST:8786`; needs `fairopt[dask]`."""

    def execute(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[list[Row]]:
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise FairoptError("Dask is not installed; pip install 'fairopt[dask]'") from None
        try:
            client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise FairoptError(f"no Dask scheduler answers at {address}: {error}") from None
        with client:
            known: dict[str, Sequence[Cell]] = {}

            def send(batches: Sequence[Sequence[Cell]]) -> list[Any]:
                # Not pure: that a scheduler remembers a cell of an earlier sweep must not matter.
                futures = client.map(several, batches, traces=traces, threads=threads, pure=False)
                known.update(zip((future.key for future in futures), batches, strict=True))
                return list(futures)

            futures = send(_batches(cells, max(len(client.ncores()), 1)))
            completed = as_completed(futures, loop=client.loop)
            try:
                for future in completed:
                    batch = known.pop(future.key)
                    if future.status == "finished":
                        rows, rest = future.result()
                        yield rows
                    elif len(batch) == 1:  # its workers died, several times
                        yield [failed(batch[0], future.exception())]
                        rest = []
                    else:
                        rest = batch
                    future.release()
                    if rest:
                        more = send([[cell] for cell in rest])
                        futures += more
                        completed.update(more)
            finally:
                client.cancel([future for future in futures if future.key in known])

    return execute


def several(cells: Sequence[Cell], traces: str | None, threads: int | None) -> tuple[list[Row], Sequence[Cell]]:
    """Rows of the first cells, as many as are begun within `_ENOUGH` seconds and one at least; and the other cells."""
    end, rows = time.monotonic() + _ENOUGH, []
    for cell in cells:
        rows.append(run(cell, traces, threads))
        if time.monotonic() > end:
            break
    return rows, cells[len(rows) :]


def _batches(cells: Sequence[Cell], workers: int) -> list[Sequence[Cell]]:
    """Cells that are sent together: sending costs as much as a small cell takes. Those of one cluster stay together."""
    size = max(1, min(_TOGETHER, len(cells) // (_TURNS * workers)))
    return [cells[k : k + size] for k in range(0, len(cells), size)]


def _worker(cells: Sequence[Cell], traces: str | None, threads: int | None) -> tuple[list[Row], Sequence[Cell]]:
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
