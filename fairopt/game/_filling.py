"""Compiled: the exact best response of one server for alpha = infinity, by progressive filling."""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def fill(gain, per_task, use, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Exact best response for alpha = infinity: fills `tasks` and `q`, minus the log of the level that fills each."""
    count, size = use.shape
    frozen = np.zeros(count, np.bool_)
    left = np.ones(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    start, stop = elsewhere / gain, (elsewhere + room) / gain
    for _ in range(size + 1):
        # Events at which the rate of use changes: users come in at `start` and have enough at `stop`.
        level = np.inf
        full = -1
        for r in range(size):
            events, change = np.empty(2 * count), np.empty(2 * count)
            number = 0
            for n in range(count):
                if not frozen[n] and per_task[n, r] > 0 and room[n] > 0:
                    events[number], change[number] = start[n], gain[n] * per_task[n, r]
                    number += 1
                    if stop[n] < np.inf:
                        events[number], change[number] = stop[n], -gain[n] * per_task[n, r]
                        number += 1
            if number == 0:
                continue
            order = np.argsort(events[:number])
            used, rate, at = 0.0, 0.0, events[order[0]]
            found = np.inf
            for k in order:
                if rate > 0 and used + rate * (events[k] - at) >= left[r]:
                    found = at + (left[r] - used) / rate
                    break
                used += rate * (events[k] - at)
                at = events[k]
                rate += change[k]
            if found == np.inf and rate > 1e-14 * np.abs(change[:number]).max():
                found = at + (left[r] - used) / rate
            if found < level:
                level, full = found, r
        if full < 0:
            for n in range(count):
                if not frozen[n]:
                    tasks[n] = room[n]
            break
        q[full] = -np.log(level)
        for n in range(count):
            if not frozen[n] and per_task[n, full] > 0:
                frozen[n] = True
                tasks[n] = min(max(level * gain[n] - elsewhere[n], 0.0), room[n])
                for r in range(size):
                    left[r] = max(left[r] - per_task[n, r] * tasks[n], 0.0)
        if frozen.all():
            break
    return 0.0
