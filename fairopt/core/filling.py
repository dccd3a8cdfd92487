r"""Max-min on single servers, for a stack of servers, by progressive filling.

A user with x tasks on the server, `elsewhere` tasks on other servers, and room for at most `room` tasks on the server
has the level (x + elsewhere) / gain. It uses the fraction `per_task` of a resource for each task,

.. math:: \sum_n x_n\, per\_task_{nr} \le 1, \qquad 0 \le x_n \le room_n

A common level increases; the tasks of each user follow until the user attains its room or needs an exhausted resource.
Each round finds, by a k-ary search over the levels at which users get their first tasks or attain their room, the level
at which the next resource is exhausted; there are at most as many rounds as resources. The first axis of arrays is that
of servers; padding users have room 0.
"""

from __future__ import annotations

import heapq

import numpy as np

from ..base.loops import compiled
from ..model._arrays import Array, Index

#: Number of (level, user) combinations that a step of the k-ary search evaluates for each server (measured).
_PROBES = 4000


def filled(gain: Array, per_task: Array, elsewhere: Array, room: Array) -> Array:
    """Max-min tasks (servers, users) of every server by itself.

    Parameters
    ----------
    gain : (servers, users), tasks per unit of level
    per_task : (servers, users, resources), fraction of a capacity that a task uses
    elsewhere, room : (servers, users), tasks on other servers, and largest number of tasks on the server
    """
    count, users, _ = per_task.shape
    tasks, rising = np.zeros((count, users)), room > 0
    entry_level, limit_level = elsewhere / gain, (elsewhere + room) / gain
    events = np.concatenate([entry_level, limit_level], axis=1)
    events = np.sort(np.where(np.isfinite(events), events, 0.0), axis=1)
    if not events[:, -1].any():
        events = events[:, -1:]
    full, index = np.zeros((count, per_task.shape[2]), dtype=bool), np.arange(count)
    step = np.arange(1, max(min(events.shape[1], _PROBES // users), 2))

    for _ in range(per_task.shape[2]):
        # Bracket the level at which the next resource is exhausted between two successive events.
        low, high = np.zeros(count, dtype=np.intp), np.full(count, events.shape[1])
        while (high - low > 1).any():
            probed = low[:, None] + (high - low)[:, None] * step // (len(step) + 1)
            level = np.take_along_axis(events, probed, axis=1)[:, :, None]
            own = np.minimum(np.maximum(level * gain[:, None] - elsewhere[:, None], 0.0), room[:, None])
            used = np.matmul(np.where(rising[:, None], own, tasks[:, None]), per_task)
            overused = ((used > 1) & ~full[:, None]).any(axis=2)
            low = np.maximum(low, np.where(overused, 0, probed).max(axis=1))
            high = np.minimum(high, np.where(overused, probed, high[:, None]).min(axis=1))
        level_low = events[index, low]
        level_high = np.where(high < events.shape[1], events[index, np.minimum(high, events.shape[1] - 1)], np.inf)
        filling = (
            rising
            & (entry_level <= level_low[:, None])
            & (limit_level >= level_high[:, None])
            & (limit_level > level_low[:, None])
        )
        rate = np.matmul(np.where(filling, gain, 0.0)[:, None], per_task)[:, 0]
        fixed = np.where(
            filling, -elsewhere, np.where(rising, np.clip(level_low[:, None] * gain - elsewhere, 0, room), tasks)
        )
        available = 1 - np.matmul(fixed[:, None], per_task)[:, 0]
        level = np.divide(available, rate, out=np.full(rate.shape, np.inf), where=(rate > 0) & ~full)
        next_full = level.argmin(axis=1)
        reached = np.clip(level[index, next_full], level_low, level_high)
        stopped = rising & (per_task[index, :, next_full] > 0) & np.isfinite(reached)[:, None]
        with np.errstate(invalid="ignore"):
            tasks_reached = np.clip(reached[:, None] * gain - elsewhere, 0.0, room)
        tasks, rising = np.where(stopped, tasks_reached, tasks), rising & ~stopped
        full[index, next_full] |= np.isfinite(reached)
        if not (rising.any(axis=1) & np.isfinite(reached)).any():
            break
    return np.where(rising, room, tasks)


@compiled
def stopping_levels(
    start: Index, resource: Index, rate_of: Array, begin: Index, user: Index, limit: Array, order: Index
) -> Array:
    """Levels at which users of one pool stop, (users,), by events in a heap, in O(nonzeros log resources).

    Each user stops once: when a resource that it uses is exhausted, or at its limit. The rate of use of its other
    resources then decreases by the user's rate, so that they are exhausted later than the heap states, and return to
    the heap. The level is infinite for users that nothing stops.

    Parameters
    ----------
    start, resource, rate_of : resources of each user, in compressed rows, and fractions of them used per unit of level
    begin, user : users of each resource, in compressed columns
    limit : (users,), levels at which users attain their limits
    order : users with finite limits, in the order of these limits
    """
    levels, some = np.full(len(start) - 1, np.inf), len(begin) - 1
    rate, left, since, rising = np.zeros(some), np.ones(some), np.zeros(some), np.diff(begin)
    for k in range(len(resource)):
        rate[resource[k]] += rate_of[k]
    heap = [(1.0 / rate[r], r) for r in range(some) if rising[r] > 0]
    heapq.heapify(heap)
    one, following = np.zeros(1, dtype=user.dtype), 0
    while len(heap) > 0:
        level, full = heap[0]
        if rising[full] == 0:
            heapq.heappop(heap)
            continue
        now = since[full] + max(left[full], 0.0) / rate[full]
        while following < len(order) and levels[order[following]] < np.inf:
            following += 1
        if following < len(order) and limit[order[following]] <= level:
            one[0], now = order[following], limit[order[following]]
            stopping = one
        elif now > level:
            heapq.heapreplace(heap, (now, full))
            continue
        else:
            stopping = user[begin[full] : begin[full + 1]]
        for n in stopping:
            if levels[n] < np.inf:
                continue
            levels[n] = now
            for k in range(start[n], start[n + 1]):
                r = resource[k]
                left[r] -= (now - since[r]) * rate[r]
                since[r] = now
                rate[r] -= rate_of[k]
                rising[r] -= 1
    return levels
