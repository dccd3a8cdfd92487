"""Compiled: progressive filling of one server: max-min of a pool, best response of the game for alpha = infinity."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled


@compiled
def fill(gain, per_task, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Raise a common level until every user has enough or meets a full resource; fills `tasks` and `q`.

    User n has `level gain[n]` tasks in all, `elsewhere[n]` of them elsewhere and at most `room[n]` here, and uses
    `per_task[n, r]` of a whole capacity for each. `q[r]` is minus the log of the level at which r is full, or -inf.
    Users sorted once, and once over them for every resource that fills up: O(N (M + log N)).
    """
    count, size = per_task.shape
    frozen = room <= 0
    used, rate, most = np.zeros(size), np.zeros(size), np.zeros(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    # Events at which the rate of use changes: users come in where they have no more elsewhere, and have enough later.
    events = np.empty(2 * count)
    events[:count] = elsewhere / gain
    events[count:] = (elsewhere + room) / gain
    order = np.argsort(events)
    at, free = 0.0, count - frozen.sum()
    k = 0
    while free > 0:
        while k < 2 * count and frozen[order[k] % count]:
            k += 1
        then = events[order[k]] if k < 2 * count else np.inf
        level, full = then, -1
        for r in range(size):
            if rate[r] > 1e-14 * most[r] and q[r] == -np.inf:
                found = at + max(1 - used[r], 0.0) / rate[r]
                if found < level:
                    level, full = found, r
        if level == np.inf:
            break
        for r in range(size):
            used[r] += rate[r] * (level - at)
        at = level
        if full < 0:
            n = order[k] % count
            for r in range(size):
                change = gain[n] * per_task[n, r]
                rate[r] += change if order[k] < count else -change
                most[r] = max(most[r], change)
            k += 1
            continue
        q[full] = -np.log(level)
        rate[:] = 0.0
        for n in range(count):
            if frozen[n]:
                continue
            if per_task[n, full] > 0:
                frozen[n] = True
                free -= 1
                tasks[n] = min(max(level * gain[n] - elsewhere[n], 0.0), room[n])
            elif events[n] <= level < events[count + n]:
                for r in range(size):
                    rate[r] += gain[n] * per_task[n, r]
    for n in range(count):
        if not frozen[n]:
            tasks[n] = room[n]
