"""Executors of cells: this process, processes of this machine, or any other executor. All produce the same rows.

An `Execute` function yields packed rows in the order in which cells finish; closing the iterator stops the computation.
A worker gets up to `_SENT` small cells, or a stack of cells that is solved together (`stack`), and returns finished
rows after `_SECONDS`. If a worker dies, the rows of that period and the current cell or stack are lost.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from typing import Any

from ..base.errors import FairoptError
from ..base.libraries import of_an_extra
from . import stack
from .cell import Cell, Row, Work
from .ends import Elsewhere, Stopped
from .run import run, together, warm_up
from .store import Packed, pack

#: Function that computes units of work, given the folder of traces and the number of threads.
Execute = Callable[[Sequence[Work], str | None, int | None], Iterator[Packed]]

#: Libraries that start threads, which a forked process would lack.
_THREADED = ("numba", "scipy.optimize", "highspy", "clarabel", "scs", "cvxpy")
#: `_SENT`: largest number of single cells in a message. `_SECONDS`: time after which a worker starts no further cell.
#: `_TURNS`: number of messages per worker.
_SENT, _SECONDS, _TURNS = 16, 0.25, 8
#: `_PARENT_DEATH_SIGNAL`: option of `prctl` for the signal that a process receives when its parent ends
#: (linux/prctl.h). `_HEARTBEAT`: seconds between two checks that the parent still runs.
_PARENT_DEATH_SIGNAL, _HEARTBEAT = 1, 1.0
#: Environment variables from which libraries read their number of threads when they are loaded.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def works(cells: Sequence[Cell], missing: Iterable[str]) -> list[Work]:
    """Group cells into units of work for the `missing` keys: stacks of similar cells, or single cells, in order."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        alike = (cell.origin, cell.seed, cell.job, cell.measures, cell.repetition // stack.TOGETHER)
        groups.setdefault(alike if stack.may_be(cell) else cell.key, []).append(cell)
    wanted = frozenset(missing)
    found = (Work(tuple(group), wanted.intersection(cell.key for cell in group)) for group in groups.values())
    return [work for work in found if work.wanted]


def several(
    todo: Sequence[Work], traces: str | None, threads: int | None, seconds: float = _SECONDS
) -> tuple[Packed, list[Work]]:
    """Compute units of work for about `seconds`, at least one row, and return packed rows and the remaining units."""
    end, left = time.monotonic() + seconds, deque(todo)
    schema, rows = todo[0].cells[0].job.schema, list[Row]()
    while left and (not rows or time.monotonic() < end):
        work = left.popleft()
        if len(work.cells) == 1:
            rows.append(run(work.cells[0], traces, threads))
            continue
        found, alone = together(work.cells, traces, threads)
        asked = {cell.key for cell in work.asked}
        rows += [row for row in found if row["key"] in asked]
        left.extendleft(Work((cell,)) for cell in reversed(alone) if cell.key in asked)
    return pack(rows, schema), list(left)


def batches(todo: Sequence[Work], workers: int) -> list[list[Work]]:
    """Group units of work into messages of at most 16, as a message takes as long as a small cell.

    A stack is a message by itself.
    """
    size = max(1, min(_SENT, len(todo) // (_TURNS * workers)))
    found: list[list[Work]] = []
    for work in todo:
        if not found or len(found[-1]) == size or len(found[-1][-1].cells) > 1 or len(work.cells) > 1:
            found.append([])
        found[-1].append(work)
    return found


def serial(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
    """Execute cells sequentially in this process, and yield packed rows, of one cell or stack at a time."""
    while todo:
        found, todo = several(todo, traces, threads, 0.0)
        yield found


def on(given: Executor, workers: int) -> Execute:
    """Function that executes cells on an executor of `concurrent.futures`, such as that of a Dask client.

    At the end, work that has not begun is cancelled, but the executor is not shut down.
    """

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        at: dict[Future[Any], Any] = {}
        try:
            yield from _handed_in(batches(todo, workers), lambda: given, 0, len(todo), workers, at, traces, threads)
        finally:
            for future in at:
                future.cancel()

    return execute


def processes(jobs: int) -> Execute:
    """Function that executes cells in `jobs` processes of this machine, which are killed at the end."""

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        warm_up(work.cells[0] for work in todo)
        made: list[Any] = []

        def make() -> Executor:
            made.append(_pool(jobs, threads))
            return made[-1]  # type: ignore[no-any-return]

        try:
            yield from _handed_in(batches(todo, jobs), make, 3, 2 * jobs, jobs, {}, traces, threads)
        finally:
            for pool in made:
                for process in [*(pool._processes or ())]:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)  # the result of an unfinished cell is no longer needed
                pool.shutdown()

    return execute


def _handed_in(
    todo: Iterable[list[Work]], make: Callable[[], Executor], breaks: int, ahead: int, workers: int,
    at: dict[Future[Any], Any], traces: str | None, threads: int | None,
) -> Iterator[Packed]:  # fmt: skip
    """Yield rows as they complete; `at` maps the futures of at most `ahead` pending batches to batch and executor.

    The cells of a batch that failed are sent again, each by itself, and a cell that fails by itself is omitted, unless
    its executor broke. A broken executor is replaced at most `breaks` times.

    Raises
    ------
    Stopped
        At the end if cells were omitted, or earlier if no worker is left.
    Elsewhere
        A worker has other code or data than this process.
    """
    queue, dead, pool = deque(todo), list[tuple[Cell, Exception]](), make()
    while queue or at:
        for batch in [queue.popleft() for _ in range(min(ahead - len(at), len(queue)))]:
            at[_submitted(pool, batch, traces, threads)] = batch, pool
        for future in wait(at, return_when=FIRST_COMPLETED).done:
            batch, its = at.pop(future)
            try:
                rows, left = future.result()
            except Elsewhere:
                raise
            except CancelledError:
                raise Stopped("the workers are gone, or were told to give up their tasks") from None
            except Exception as error:
                if isinstance(error, BrokenExecutor) and its is pool:
                    if not breaks:
                        raise Stopped("processes die again and again (memory?); use fewer of them (--jobs)") from None
                    breaks, pool = breaks - 1, make()
                alone = [Work((cell,)) for work in batch for cell in work.asked]
                if len(alone) > 1 or isinstance(error, BrokenExecutor):
                    queue.extend([work] for work in alone)
                else:
                    dead.append((alone[0].cells[0], error))
            else:
                queue.extend(batches(left, workers))
                yield rows
    for cell, cause in dead[:1]:
        text = " ".join(str(cause).split())
        raise Stopped(
            f"{len(dead)} cells were not computed, as workers died of them or could not send them (memory?), such as "
            f"{cell.label}: {type(cause).__name__}: {text[:200]}"
        )


def _submitted(pool: Executor, batch: list[Work], traces: str | None, threads: int | None) -> Future[Any]:
    """Submit a batch, and return its future, which has already failed if the executor is broken."""
    try:
        return pool.submit(several, batch, traces, threads)
    except BrokenExecutor as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _pool(jobs: int, threads: int | None) -> Any:
    """Create worker processes: forks of this process, which saves seconds of imports, or else new processes of loky.

    A fork contains only the thread that created it, and works without the monitor thread of tqdm and without the
    threads of linear algebra. Any other thread, and any loaded library in `_THREADED`, rules out forks.
    """
    variables = {} if threads is None else dict.fromkeys(_THREAD_VARIABLES, str(threads))
    others = [thread for thread in threading.enumerate() if thread.name not in ("MainThread", "tqdm_monitor")]
    if sys.platform == "linux" and not others and not any(name in sys.modules for name in _THREADED):
        copies = multiprocessing.get_context("fork")
        pool: Any = ProcessPoolExecutor(jobs, copies, initializer=_begin, initargs=(variables, os.getpid()))
    else:  # processes of loky, unlike spawned processes of `multiprocessing`, do not run the main script again
        loky = of_an_extra("joblib.externals.loky.process_executor")
        pool = loky.ProcessPoolExecutor(jobs, initializer=_begin, initargs=(variables, os.getpid()), env=variables)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        pool.submit(int)
    return pool


def _begin(variables: dict[str, str], parent: int) -> None:
    """Initialise a worker: it ignores Ctrl-C, which the parent handles, and ends when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork inherits the handler of its parent
    os.environ.update(variables)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended.

    On Linux, `prctl` makes the kernel end the process at once, unless the parent ended before the call in `_begin`;
    other systems have no such call. The parent is therefore checked every `_HEARTBEAT` seconds.
    """
    made_by = multiprocessing.parent_process()
    while os.getppid() == parent and not (sys.platform == "win32" and made_by and not made_by.is_alive()):
        time.sleep(_HEARTBEAT)
    os._exit(1)


@contextmanager
def dask(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to a Dask scheduler, such as `tcp://HOST:8786`, and yield an executor and the number of its workers.

    Raises `FairoptError` if no scheduler answers.
    """
    try:
        client = of_an_extra("distributed").Client(address, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise FairoptError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client.get_executor(pure=False), max(len(client.ncores()), 1)
