"""Who computes the cells: this process, processes of this machine, or a Dask cluster. All give the same rows.

An executor is a generator of packed rows in the order in which cells finish; closing it stops the work. Workers get
small cells by the dozen, or a stack of them that is solved together (`stack`), and hand in what they have after a
quarter of a second: what dies with one is that much and the cell or the stack it was at.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from .._libraries import of_an_extra
from ..errors import FairoptError
from . import stack
from .cell import Cell, Row, Work
from .ends import Elsewhere, Stopped
from .run import run, together, warm_up
from .store import Packed, pack

if TYPE_CHECKING:
    from distributed import Client


#: Seconds to wait for a scheduler, and for a worker where there is none left; between looks at both; at what is lost.
PATIENCE, _LOOK, _LOST = 20.0, 1.0, 0.05
_SILENT = logging.CRITICAL + 1

#: What is sent together, of which packed rows come back, and what is left.
Batch = Sequence[Work]
Several = Callable[[Batch, str | None, int | None], tuple[Packed, Batch]]


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler; whatever happens, it is closed and nobody waits for one that is gone."""
    try:
        from distributed import Client
    except ImportError:
        raise FairoptError("Dask is not installed; pip install 'fairopt[dask]'") from None
    for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(_SILENT)  # a scheduler that ends is one line of ours, not pages
    client = _answered(lambda: Client(address, timeout=PATIENCE, set_as_default=False), address)
    try:
        yield client
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be told
            client.close(timeout=2 * _LOOK)


def _answered(connect: Callable[[], Client], address: str) -> Client:
    """The client, or an error: of what is no scheduler, as a worker, Dask itself would wait for an answer for ever."""
    found: SimpleQueue[Client | Exception] = SimpleQueue()

    def wait() -> None:
        try:
            found.put(connect())
        except Exception as error:
            found.put(error)

    threading.Thread(target=wait, daemon=True).start()
    try:
        client = found.get(timeout=PATIENCE + _LOOK)
    except Empty:
        client = TimeoutError(f"what is there is no scheduler, or does not say so in {PATIENCE:g} s")
    if isinstance(client, (OSError, TimeoutError, ValueError)):
        raise FairoptError(f"no Dask scheduler answers at {address}: {client}") from None
    if isinstance(client, Exception):
        raise client
    return client


class Sent:
    """Batches of cells at the workers."""

    def __init__(self, client: Client, several: Several, traces: str | None, threads: int | None) -> None:
        self.client, self._several, self._more = client, several, {"traces": traces, "threads": threads}
        self.batches: dict[str, tuple[Any, Batch]] = {}
        self._arrived: SimpleQueue[Any] = SimpleQueue()
        self._alone_since: float | None = None

    def send(self, batches: Sequence[Batch]) -> None:
        """Each a task. Not pure: that a scheduler remembers a cell of an earlier sweep must not matter."""
        futures = self.client.map(self._several, batches, pure=False, **self._more)
        for future, batch in zip(futures, batches, strict=True):
            self.batches[future.key] = (future, batch)
            future.add_done_callback(self._arrived.put)

    def next(self) -> tuple[Any, Batch]:
        """A batch that came back, in whatever state.

        Raises
        ------
        Stopped
            The scheduler is gone, or has had no worker for a while.
        """
        while True:
            try:
                future = self._arrived.get(timeout=_LOOK)
            except Empty:
                self._look()
                continue
            return future, self.batches.pop(future.key)[1]

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return str(self.client.scheduler.address) if self.client.scheduler else "?"

    def fetched(self, future: Any, batch: Batch) -> tuple[Any, Batch] | None:
        """What a worker found; None if it went away before it handed that over: then it is waited for again."""
        try:
            found: tuple[Any, Batch] = future.result(timeout=PATIENCE)
        except (Exception, CancelledError):  # not of the task, which is finished: of the way from there
            self.again(future, batch)
            return None
        return found

    def again(self, future: Any, batch: Batch) -> None:
        """Wait for it once more, if anybody is there."""
        self._look()
        self.batches[future.key] = (future, batch)
        future.add_done_callback(self._arrived.put)

    def _look(self) -> None:
        if self.client.status != "running":
            raise Stopped(f"the Dask scheduler at {self.address} is gone")
        try:
            workers = self.client.sync(self.client.scheduler.ncores, callback_timeout=PATIENCE)
        except Exception as error:
            raise Stopped(f"the Dask scheduler at {self.address} does not answer: {type(error).__name__}") from None
        self._alone_since = None if workers else self._alone_since or time.monotonic()
        if self._alone_since is not None and time.monotonic() - self._alone_since > PATIENCE:
            raise Stopped(f"no worker is left at the Dask scheduler {self.address}")

    def cancel(self) -> None:
        """Whoever still has some need not go on."""
        if self.batches and self.client.status == "running":
            with suppress(Exception):
                self.client.cancel([future for future, _ in self.batches.values()])


def handed_in(
    client: Client, batches: Sequence[Batch], several: Several, traces: str | None, threads: int | None
) -> Iterator[Any]:
    """Rows as they come. Cells whose worker died are sent again, each by itself, and left out if that dies as well.

    Raises
    ------
    Stopped
        At the end, if cells were left out; earlier, if nobody is there to compute.
    Elsewhere
        A worker has other code or data.
    """
    sent, dead = Sent(client, several, traces, threads), []
    sent.send(batches)
    try:
        while sent.batches:
            future, batch = sent.next()
            if future.status == "finished":
                found = sent.fetched(future, batch)
                if found is None:
                    continue
                rows, remaining = found
                yield rows
            elif future.status == "error":
                error = future.exception()
                if isinstance(error, Elsewhere):
                    raise error
                remaining = [Work((cell,)) for work in batch for cell in work.asked]
                if len(remaining) == 1:
                    dead.append((remaining.pop().cells[0], error))
            elif future.status == "cancelled":  # by a scheduler that ends, or somebody else
                raise Stopped(f"the Dask scheduler at {sent.address} is gone, or was told to give up its tasks")
            else:  # lost with the worker that had it: the scheduler gives it to another
                time.sleep(_LOST)  # until then Dask calls back at once
                sent.again(future, batch)
                continue
            future.release()
            if remaining:
                sent.send([[work] for work in remaining])
    finally:
        sent.cancel()
    if dead:
        cell, error = dead[0]
        text = " ".join(str(error).split())
        raise Stopped(
            f"{len(dead)} cells were not computed, as workers died of them or could not send them (memory?), such as "
            f"{cell.label}: {type(error).__name__}: {text[:200]}"
        )


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


#: Libraries with threads of their own, which a copy of this process would lack.
_THREADED = ("numba", "scipy.optimize", "highspy", "clarabel", "scs", "cvxpy")
#: Single cells that are sent together at most, seconds after which no more of them are begun, and turns of a worker.
_TOGETHER, _SECONDS, _TURNS = 16, 0.25, 8

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def serial(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
    """One after another, here."""
    while todo:
        found, todo = several(todo, traces, threads, 0.0)
        yield found


def processes(jobs: int) -> Executor:
    """`jobs` processes of this machine."""

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        warm_up(work.cells[0] for work in todo)
        team = _Team(batches(todo, jobs), traces, threads)
        with _threads(threads):
            for _ in range(min(jobs, len(team.queue))):
                team.start()
        return team.rows(jobs)

    return execute


class _Team:
    """Processes that compute, each with its end of a pipe, and what every one of them is at."""

    def __init__(self, todo: Iterable[list[Work]], traces: str | None, threads: int | None) -> None:
        self.queue, self.members = deque(todo), dict[Connection, Any]()
        self.at: dict[Connection, list[Work]] = {}
        self._more = traces, threads
        self._context: Any = _context()

    def start(self) -> None:
        """One more."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, *self._more), daemon=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # see _context
            process.start()
        theirs.close()
        self.members[ours] = process

    def rows(self, jobs: int) -> Iterator[Packed]:
        """What they hand in. Cells of one that dies are computed once more by others, each by itself."""
        deaths = 0
        try:
            while self.queue or self.at:
                for pipe in self.members:
                    if pipe not in self.at and self.queue:
                        self.at[pipe] = self.queue.popleft()
                        with suppress(BrokenPipeError):  # it died: that is seen below
                            pipe.send(self.at[pipe])
                ready: list[Any] = wait([*self.at])
                for pipe in ready:
                    batch = self.at.pop(pipe)
                    try:
                        found = pipe.recv()
                    except (EOFError, ConnectionResetError):
                        deaths += 1
                        if deaths > 3:
                            raise Stopped("processes die again and again (memory?); use fewer --jobs") from None
                        self.members.pop(pipe).join()
                        self.start()
                        self.queue.extend([Work((cell,))] for work in batch for cell in work.asked)
                        continue
                    if isinstance(found, BaseException):
                        raise found
                    self.queue.extend(batches(found[1], jobs))
                    yield found[0]
        finally:
            for process in self.members.values():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)  # loky's processes cannot be told otherwise
            for process in self.members.values():
                process.join()


def _context() -> Any:
    """How processes are made: copies of this one, which need no imports (seconds), unless they would miss its threads.

    Those of tqdm and of linear algebra are none that a copy counts on.
    """
    others = [thread for thread in threading.enumerate() if thread.name not in ("MainThread", "tqdm_monitor")]
    if sys.platform == "linux" and not others and not any(name in sys.modules for name in _THREADED):
        return multiprocessing.get_context("fork")
    return of_an_extra("joblib.externals.loky.backend").get_context("loky")  # which does not run the main script again


def _serve(pipe: Connection, traces: str | None, threads: int | None) -> None:
    """Compute what comes. Ctrl-C is for the one who started this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            found: Any = several(pipe.recv(), traces, threads)
        except EOFError:
            return
        except BaseException as error:
            found = error
        pipe.send(found)


def dask(address: str) -> Executor:
    """The workers of a running Dask scheduler, such as `tcp://HOST:8786`; needs `fairopt[dask]`."""

    def execute(todo: Sequence[Work], traces: str | None, threads: int | None) -> Iterator[Packed]:
        with connected(address) as client:
            sent = batches(todo, max(len(client.ncores()), 1))
            yield from handed_in(client, sent, several, traces, threads)

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
        asked = {cell.key for cell in work.asked}
        rows += [row for row in found if row["key"] in asked]
        left.extendleft(Work((cell,)) for cell in reversed(alone) if cell.key in asked)
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
