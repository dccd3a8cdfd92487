"""The heap of ends: when runs end, the first first."""

from __future__ import annotations

from ..._loops import compiled
from ..runs import RUNNING
from ._columns import END, HOW, NHEAP, ROOT


@compiled(inner=True)
def push(heap, run, counter, r):  # type: ignore[no-untyped-def]
    """A run will end; where the heap is full, ends of runs that ended otherwise are dropped."""
    if counter[NHEAP] == len(heap) - ROOT:
        n, counter[NHEAP] = counter[NHEAP], 0
        for k in range(ROOT, ROOT + n):
            if run[heap[k, 1], HOW] == RUNNING and run[heap[k, 1], END] == heap[k, 0]:
                _up(heap, counter, heap[k, 0], heap[k, 1])
    _up(heap, counter, run[r, END], r)


@compiled(inline=True)
def _up(heap, counter, time, r):  # type: ignore[no-untyped-def]
    k = ROOT + counter[NHEAP]
    counter[NHEAP] += 1
    while k > ROOT:
        above = (k >> 2) + ROOT - 1
        if heap[above, 0] <= time:
            break
        heap[k, 0], heap[k, 1] = heap[above, 0], heap[above, 1]
        k = above
    heap[k, 0], heap[k, 1] = time, r


@compiled(inner=True)
def pop(heap, counter):  # type: ignore[no-untyped-def]
    """The run that ends first."""
    first = heap[ROOT, 1]
    end, k = ROOT + counter[NHEAP] - 1, ROOT
    counter[NHEAP] -= 1
    time, r = heap[end, 0], heap[end, 1]
    while True:
        child = 4 * (k - ROOT + 1)
        if child >= end:
            break
        least = child
        for c in range(child + 1, min(child + 4, end)):
            if heap[c, 0] < heap[least, 0]:
                least = c
        if heap[least, 0] >= time:
            break
        heap[k, 0], heap[k, 1] = heap[least, 0], heap[least, 1]
        k = least
    heap[k, 0], heap[k, 1] = time, r
    return first


@compiled(inner=True)
def drop_stale(tasks, counter):  # type: ignore[no-untyped-def]
    """Ends of runs that ended otherwise are no events."""
    heap, run = tasks.heap, tasks.run
    while counter[NHEAP] > 0 and (run[heap[ROOT, 1], HOW] != RUNNING or run[heap[ROOT, 1], END] != heap[ROOT, 0]):
        pop(heap, counter)
