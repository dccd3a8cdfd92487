"""Reported seconds contain no compilation of loops, whoever was there first."""

from __future__ import annotations

import time

import numba
import pytest
from processes import python

import fairopt as fo
from fairopt.base import clock

#: In a process of its own, in which nothing has been compiled or loaded: CPU time, and what is reported.
FRESH = """
import time
import fairopt as fo
cluster = fo.Cluster([[9, 18], [4, 8]], [[1, 4], [3, 1]])
for found in (lambda c: fo.best_response(c, 2.0), fo.AlphaPFVDS(3.0).solve):
    begun = time.process_time()
    stats = found(cluster).stats
    print(stats.total, stats.loops, time.process_time() - begun)
"""


def test_the_clock_stands_still_while_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now()  # listens from now on
    time, own = (iter(float(second) for second in range(100)) for _ in range(2))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(time))
    monkeypatch.setattr(clock.time, "thread_time", lambda: next(own))
    watch = clock.Watch()  # reads both clocks at 0
    lock = numba.core.compiler_lock.global_compiler_lock
    with lock, lock:  # compilation inside a compilation counts once: from 1 to 2
        pass
    assert watch.loops == 1.0
    assert watch.seconds == watch.cpu == 2.0  # read at 3, without the second of compilation


@pytest.mark.long
def test_the_first_answer_of_a_process_reports_no_compilation() -> None:
    """Loops and the rest are within the CPU time that passed: were loops counted in both, they would not be."""
    for line in python("-c", FRESH).splitlines():
        total, loops, passed = map(float, line.split())
        assert loops > 0
        assert total + loops <= passed


def test_reported_seconds_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a wall clock that stands still, and runs backwards, nothing changes."""
    cluster = fo.Cluster([[9, 18], [4, 8]], [[1, 4], [3, 1]])
    fo.compare(cluster, "drfh, drf")
    monkeypatch.setattr(clock.time, "perf_counter", lambda: 0.0)
    begun, own = clock.cpu(), time.process_time()
    frames = [
        fo.compare(cluster, "drfh, alphapf-vds(alpha=2), utilitarian", details=True),
        fo.alpha_path(cluster, [0, 0.5, 2, float("inf")], details=True),
    ]
    answers = [fo.DRFH().solve(cluster, solver="clarabel"), fo.best_response(cluster, 2), *frames[1].allocations]
    passed = clock.cpu() - begun
    seconds = [*(one.stats.total for one in answers), *(value for frame in frames for value in frame["seconds"])]
    assert min(seconds) > 0
    for frame in frames:
        assert frame["seconds"].sum() <= passed <= time.process_time() - own + 0.1


def test_ended_children_count() -> None:
    begun = clock.cpu()
    spent = float(python("-c", "import time; sum(range(10**7)); print(time.process_time())"))
    assert clock.cpu() - begun >= 0.5 * spent  # children are counted in ticks


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
