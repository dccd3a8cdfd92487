"""Compiled: progressive filling of one server: max-min of a pool, best response of the game for alpha = infinity."""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def fill(gain, per_task, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Raise a common level until every user has enough or meets a full resource; fills `tasks` and `q`.

    User n has `level gain[n]` tasks in all, `elsewhere[n]` of them elsewhere and at most `room[n]` here, and uses
    `per_task[n, r]` of a whole capacity for each. `q[r]` is minus the log of the level at which r is full, or -inf.
    At most M rounds, each over users sorted once: O(M N log N) for few resources.
    """
    count, size = per_task.shape
    frozen = room <= 0
    left = np.ones(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    # Events at which the rate of use changes: users come in where they have no more elsewhere, and have enough later.
    events = np.empty(2 * count)
    events[:count] = elsewhere / gain
    events[count:] = (elsewhere + room) / gain
    order = np.argsort(events)
    for _ in range(size + 1):
        level = np.inf
        full = -1
        for r in range(size):
            used, rate, at, most = 0.0, 0.0, 0.0, 0.0
            found = np.inf
            for k in order:
                n = k if k < count else k - count
                change = gain[n] * per_task[n, r]
                if frozen[n] or change <= 0 or events[k] == np.inf:
                    continue
                if rate > 0 and used + rate * (events[k] - at) >= left[r]:
                    found = at + (left[r] - used) / rate
                    break
                used += rate * (events[k] - at)
                at = events[k]
                rate += change if k < count else -change
                most = max(most, change)
            if found == np.inf and rate > 1e-14 * most:
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
