"""The clock of reported seconds: it stands still for what a process does once.

That is: importing libraries, compiling loops, or loading them as they were compiled before.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: What numba calls the time in which it compiles, or loads what it compiled before.
_EVENT = "numba:compiler_lock"


class _Compiling(threading.local):
    """Seconds that numba has taken in a thread, compilations inside others counted once."""

    spent = 0.0
    spent_cpu = 0.0
    depth = 0
    begun = 0.0
    begun_cpu = 0.0

    def notify(self, event: Any) -> None:
        """Numba begins or ends."""
        if event.is_start:
            self.begin()
        elif event.is_end and self.depth:
            self.end()

    def begin(self) -> None:
        if self.depth == 0:
            self.begun, self.begun_cpu = time.perf_counter(), time.thread_time()
        self.depth += 1

    def end(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.begun
            self.spent_cpu += time.thread_time() - self.begun_cpu


_COMPILING = _Compiling()
_registered: set[str] = set()


def _listen() -> None:
    """Ask numba to report compilations from now on, once; before numba is imported there are none."""
    events: Any = sys.modules.get("numba.core.event")
    if not _registered and events is not None:
        _registered.add(_EVENT)
        events.Listener.register(_Compiling)
        events.register(_EVENT, _COMPILING)


@contextmanager
def standing() -> Iterator[None]:
    """Count work done once in a process, such as the import of a library, as compilation."""
    _COMPILING.begin()
    try:
        yield
    finally:
        _COMPILING.end()
        _listen()  # numba may have been imported meanwhile, and load a loop next


def now() -> float:
    """Seconds of this thread's clock; only differences mean anything."""
    _listen()
    return time.perf_counter() - _COMPILING.spent


def cpu() -> float:
    """CPU seconds of this process without those in which this thread compiled; only differences mean anything."""
    _listen()
    return time.process_time() - _COMPILING.spent_cpu


def compiled() -> float:
    """Seconds that this thread has spent on the compilation of loops so far."""
    _listen()
    return _COMPILING.spent


class Watch:
    """Started when it is made: seconds since then, and how long loops were compiled meanwhile, which is not in them."""

    def __init__(self) -> None:
        self._begun, self._loops = now(), compiled()
        self._begun_cpu = time.thread_time() - _COMPILING.spent_cpu

    @property
    def seconds(self) -> float:
        """Without compilation."""
        return now() - self._begun

    @property
    def cpu(self) -> float:
        """CPU seconds of this thread: another cell may be computed beside it."""
        return time.thread_time() - _COMPILING.spent_cpu - self._begun_cpu

    @property
    def loops(self) -> float:
        """Seconds of compilation."""
        return compiled() - self._loops
