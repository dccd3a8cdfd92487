"""Compiled: what prices prove of the lexicographic rise on one small cluster, by `certificates.leximin.proved`."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...certificates.leximin import SAME_LEVEL


@compiled
def _groups(level, able):  # type: ignore[no-untyped-def]
    """The number of each user's group of equal levels, lowest first, -1 for who can run nothing; and how many."""
    order, rank = np.argsort(level, kind="mergesort"), np.full(len(level), -1)
    count, last = 0, 0.0
    for k in range(len(order)):
        n = order[k]
        if not able[n]:
            continue
        count += count == 0 or level[n] > last * (1 + SAME_LEVEL)
        rank[n], last = count - 1, level[n]
    return rank, count


@compiled
def _bounds(q, tasks, totals, idle, rank, groups, prices, best):  # type: ignore[no-untyped-def]
    """Make `best` (users,), what is proved of each user's rise, as small as prices of whole capacities prove it."""
    users, servers, resources = q.use.shape
    least, above = np.full(users, np.inf), np.zeros(users)
    own, others, unused = np.zeros(groups), np.zeros(groups), 0.0
    for i in range(servers):
        for r in range(resources):
            unused += prices[i, r] * idle[i, r]
    for n in range(users):
        if rank[n] < 0:
            continue
        cost = np.zeros(servers)
        for i in range(servers):
            if q.gamma[n, i] > 0:
                for r in range(resources):
                    cost[i] += q.use[n, i, r] * prices[i, r]
                cost[i] *= totals[n] / q.gamma[n, i]
                least[n] = min(least[n], cost[i])
        for i in range(servers):
            if q.gamma[n, i] > 0:
                above[n] += tasks[n, i] / totals[n] * (cost[i] - least[n])
        for g in range(groups):
            if rank[n] <= g:
                own[g] += max(above[n], 0.0)
            else:
                others[g] += max(least[n] + above[n], 0.0)
    for n in range(users):
        if rank[n] >= 0 and least[n] > 0:
            best[n] = min(best[n], (unused + own[rank[n]] + others[rank[n]]) / least[n])


@compiled
def lexicographic_rise(q, tasks, prices):  # type: ignore[no-untyped-def]
    """The largest relative rise that sets of prices (sets, servers, resources) leave open, or width of a level.

    An upper bound of `certificates.lexicographic_rise`, whose linear programs may prove more.
    """
    users, servers, resources = q.use.shape
    totals, able, level = np.zeros(users), np.zeros(users, np.bool_), np.full(users, np.inf)
    for n in range(users):
        for i in range(servers):
            if q.gamma[n, i] > 0:
                able[n] = True
                totals[n] += tasks[n, i]
        if able[n] and not totals[n] > 0:
            return np.inf
        level[n] = totals[n] * q.share[n, 0] / q.weight[n] if able[n] else np.inf
    idle = np.zeros((servers, resources))
    for i in range(servers):
        for r in range(resources):
            used = 0.0
            for n in range(users):
                used += tasks[n, i] * q.demand[n, r]
            idle[i, r] = max(1 - used / q.capacity[i, r], 0.0) if q.row[i, r] else 0.0
    rank, groups = _groups(level, able)
    rise = np.full(users, np.inf)
    for s in range(len(prices)):
        _bounds(q, tasks, totals, idle, rank, groups, prices[s], rise)
    worst = 0.0
    low, high = np.full(groups, np.inf), np.zeros(groups)
    for n in range(users):
        if able[n]:
            low[rank[n]], high[rank[n]] = min(low[rank[n]], level[n]), max(high[rank[n]], level[n])
            worst = max(worst, min(rise[n], q.limit[n] / totals[n] - 1))
    for g in range(groups):
        worst = max(worst, high[g] / low[g] - 1)
    return worst


@compiled
def ill_scaling(q):  # type: ignore[no-untyped-def]
    """`certificates.ill_scaled`: the least part of what another needs at equal levels that somebody needs of a row."""
    users, servers, resources = q.use.shape
    worst = 1.0
    for i in range(servers):
        for r in range(resources):
            low, high = np.inf, 0.0
            for n in range(users):
                if q.use[n, i, r] > 0:
                    own = q.use[n, i, r] * (q.weight[n] / q.share[n, i] / q.gamma[n, i])
                    low, high = min(low, own), max(high, own)
            if high > 0:
                worst = min(worst, low / high)
    return worst
