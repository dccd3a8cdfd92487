"""Who computes the cells: this process, processes of this machine, or a Dask cluster. All give the same rows.

An executor is a generator of packed rows in the order in which cells finish; closing it stops the work. Workers get
small cells by the dozen, or a stack of them that is solved together (`stack`), and hand in what they have after a
quarter of a second: what dies with one is that much and the cell or the stack it was at.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _dask, stack
from .cell import Cell, Row, Work
from .ends import Stopped
from .run import run, together, warm_up
from .store import Packed, pack

Executor = Callable[[Sequence[Work], str | None, int | None], Iterator[Packed]]


def works(cells: Sequence[Cell], missing: Iterable[str]) -> list[Work]:
    """What there is to do of an experiment, in the order of its cells, for rows of `missing` (keys)."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        alike = (cell.origin, cell.seed, cell.job, cell.measures, cell.repetition // stack.TOGETHER)
        groups.setdefault(alike if stack.may_be(cell) else cell.key, []).append(cell)
    wanted = frozenset(missing)
    found = (Work(tuple(group), wanted.intersection(cell.key for cell in group)) for group in groups.values())
    return [work for work in found if work.wanted]


#: Processes that die (memory) take the pool with them; it is started again this often.
_RESTARTS = 3
#: Single cells that are sent together at most, seconds after which no more of them are begun, and turns of a worker.
_TOGETHER, _SECONDS, _TURNS = 16, 0.25, 8

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def serial(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
    """One after another, here."""
    while todo:
        found, todo = several(todo, traces, threads, 0.0)
        yield found


def processes(jobs: int) -> Executor:
    """`jobs` processes of this machine, by joblib."""

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        warm_up(work.cells[0] for work in todo)
        left = {
            cell.key: cell for work in todo for cell in work.cells if work.wanted is None or cell.key in work.wanted
        }
        queue, deaths = deque(batches(todo, jobs)), 0
        begun: set[str] = set()

        def tasks() -> Iterator[Any]:
            while queue:
                batch = queue.popleft()
                begun.update(cell.key for work in batch for cell in work.cells)
                yield delayed(_worker)(batch, traces, threads)

        try:
            while left:
                pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
                try:
                    with _threads(threads):
                        for found, remaining in pool(tasks()):
                            for key in found.keys:
                                del left[key]
                            queue.extend(batches(remaining, jobs))
                            yield found
                except TerminatedWorkerError as error:
                    deaths += 1
                    if deaths > _RESTARTS:
                        raise Stopped(f"processes die again and again (memory?); use fewer --jobs. {error}") from None
                    # Those that were under way come last: others need not wait for one that kills.
                    cells = sorted(left.values(), key=lambda cell: cell.key in begun)
                    queue = deque([Work((cell,))] for cell in cells)
                    begun = set()
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)

    return execute


def dask(address: str) -> Executor:
    """The workers of a running Dask scheduler, such as `tcp://HOST:8786`; needs `fairopt[dask]`."""

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        with _dask.connected(address) as client:
            sent = batches(todo, max(len(client.ncores()), 1))
            yield from _dask.execute(client, sent, several, traces, threads)

    return execute


def several(
    todo: Sequence[Work], traces: str | None, threads: int | None, seconds: float = _SECONDS
) -> tuple[Packed, list[Work]]:
    """Rows of what is begun within these seconds, of one cell at least; and what is left to do."""
    end, left = time.monotonic() + seconds, deque(todo)
    schema, rows = todo[0].cells[0].job.schema, list[Row]()
    while left and (not rows or time.monotonic() < end):
        work = left.popleft()
        if len(work.cells) == 1:
            rows.append(run(work.cells[0], traces, threads))
            continue
        found, alone = together(work.cells, traces, threads)
        wanted = work.wanted or frozenset(cell.key for cell in work.cells)
        rows += [row for row in found if row["key"] in wanted]
        left.extendleft(Work((cell,)) for cell in reversed(alone) if cell.key in wanted)
    return pack(rows, schema), list(left)


def batches(todo: Sequence[Work], workers: int) -> list[list[Work]]:
    """Cells that are sent together: sending costs as much as a small cell takes. Those of one cluster stay together."""
    size = max(1, min(_TOGETHER, len(todo) // (_TURNS * workers)))
    found: list[list[Work]] = []
    for work in todo:
        if not found or len(found[-1]) == size or len(found[-1][-1].cells) > 1 or len(work.cells) > 1:
            found.append([])
        found[-1].append(work)
    return found


def _worker(todo: Sequence[Work], traces: str | None, threads: int | None) -> tuple[Packed, list[Work]]:
    """In a process of a pool: Ctrl-C is for the one who started it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return several(todo, traces, threads)


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
