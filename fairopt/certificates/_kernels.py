"""Loops over users that numpy would run through large arrays for, compiled at their first use."""

from __future__ import annotations

import numpy as np

from .._loops import compiled


@compiled
def _room(idle, above, demand, total):  # type: ignore[no-untyped-def]
    """The least relative rise that what is idle and what is `above` allow over the resources that are needed."""
    least = np.inf
    for r in range(len(demand)):
        if demand[r] > 0:
            least = min(least, (idle[r] + above[r]) / (demand[r] * total))
    return least


@compiled
def compromises(level, demand, totals, idle, above):  # type: ignore[no-untyped-def]
    """For users in the order of their levels: the least over m of `max(level_m/level_n - 1, room up to m)`, (users,).

    Along the order the first grows and the second falls, so the best m is next to where they meet: bisection.
    """
    users = len(level)
    best = np.empty(users)
    for n in range(users):
        low, high = n, users - 1
        while low < high:
            middle = (low + high) // 2
            if level[middle] / level[n] - 1 >= _room(idle, above[middle], demand[n], totals[n]):
                high = middle
            else:
                low = middle + 1
        least = max(level[low] / level[n] - 1, _room(idle, above[low], demand[n], totals[n]))
        if low > n:
            before = max(level[low - 1] / level[n] - 1, _room(idle, above[low - 1], demand[n], totals[n]))
            least = min(least, before)
        best[n] = least
    return best


@compiled
def rises(demand, idle, spare, levels, totals, limits):  # type: ignore[no-untyped-def]
    """`bottleneck.rises`, of what is `idle` and what others can `spare`, (users,).

    Users are gone through in the order of their levels.
    """
    users, resources = demand.shape
    order = np.argsort(levels, kind="mergesort")
    level, requested, mine = levels[order], demand[order], totals[order]
    above = np.zeros((users, resources))
    for n in range(users - 2, -1, -1):
        for r in range(resources):
            above[n, r] = above[n + 1, r] + spare[order[n + 1]] * requested[n + 1, r]
    found = compromises(level, requested, mine, idle, above)
    result = np.empty(users)
    for n in range(users):
        most = limits[order[n]] / mine[n] - 1
        result[order[n]] = min(found[n], max(most, 0.0)) if mine[n] > 0 else np.inf
    return result
