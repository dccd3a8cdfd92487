"""Who computes the cells: this process, processes of this machine, or a Dask cluster. All give the same rows.

An executor is a generator of rows in the order in which cells finish; closing it stops the work.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..errors import FairoptError
from .cells import Cell
from .run import Row, failed, run

Executor = Callable[[Sequence[Cell], str | None, int | None], Iterator[Row]]

#: Processes that die (memory) take the pool with them; it is started again this often.
_RESTARTS = 3
#: Seconds to wait for a Dask scheduler.
_PATIENCE = 20.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def serial(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[Row]:
    """One after another, here."""
    for cell in cells:
        yield run(cell, traces, threads)


def processes(jobs: int) -> Executor:
    """`jobs` processes of this machine, by joblib."""

    def execute(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[Row]:
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = {cell.key: cell for cell in cells}
        try:
            for attempt in range(_RESTARTS + 1):
                pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
                try:
                    with _threads(threads):
                        for row in pool(delayed(_worker)(cell, traces, threads) for cell in list(left.values())):
                            del left[row["key"]]
                            yield row
                    return
                except TerminatedWorkerError as error:
                    if attempt == _RESTARTS:
                        raise FairoptError(
                            f"processes die again and again with {len(left)} cells left (memory?); use fewer --jobs. "
                            f"What is finished is stored. {error}"
                        ) from None
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)

    return execute


def dask(address: str) -> Executor:
    """The workers of a running Dask scheduler, such as `tcp://HOST:8786`; needs `fairopt[dask]`."""

    def execute(cells: Sequence[Cell], traces: str | None, threads: int | None) -> Iterator[Row]:
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise FairoptError("Dask is not installed; pip install 'fairopt[dask]'") from None
        try:
            client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise FairoptError(f"no Dask scheduler answers at {address}: {error}") from None
        with client:
            # Not pure: that a scheduler remembers a cell of an earlier sweep must not matter.
            futures = client.map(run, cells, traces=traces, threads=threads, pure=False)
            known = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
            try:
                for future in as_completed(futures, loop=client.loop):
                    if future.status == "finished":
                        yield future.result()
                    else:  # its workers died, several times
                        yield failed(known[future.key], future.exception())
                    del known[future.key]
                    future.release()
            finally:
                client.cancel([future for future in futures if future.key in known])

    return execute


def _worker(cell: Cell, traces: str | None, threads: int | None) -> Row:
    """In a process of a pool: Ctrl-C is for the one who started it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return run(cell, traces, threads)


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
