"""Clocks of all reported CPU and wall seconds, which exclude the one-off costs of a process.

One-off costs are the import of libraries, the compilation of loops, and the loading of compiled loops.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Event of numba that spans a compilation, or the loading of compiled code.
_EVENT = "numba:compiler_lock"


class _Compiling(threading.local):
    """Wall and CPU seconds of compilation and other one-off work in a thread; nested spans are counted once."""

    spent = 0.0
    spent_cpu = 0.0
    depth = 0
    begun = 0.0
    begun_cpu = 0.0

    def notify(self, event: Any) -> None:
        """Handle the start or end event of numba."""
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
    """Register with numba as a listener for compilations, once; before numba is imported nothing is compiled."""
    events: Any = sys.modules.get("numba.core.event")
    if not _registered and events is not None:
        _registered.add(_EVENT)
        events.Listener.register(_Compiling)
        events.register(_EVENT, _COMPILING)


@contextmanager
def standing() -> Iterator[None]:
    """Exclude the body from the clocks, because a process does this work only once, such as importing a library."""
    _COMPILING.begin()
    try:
        yield
    finally:
        _COMPILING.end()
        _listen()  # the body may have imported numba, whose next compilation must be excluded


def now() -> float:
    """Wall time in seconds without compilation by this thread; only differences are meaningful."""
    _listen()
    return time.perf_counter() - _COMPILING.spent


def cpu() -> float:
    """CPU time of the process, its threads and ended children, in seconds without compilation by this thread.

    Only differences are meaningful.
    """
    _listen()
    children = os.times()
    return time.process_time() + children.children_user + children.children_system - _COMPILING.spent_cpu


def compiled() -> float:
    """Wall time in seconds that this thread has spent on compilation and other one-off work."""
    _listen()
    return _COMPILING.spent


class Watch:
    """Stopwatch that runs from its construction: wall and CPU time without compilation, and time of compilation."""

    def __init__(self) -> None:
        self._begun, self._loops = now(), _COMPILING.spent_cpu
        self._begun_cpu = time.thread_time() - _COMPILING.spent_cpu

    @property
    def seconds(self) -> float:
        """Wall time in seconds without compilation."""
        return now() - self._begun

    @property
    def cpu(self) -> float:
        """CPU time in seconds without compilation, of this thread only, as other threads may compute other cells."""
        return time.thread_time() - _COMPILING.spent_cpu - self._begun_cpu

    @property
    def loops(self) -> float:
        """CPU time in seconds that this thread has spent on compilation and other one-off work since construction."""
        return _COMPILING.spent_cpu - self._loops
