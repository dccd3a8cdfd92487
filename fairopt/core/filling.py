r"""Max-min of single servers, a stack of them, by progressive filling.

User n has a level x_n/gain_n with the tasks `elsewhere` and at most `room` here, and uses `per_task[n, r]` of a whole
server for each. All levels rise together until a user has enough or meets a full resource. In a round the level is
found at which the next resource fills up, by a search of the levels at which users come in or have enough: at most
as many rounds as resources. Arrays begin with the axis of servers; users who are none have no room.
"""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array


def filled(gain: Array, per_task: Array, elsewhere: Array, room: Array) -> Array:
    """Max-min tasks (servers, users) from gain, elsewhere, room (servers, users), per_task (..., resources)."""
    count, users, _ = per_task.shape
    tasks, rising = np.zeros((count, users)), room > 0
    begins, enough = elsewhere / gain, (elsewhere + room) / gain
    events = np.concatenate([begins, enough], axis=1)
    events = np.sort(np.where(np.isfinite(events), events, 0.0), axis=1)
    if not events[:, -1].any():
        events = events[:, -1:]
    full, every = np.zeros((count, per_task.shape[2]), dtype=bool), np.arange(count)
    step = np.arange(1, max(min(events.shape[1], 4000 // users), 2))

    for _ in range(per_task.shape[2]):
        # The last event at which nothing more is full, and the next.
        low, high = np.zeros(count, dtype=np.intp), np.full(count, events.shape[1])
        while (high - low > 1).any():
            looked = low[:, None] + (high - low)[:, None] * step // (len(step) + 1)
            level = np.take_along_axis(events, looked, axis=1)[:, :, None]
            own = np.minimum(np.maximum(level * gain[:, None] - elsewhere[:, None], 0.0), room[:, None])
            used = np.matmul(np.where(rising[:, None], own, tasks[:, None]), per_task)
            over = ((used > 1) & ~full[:, None]).any(axis=2)
            low = np.maximum(low, np.where(over, 0, looked).max(axis=1))
            high = np.minimum(high, np.where(over, looked, high[:, None]).min(axis=1))
        since = events[every, low]
        until = np.where(high < events.shape[1], events[every, np.minimum(high, events.shape[1] - 1)], np.inf)
        comes = rising & (begins <= since[:, None]) & (enough >= until[:, None]) & (enough > since[:, None])
        rate = np.matmul(np.where(comes, gain, 0.0)[:, None], per_task)[:, 0]
        fixed = np.where(
            comes, -elsewhere, np.where(rising, np.clip(since[:, None] * gain - elsewhere, 0, room), tasks)
        )
        left = 1 - np.matmul(fixed[:, None], per_task)[:, 0]
        level = np.divide(left, rate, out=np.full(rate.shape, np.inf), where=(rate > 0) & ~full)
        next_full = level.argmin(axis=1)
        reached = np.clip(level[every, next_full], since, until)
        meets = rising & (per_task[every, :, next_full] > 0) & np.isfinite(reached)[:, None]
        with np.errstate(invalid="ignore"):
            here = np.clip(reached[:, None] * gain - elsewhere, 0.0, room)
        tasks, rising = np.where(meets, here, tasks), rising & ~meets
        full[every, next_full] |= np.isfinite(reached)
        if not (rising.any(axis=1) & np.isfinite(reached)).any():
            break
    return np.where(rising, room, tasks)
