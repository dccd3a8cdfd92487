"""What happens: tasks wait, start and end, servers go and come back, users leave. As `scheduling/_events.py`."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ..runs import DONE, EVICTED, GONE, RUNNING
from ._columns import (
    ACTIVITY,
    AFTER,
    AGAIN,
    BEFORE,
    CHANGED,
    DIRTY,
    END,
    ENDED,
    FRESH,
    GROUP,
    HEAD,
    HOW,
    LEFT,
    LINKED,
    LOOK,
    NDIRTY,
    NEXT,
    NFRESH,
    NRELEASED,
    NRUNS,
    NTOUCHED,
    OPEN,
    QUEUE,
    RUNS,
    SEATS,
    SERVER,
    SINCE,
    SINCE_THEN,
    SLOW,
    SLOWS,
    START,
    TASK,
    THERE,
    TIME,
    TOUCHED,
    TRACKED,
    USER,
    WAIT,
    WAITS,
)
from ._heap import push
from ._queues import leave_seat, set_rank, take_seat
from ._slow import moved
from ._waiting import set_waiting


@compiled(inline=True)
def stale(sv, counter, s):  # type: ignore[no-untyped-def]
    """What is free of a server has changed."""
    if sv.table[s, DIRTY] == 0:
        sv.table[s, DIRTY] = 1
        sv.dirty[counter[NDIRTY]] = s
        counter[NDIRTY] += 1


@compiled(inline=True)
def gained(sv, counter, s):  # type: ignore[no-untyped-def]
    """A server has more room."""
    stale(sv, counter, s)
    if sv.table[s, TOUCHED] == 0:
        sv.table[s, TOUCHED] = 1
        sv.touched[counter[NTOUCHED]] = s
        counter[NTOUCHED] += 1


@compiled(inline=True)
def look_at(tasks, counter, g):  # type: ignore[no-untyped-def]
    """A group may fit anywhere."""
    if tasks.group[g, FRESH] == 0:
        tasks.group[g, FRESH] = 1
        tasks.fresh[counter[NFRESH]] = g
        counter[NFRESH] += 1


@compiled(inner=True)
def wait(qs, tasks, option, counter, g, more):  # type: ignore[no-untyped-def]
    """Tasks of a group wait."""
    group, q = tasks.group, tasks.group[g, QUEUE]
    take_seat(qs, q, counter)
    group[g, WAIT] += more
    qs.table[q, WAITS] += more
    if group[g, WAIT] == more:
        set_waiting(qs, tasks, g)
        look_at(tasks, counter, g)
    if qs.table[q, SINCE] < 0:
        qs.table[q, SINCE] = counter[TIME]
        counter[ACTIVITY] = 1
    set_rank(qs, tasks, q, option)


@compiled(inner=True)
def start(sv, qs, tasks, option, counter, g, s):  # type: ignore[no-untyped-def]
    """The first waiting task of a group starts."""
    group, run, q, r = tasks.group, tasks.run, tasks.group[g, QUEUE], counter[NRUNS]
    task = group[g, AGAIN]
    if task >= 0:
        group[g, AGAIN] = tasks.again[task]
    else:
        task = group[g, NEXT]
        group[g, NEXT] = task + 1
    counter[NRUNS] = r + 1
    counter[OPEN] -= 1
    run[r, TASK], run[r, SERVER], run[r, START] = task, s, counter[TIME]
    run[r, END], run[r, HOW], run[r, GROUP] = counter[TIME] + tasks.duration[task], RUNNING, g
    push(tasks.heap, run, counter, r)
    if option[SLOWS]:
        tasks.pace[r, LEFT], tasks.pace[r, SINCE_THEN], tasks.pace[r, SLOW] = tasks.duration[task], counter[TIME], 0
        moved(sv, counter, s)
    if option[TRACKED]:
        after = sv.table[s, HEAD]
        run[r, BEFORE], run[r, AFTER] = -1, after
        if after >= 0:
            run[after, BEFORE] = r
        sv.table[s, HEAD] = r
    for k in range(sv.free.shape[1]):
        sv.free[s, k] -= tasks.demand[g, k]
    for j in range(len(qs.total)):
        qs.allocated[q, j] += tasks.cost[g, j]
    if qs.placed.shape[0] > 0:
        for k in range(sv.free.shape[1]):
            qs.placed[q, s, k] += tasks.demand[g, k]
    stale(sv, counter, s)
    qs.table[q, RUNS] += 1
    qs.table[q, WAITS] -= 1
    qs.table[q, CHANGED] += 1
    group[g, WAIT] -= 1
    if group[g, WAIT] == 0:
        set_waiting(qs, tasks, g)
    set_rank(qs, tasks, q, option)
    if option[SEATS] and qs.table[q, WAITS] == 0:
        leave_seat(qs, tasks, q, option, counter)


@compiled(inline=True)
def done(tasks, counter, job):  # type: ignore[no-untyped-def]
    """A task of a job is done; after the last come those groups that should have come already."""
    tasks.to_do[job] -= 1
    if tasks.to_do[job] == 0:
        for k in range(tasks.following_first[job], tasks.following_first[job + 1]):
            if tasks.comes[tasks.following[k]] < counter[TIME]:
                tasks.released[counter[NRELEASED]] = tasks.following[k]
                counter[NRELEASED] += 1


@compiled(inner=True)
def end(sv, qs, tasks, option, counter, r, how):  # type: ignore[no-untyped-def]
    """A run ends: what it held is free."""
    run, g, s = tasks.run, tasks.run[r, GROUP], tasks.run[r, SERVER]
    q = tasks.group[g, QUEUE]
    run[r, END], run[r, HOW] = counter[TIME], how
    counter[ENDED] += how == DONE
    if option[LINKED] and how == DONE:
        done(tasks, counter, tasks.job[g])
    if option[SLOWS]:
        moved(sv, counter, s)
    if option[TRACKED]:
        before, after = run[r, BEFORE], run[r, AFTER]
        if before >= 0:
            run[before, AFTER] = after
        else:
            sv.table[s, HEAD] = after
        if after >= 0:
            run[after, BEFORE] = before
    for j in range(len(qs.total)):
        qs.allocated[q, j] -= tasks.cost[g, j]
    if qs.placed.shape[0] > 0:
        for k in range(sv.free.shape[1]):
            qs.placed[q, s, k] -= tasks.demand[g, k]
    qs.table[q, RUNS] -= 1
    qs.table[q, LOOK] = 1
    if sv.table[s, THERE]:
        for k in range(sv.free.shape[1]):
            sv.free[s, k] += tasks.demand[g, k]
        gained(sv, counter, s)
    idle(qs, counter, q)
    set_rank(qs, tasks, q, option)


@compiled(inline=True)
def idle(qs, counter, q):  # type: ignore[no-untyped-def]
    """A queue of which nothing runs or waits is not active."""
    if qs.table[q, RUNS] == 0 and qs.table[q, WAITS] == 0:
        qs.table[q, SINCE] = -1
        counter[ACTIVITY] = 1


@compiled(inline=True)
def down(sv, qs, tasks, option, counter, s):  # type: ignore[no-untyped-def]
    """A server goes: its tasks wait again, in order before those of their groups that never ran."""
    sv.table[s, THERE] = 0
    for k in range(sv.free.shape[1]):
        sv.free[s, k] = -1
    stale(sv, counter, s)
    while sv.table[s, HEAD] >= 0:
        r = sv.table[s, HEAD]
        g, task = tasks.run[r, GROUP], tasks.run[r, TASK]
        if tasks.group[g, AGAIN] < 0 or tasks.group[g, AGAIN] > task:
            tasks.again[task] = tasks.group[g, AGAIN]
            tasks.group[g, AGAIN] = task
        else:
            one = tasks.group[g, AGAIN]
            while tasks.again[one] >= 0 and tasks.again[one] < task:
                one = tasks.again[one]
            tasks.again[task] = tasks.again[one]
            tasks.again[one] = task
        wait(qs, tasks, option, counter, g, np.int64(1))
        counter[OPEN] += 1
        end(sv, qs, tasks, option, counter, r, np.int64(EVICTED))


@compiled(inline=True)
def up(sv, counter, s):  # type: ignore[no-untyped-def]
    """A server comes."""
    sv.table[s, THERE] = 1
    for k in range(sv.free.shape[1]):
        sv.free[s, k] = sv.capacity[s, k]
    gained(sv, counter, s)


@compiled(inline=True)
def leave(sv, qs, tasks, option, counter, user):  # type: ignore[no-untyped-def]
    """Waiting and running tasks of a user go; those that arrive later never wait."""
    group = tasks.group
    for g in range(len(group)):
        if group[g, USER] == user:
            q, waiting = group[g, QUEUE], group[g, WAIT]
            group[g, USER] = -1 - user
            if waiting > 0:
                group[g, WAIT] = 0
                qs.table[q, WAITS] -= waiting
                qs.table[q, CHANGED] += 1
                set_waiting(qs, tasks, g)
                idle(qs, counter, q)
                set_rank(qs, tasks, q, option)
                if option[SEATS] and qs.table[q, WAITS] == 0:
                    leave_seat(qs, tasks, q, option, counter)
    for s in range(len(sv.table)):
        r = sv.table[s, HEAD]
        while r >= 0:
            after = tasks.run[r, AFTER]
            if group[tasks.run[r, GROUP], USER] == -1 - user:
                end(sv, qs, tasks, option, counter, r, np.int64(GONE))
            r = after
