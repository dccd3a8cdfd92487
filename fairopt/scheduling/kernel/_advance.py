"""The loop of a simulation: ends, changes, arrivals, one round; instant after instant."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ..runs import DONE
from ..setup import DOWN, LEAVES, UP
from ._columns import (
    BIG,
    FINISHED,
    GOES_ON,
    GROW,
    INSTANTS,
    LINKED,
    NARRIVAL,
    NCHANGE,
    NHEAP,
    NRELEASED,
    NRUNS,
    OPEN,
    ROOT,
    SLOWS,
    TIME,
    TRACKED,
    USER,
)
from ._events import down, end, leave, up, wait
from ._heap import drop_stale, pop
from ._rounds import round_of
from ._slow import settle


@compiled(borrows=True)
def advance(sv, qs, tasks, option, parameter, counter, size, until, instants):  # type: ignore[no-untyped-def]
    """At most so many instants, not beyond `until`; why it stops. `size` : (groups,), their tasks."""
    heap, change, arrival, arriving = tasks.heap, tasks.change, tasks.arrival, tasks.arriving
    for _ in range(instants):
        drop_stale(tasks, counter)
        now = heap[ROOT, 0] if counter[NHEAP] > 0 else BIG
        if counter[NCHANGE] < change.shape[1]:
            now = min(now, change[0, counter[NCHANGE]])
        if counter[NARRIVAL] < len(arrival):
            now = min(now, arrival[counter[NARRIVAL]])
        if now == BIG or now > until:
            return FINISHED
        # Who may start now: whatever waits or arrives, and what runs on servers that go.
        if counter[NRUNS] + counter[OPEN] + option[TRACKED] * counter[NHEAP] > len(tasks.run):
            return GROW
        counter[TIME] = now
        while counter[NHEAP] > 0 and heap[ROOT, 0] == now:
            end(sv, qs, tasks, option, counter, pop(heap, counter), np.int64(DONE))
            drop_stale(tasks, counter)
        while counter[NCHANGE] < change.shape[1] and change[0, counter[NCHANGE]] == now:
            what, index = change[1, counter[NCHANGE]], change[2, counter[NCHANGE]]
            if what == UP:
                up(sv, counter, index)
            elif what == DOWN:
                down(sv, qs, tasks, option, counter, index)
            elif what == LEAVES:
                leave(sv, qs, tasks, option, counter, index)
            counter[NCHANGE] += 1
        for k in range(counter[NRELEASED]):
            g = tasks.released[k]
            if tasks.group[g, USER] >= 0:
                wait(qs, tasks, option, counter, g, size[g])
        counter[NRELEASED] = 0
        while counter[NARRIVAL] < len(arrival) and arrival[counter[NARRIVAL]] == now:
            g = arriving[counter[NARRIVAL]]
            allocated = option[LINKED] and tasks.before[g] >= 0 and tasks.to_do[tasks.before[g]] > 0
            if tasks.group[g, USER] >= 0 and not allocated:
                wait(qs, tasks, option, counter, g, size[g])
            counter[NARRIVAL] += 1
        round_of(sv, qs, tasks, option, parameter, counter)
        if option[SLOWS]:
            settle(sv, tasks, option, parameter, counter)
        counter[INSTANTS] += 1
    return GOES_ON
