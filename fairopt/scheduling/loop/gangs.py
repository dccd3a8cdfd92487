"""Rounds for gangs: all waiting tasks of a group start at once, in the order of arrival or with EASY backfilling."""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from .events import TOP, stale, start
from .tables import (
    AVAILABLE,
    BASE,
    ENDS,
    FIRST,
    GROUP,
    INFINITE,
    NOW,
    PLACEMENT,
    SERVER,
    SIZE,
    START,
    WAIT,
    first_of,
    next_leaf,
)

#: `Policy.gangs`: 0 if tasks start one by one, 1 for gangs, 2 for gangs with backfilling.
GANGS = 0
#: Tables of free amounts in `plan`, described in `gangs`: now, at the start of the first group, and a copy of the
#: second table.
_HERE, _THEN, _BESIDE = range(3)


@compiled(inline=True)
def _copy(one, to):  # type: ignore[no-untyped-def]
    for s in range(len(one)):
        for r in range(one.shape[1]):
            to[s, r] = one[s, r]


@compiled(inner=True)
def _placed(t, g, room, free, really):  # type: ignore[no-untyped-def]
    """Place waiting tasks of a group on the first eligible servers with `room`, and subtract the demands from `free`.

    Return True if all tasks are placed; otherwise the demands of the tasks that are placed remain subtracted. With
    `really` the placed tasks start.
    """
    left = t.groups[g, WAIT]
    for s in range(len(free)):
        if left > 0 and t.eligible[t.groups[g, PLACEMENT], s]:
            count = left
            for r in range(free.shape[1]):
                if t.demand[g, r] > 0:
                    count = min(count, max(room[s, r], 0) // t.demand[g, r])
            for r in range(free.shape[1]):
                free[s, r] -= count * t.demand[g, r]
            left -= count
            for _ in range(count if really else 0):
                start(t, g, s)
    return left == 0


@compiled(inner=True)
def _reserved(t, head):  # type: ignore[no-untyped-def]
    """Earliest time at which the group `head` fits if running tasks last until their time limits, or `INFINITE`.

    The free amounts at that time are written into `plan[_THEN]`.
    """
    then, at = t.plan[_THEN], t.n[NOW] - 1
    _copy(t.free, then)
    while True:
        before, at = at, INFINITE
        for k in range(TOP, TOP + t.n[ENDS]):
            if not stale(t.heap, t.runs, k):
                until = _until(t, t.heap[k, 1])
                if before < until < at:
                    at = until
        if at == INFINITE:
            return at
        for k in range(TOP, TOP + t.n[ENDS]):
            r = t.heap[k, 1]
            if not stale(t.heap, t.runs, k) and _until(t, r) == at and t.servers[t.runs[r, SERVER], AVAILABLE]:
                for a in range(then.shape[1]):
                    then[t.runs[r, SERVER], a] += t.demand[t.runs[r, GROUP], a]
        _copy(then, t.plan[_BESIDE])
        if _placed(t, head, t.plan[_BESIDE], t.plan[_BESIDE], False):
            return at


@compiled(inline=True)
def _until(t, r):  # type: ignore[no-untyped-def]
    """Time until which a run may last, not before now."""
    return max(t.n[NOW], t.runs[r, START] + t.lasts[t.runs[r, GROUP]])


@compiled(inner=True)
def gangs(t):  # type: ignore[no-untyped-def]
    """Start groups of the only queue in order until a group, the head, does not fit; then backfill (`GANGS` of 2).

    The head is expected to start at the earliest time `at` at which it fits if running tasks last as long as they may.
    A later group that fits now starts if it ends by the time `at`, or if the head still fits at `at` while the group
    runs. The tables of `plan` are free amounts: `here`, now, after the placement of a group that is tried; `then`, at
    the time `at`, before the head starts; and `beside`, a copy of `then` from which the group that is tried and, in a
    test, the head are subtracted.
    """
    here, then, beside = t.plan[_HERE], t.plan[_THEN], t.plan[_BESIDE]
    while True:
        head = first_of(t, 0)
        _copy(t.free, here)
        if head < 0:
            return
        if not _placed(t, head, here, here, False):
            break
        _placed(t, head, t.free, here, True)
    if GANGS < 2:
        return
    base, size, first, g, at = t.queues[0, BASE], t.queues[0, SIZE], t.queues[0, FIRST], head, np.int64(-1)
    while True:
        for r in range(t.free.shape[1]):
            t.envelope[0, r] = -1
            for s in range(len(t.free)):
                t.envelope[0, r] = max(t.envelope[0, r], t.free[s, r])
        g = first + next_leaf(t.waits, base, size, np.int64(-1), t.envelope, 0, g - first + 1)
        if g < first:
            return
        _copy(t.free, here)
        if not _placed(t, g, here, here, False):
            continue
        if at < 0:
            at = _reserved(t, head)
        _copy(then, beside)
        if t.n[NOW] + t.lasts[g] <= at:
            _placed(t, g, t.free, beside, True)
            continue
        # At the time `at` the tasks of the group occupy the servers on which they would start now.
        for s in range(len(here)):
            for r in range(here.shape[1]):
                beside[s, r] += here[s, r] - t.free[s, r]
        if _placed(t, head, beside, beside, False):
            _placed(t, g, t.free, then, True)
