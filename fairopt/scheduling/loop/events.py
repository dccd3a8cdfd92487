"""Events: tasks arrive, start, end and slow down, servers fail and recover, users depart."""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from .tables import (  # fmt: skip
    ACTIVE,
    AFTER,
    AGAIN,
    ALL,
    AVAILABLE,
    BASE,
    BEFORE,
    DONE,
    END,
    ENDED,
    ENDS,
    EVICTED,
    FIRST,
    FOLLOWING,
    FOLLOWS,
    FRESH,
    GAINED,
    GONE,
    GROUP,
    HEAD,
    HOW,
    INFINITE,
    JOB,
    LEFT,
    LIMIT_RAISED,
    LINKED,
    MAY_COME,
    MOVED,
    NEXT,
    NOW,
    OPEN,
    QUEUE,
    RELEASED,
    RUNNING,
    RUNS,
    SERVER,
    SINCE,
    SIZE,
    SLOW,
    SLOWS,
    STALE,
    START,
    STARTED,
    TASK,
    TO_DO,
    TRACKED,
    UPDATED_AT,
    USER,
    WAIT,
    WAITS,
    put,
    raised,
)

#: Upper bound on the duration of a slowed task in microseconds.
_LATE = 4e18
#: True if queues are ranked by their shares.
RANKED = True


@compiled(inline=True)
def share(t, q):  # type: ignore[no-untyped-def]
    """Share of a queue by the policy; the lowest is served first."""
    return 0.0


@compiled(inline=True)
def set_rank(t, q):  # type: ignore[no-untyped-def]
    """Update the rank of a queue."""
    leaf, rank = len(t.rank) // 2 + q, -share(t, q) if t.queues[q, WAITS] > 0 else -np.inf
    if t.rank[leaf, 0] != rank:
        t.rank[leaf, 0] = rank
        raised(t.rank, np.int64(0), leaf)


@compiled(inner=True)
def _set_waiting(t, g):  # type: ignore[no-untyped-def]
    """Update the tree of waiting demands after a group begins or ceases to wait."""
    q = t.groups[g, QUEUE]
    base, leaf, queue = t.queues[q, BASE], t.queues[q, SIZE] + g - t.queues[q, FIRST], len(t.roots) // 2 + q
    for r in range(t.waits.shape[1]):
        t.waits[base + leaf, r] = -t.demand[g, r] if t.groups[g, WAIT] > 0 else -INFINITE
    raised(t.waits, base, leaf)
    for r in range(t.waits.shape[1]):
        t.roots[queue, r] = t.waits[base + 1, r]
    raised(t.roots, np.int64(0), queue)


@compiled(inner=True)
def wait(t, g, more):  # type: ignore[no-untyped-def]
    """Add waiting tasks of a group."""
    q = t.groups[g, QUEUE]
    t.groups[g, WAIT] += more
    t.queues[q, WAITS] += more
    if t.groups[g, WAIT] == more:
        _set_waiting(t, g)
        put(t, t.groups, g, FRESH)
    if t.queues[q, SINCE] < 0:
        t.queues[q, SINCE] = t.n[NOW]
        t.n[ACTIVE] = 1
    if RANKED:
        set_rank(t, q)


@compiled(inner=True)
def start(t, g, s):  # type: ignore[no-untyped-def]
    """Start the first waiting task of a group on a server."""
    n, groups, runs, q, r = t.n, t.groups, t.runs, t.groups[g, QUEUE], t.n[STARTED]
    task = groups[g, AGAIN]
    if task >= 0:
        groups[g, AGAIN] = t.again[task]
    else:
        task = groups[g, NEXT]
        groups[g, NEXT] = task + 1
    n[OPEN] -= 1
    runs[r, TASK], runs[r, SERVER], runs[r, START] = task, s, n[NOW]
    runs[r, END], runs[r, HOW], runs[r, GROUP] = n[NOW] + t.duration[task], RUNNING, g
    n[STARTED] = r + 1  # increased after the row is written, since an interrupt may occur between two statements
    _push(t.heap, runs, t.n, r)
    if n[SLOWS]:
        t.pace[r, LEFT], t.pace[r, UPDATED_AT], t.pace[r, SLOW] = t.duration[task], n[NOW], 0
        put(t, t.servers, s, MOVED)
    if n[TRACKED]:
        after = t.servers[s, HEAD]
        runs[r, BEFORE], runs[r, AFTER] = -1, after
        if after >= 0:
            runs[after, BEFORE] = r
        t.servers[s, HEAD] = r
    _hold(t, g, q, s, 1)
    put(t, t.servers, s, STALE)
    t.queues[q, RUNS] += 1
    t.queues[q, WAITS] -= 1
    groups[g, WAIT] -= 1
    if groups[g, WAIT] == 0:
        _set_waiting(t, g)
    if RANKED:
        set_rank(t, q)


@compiled(inline=True)
def _hold(t, g, q, s, sign):  # type: ignore[no-untyped-def]
    """Add (sign 1) or subtract (sign -1) a task: its cost for its queue, and its amounts on the server if available."""
    for j in range(len(t.total)):
        t.allocated[q, j] += sign * t.cost[g, j]
    if t.servers[s, AVAILABLE]:
        for k in range(t.free.shape[1]):
            t.free[s, k] -= sign * t.demand[g, k]
    if len(t.placed) > 0:
        for k in range(t.free.shape[1]):
            t.placed[q, s, k] += sign * t.demand[g, k]


@compiled(inner=True)
def end(t, r, how):  # type: ignore[no-untyped-def]
    """End a run, and release its amounts."""
    n, runs, g, s = t.n, t.runs, t.runs[r, GROUP], t.runs[r, SERVER]
    q = t.groups[g, QUEUE]
    runs[r, END], runs[r, HOW] = n[NOW], how
    n[ENDED] += how == DONE
    if n[LINKED] and how == DONE:
        _done(t, t.links[JOB, g])
    if n[SLOWS]:
        put(t, t.servers, s, MOVED)
    if n[TRACKED]:
        before, after = runs[r, BEFORE], runs[r, AFTER]
        if before >= 0:
            runs[before, AFTER] = after
        else:
            t.servers[s, HEAD] = after
        if after >= 0:
            runs[after, BEFORE] = before
    _hold(t, g, q, s, -1)
    t.queues[q, RUNS] -= 1
    t.queues[q, LIMIT_RAISED] = 1
    if t.servers[s, AVAILABLE]:
        _gained(t, s)
    _idle(t, q)
    if RANKED:
        set_rank(t, q)


@compiled(inline=True)
def _gained(t, s):  # type: ignore[no-untyped-def]
    """Mark a server with more free amounts: its entry in the index is outdated, and waiting tasks may fit."""
    put(t, t.servers, s, STALE)
    put(t, t.servers, s, GAINED)


@compiled(inner=True)
def _done(t, job):  # type: ignore[no-untyped-def]
    """Count a completed task of a job; after the last task release groups of following jobs whose arrival is past."""
    t.jobs[TO_DO, job] -= 1
    if t.jobs[TO_DO, job] == 0:
        for k in range(t.jobs[FOLLOWING, job], t.jobs[FOLLOWING, job + 1]):
            if t.links[MAY_COME, t.links[FOLLOWS, k]] < t.n[NOW]:
                t.lists[RELEASED, t.n[RELEASED]] = t.links[FOLLOWS, k]
                t.n[RELEASED] += 1


@compiled(inline=True)
def _idle(t, q):  # type: ignore[no-untyped-def]
    """Deactivate a queue if it has neither running nor waiting tasks."""
    if t.queues[q, RUNS] == 0 and t.queues[q, WAITS] == 0:
        t.queues[q, SINCE] = -1
        t.n[ACTIVE] = 1


@compiled(inner=True)
def down(t, s):  # type: ignore[no-untyped-def]
    """Fail a server: its tasks wait again, in order, before the tasks of their groups that never ran."""
    t.servers[s, AVAILABLE] = 0
    t.free[s] = -1
    put(t, t.servers, s, STALE)
    while t.servers[s, HEAD] >= 0:
        r = t.servers[s, HEAD]
        g, task = t.runs[r, GROUP], t.runs[r, TASK]
        if t.groups[g, AGAIN] < 0 or t.groups[g, AGAIN] > task:
            t.again[task] = t.groups[g, AGAIN]
            t.groups[g, AGAIN] = task
        else:
            one = t.groups[g, AGAIN]
            while t.again[one] >= 0 and t.again[one] < task:
                one = t.again[one]
            t.again[task] = t.again[one]
            t.again[one] = task
        wait(t, g, np.int64(1))
        t.n[OPEN] += 1
        end(t, r, np.int64(EVICTED))


@compiled(inner=True)
def up(t, s):  # type: ignore[no-untyped-def]
    """Recover a server."""
    t.servers[s, AVAILABLE] = 1
    for k in range(t.free.shape[1]):
        t.free[s, k] = t.capacity[s, k]
    _gained(t, s)


@compiled(inner=True)
def leave(t, user):  # type: ignore[no-untyped-def]
    """Remove waiting and running tasks of a departing user, and mark its groups so that later tasks do not arrive."""
    groups = t.groups
    for g in range(len(groups)):
        if groups[g, USER] == user:
            q, waiting = groups[g, QUEUE], groups[g, WAIT]
            groups[g, USER] = -1 - user
            if waiting > 0:
                groups[g, WAIT] = 0
                t.queues[q, WAITS] -= waiting
                _set_waiting(t, g)
                _idle(t, q)
                if RANKED:
                    set_rank(t, q)
    for s in range(len(t.servers)):
        r = t.servers[s, HEAD]
        while r >= 0:
            after = t.runs[r, AFTER]
            if groups[t.runs[r, GROUP], USER] == -1 - user:
                end(t, r, np.int64(GONE))
            r = after


# Row of the root of the 4-ary heap of ends; the children of row k are the four rows from `4 (k - 2)` on.
TOP = 3


@compiled(inner=True)
def _push(heap, runs, n, r):  # type: ignore[no-untyped-def]
    """Add the end of a run to the heap; if the heap is full, outdated entries are removed before."""
    if n[ENDS] == len(heap) - TOP:
        count, n[ENDS] = n[ENDS], 0
        for k in range(TOP, TOP + count):
            if not stale(heap, runs, k):
                _up(heap, n, heap[k, 0], heap[k, 1])
    _up(heap, n, runs[r, END], r)


@compiled(inline=True)
def stale(heap, runs, k):  # type: ignore[no-untyped-def]
    """True if the run of entry k has ended, or ends at another time than the entry states."""
    return runs[heap[k, 1], HOW] != RUNNING or runs[heap[k, 1], END] != heap[k, 0]


@compiled(inline=True)
def _up(heap, n, time, r):  # type: ignore[no-untyped-def]
    """Append the entry of a run that ends at a time, and sift it up to its position."""
    k = TOP + n[ENDS]
    n[ENDS] += 1
    while k > TOP:
        above = (k >> 2) + TOP - 1
        if heap[above, 0] <= time:
            break
        heap[k, 0], heap[k, 1] = heap[above, 0], heap[above, 1]
        k = above
    heap[k, 0], heap[k, 1] = time, r


@compiled(inner=True)
def pop(heap, n):  # type: ignore[no-untyped-def]
    """Remove the first entry of the heap, and return its run."""
    first, last, k = heap[TOP, 1], TOP + n[ENDS] - 1, TOP
    n[ENDS] -= 1
    time, r = heap[last, 0], heap[last, 1]
    while True:
        child = 4 * (k - TOP + 1)
        if child >= last:
            break
        least = child
        for c in range(child + 1, min(child + 4, last)):
            if heap[c, 0] < heap[least, 0]:
                least = c
        if heap[least, 0] >= time:
            break
        heap[k, 0], heap[k, 1] = heap[least, 0], heap[least, 1]
        k = least
    heap[k, 0], heap[k, 1] = time, r
    return first


@compiled(inner=True)
def next_end(heap, runs, n):  # type: ignore[no-untyped-def]
    """Remove outdated entries from the top of the heap, and return the time of the next end of a run, or `INFINITE`."""
    while n[ENDS] > 0 and stale(heap, runs, TOP):
        pop(heap, n)
    return heap[TOP, 0] if n[ENDS] > 0 else INFINITE


@compiled(inner=True)
def settle(t):  # type: ignore[no-untyped-def]
    """Update speeds and ends of the runs of servers on which tasks started or ended."""
    runs, pace, now, factor = t.runs, t.pace, t.n[NOW], t.level[-1]
    for k in range(t.n[MOVED]):
        s = t.lists[MOVED, k]
        t.servers[s, MOVED] = 0
        for a in range(t.really.shape[1]):
            t.level[a] = _level(t, s, a)
            if t.n[SLOWS] == ALL and t.level[a] < np.inf:
                t.level[a] = -1.0
        r = t.servers[s, HEAD]
        while r >= 0:
            slow = 0.0
            for a in range(t.really.shape[1]):
                if t.amount[runs[r, GROUP], a] > t.level[a]:
                    slow = 1.0
            if slow != pace[r, SLOW]:
                pace[r, LEFT] -= (now - pace[r, UPDATED_AT]) / (factor if pace[r, SLOW] else 1.0)
                pace[r, SLOW], pace[r, UPDATED_AT] = slow, now
                takes = np.int64(min(np.ceil(pace[r, LEFT] * (factor if slow else 1.0)), _LATE))
                if now + max(takes, 1) != runs[r, END]:
                    runs[r, END] = now + max(takes, 1)
                    _push(t.heap, runs, t.n, r)
            r = runs[r, AFTER]
    t.n[MOVED] = 0


@compiled(inner=True)
def _level(t, s, a):  # type: ignore[no-untyped-def]
    """Max-min level of a resource among the tasks of a server; infinite if the capacity suffices.

    Demands of at most an equal part of the remaining capacity are satisfied, which increases the part of every other
    task, until no further demand is satisfied.
    """
    remaining, many, limit = t.really[s, a], 0, -1  # demands up to the limit are satisfied
    while True:
        left, count, total = remaining, 0, 0
        r = t.servers[s, HEAD]
        while r >= 0:
            one = t.amount[t.runs[r, GROUP], a]
            total += one
            if one <= limit:
                left -= one
            else:
                count += 1
            r = t.runs[r, AFTER]
        if total <= remaining:
            return np.inf
        if count == many:
            return left / count
        many, limit = count, left // count
