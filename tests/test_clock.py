"""Reported seconds contain no compilation of loops, whoever was there first."""

from __future__ import annotations

import numba
import pytest
from processes import python

from fairopt.base import clock

#: In a process of its own, in which nothing has been compiled or loaded: wall clock, and what is reported.
FRESH = """
import time
import fairopt as fo
cluster = fo.Cluster([[9, 18], [4, 8]], [[1, 4], [3, 1]])
for found in (lambda c: fo.best_response(c, 2.0), fo.AlphaPFVDS(3.0).solve):
    begun = time.perf_counter()
    stats = found(cluster).stats
    print(stats.total, stats.loops, time.perf_counter() - begun)
"""


def test_the_clock_stands_still_while_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now()  # listens from now on
    time = iter(float(second) for second in range(100))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(time))
    watch = clock.Watch()  # reads the time at 0
    lock = numba.core.compiler_lock.global_compiler_lock
    with lock, lock:  # compilation inside a compilation counts once: from 1 to 2
        pass
    assert watch.loops == 1.0
    assert watch.seconds == 2.0  # read at 3, without the second of compilation


@pytest.mark.long
def test_the_first_answer_of_a_process_reports_no_compilation() -> None:
    """Loops and the rest are within what passed on the wall: were loops counted in both, they would not be."""
    for line in python("-c", FRESH).splitlines():
        total, loops, wall = map(float, line.split())
        assert loops > 0
        assert total + loops <= wall


def test_the_processor_of_what_is_compiled_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it on a busy machine, where a compilation takes 9 seconds on the wall and 2 of the processor."""
    wall, own, whole = iter([0.0, 9.0]), iter([10.0, 12.0]), iter([100.0, 103.0])
    clock.cpu()  # listens from now on
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(wall))
    monkeypatch.setattr(clock.time, "thread_time", lambda: next(own))
    monkeypatch.setattr(clock.time, "process_time", lambda: next(whole))
    begun = clock.cpu()
    with numba.core.compiler_lock.global_compiler_lock:
        pass
    assert clock.cpu() - begun == pytest.approx(1.0)


def test_patience_does_not_run_out_while_others_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms import _solve

    used = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr(_solve.clock, "cpu", lambda: next(used))
    offers = iter(["first", "second", "third"])
    assert list(_solve.within(5.0, offers)) == ["first", "second"]  # type: ignore[arg-type]
