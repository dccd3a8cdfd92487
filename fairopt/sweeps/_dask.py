"""The workers of a Dask scheduler compute: what they hand in is stored, what is lost with them is not."""

from __future__ import annotations

import logging
import threading
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from ..errors import FairoptError
from .cell import Work
from .ends import Elsewhere, Stopped

if TYPE_CHECKING:
    from distributed import Client

#: Seconds to wait for a scheduler, and for a worker where there is none left; between looks at both; at what is lost.
PATIENCE, _LOOK, _LOST = 20.0, 1.0, 0.05
_SILENT = logging.CRITICAL + 1

#: What is to be done: `executors.Work`, of which packed rows come back, and what is left.
Batch = Sequence[Any]
Several = Callable[[Batch, str | None, int | None], tuple[Any, Batch]]


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
        self._alone_since = None if workers else self._alone_since or monotonic()
        if self._alone_since is not None and monotonic() - self._alone_since > PATIENCE:
            raise Stopped(f"no worker is left at the Dask scheduler {self.address}")

    def cancel(self) -> None:
        """Whoever still has some need not go on."""
        if self.batches and self.client.status == "running":
            with suppress(Exception):
                self.client.cancel([future for future, _ in self.batches.values()])


def execute(
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
                sleep(_LOST)  # until then Dask calls back at once
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
