"""Compiled: the largest sum of shares on one small cluster (alpha = 0), a linear program in one tableau.

    maximise  sum_n u_n x_n    over capacities and limits

In fractions of monopoly tasks, and the sum in units of the largest share that one user alone could have. Which of
several optima is found depends on the order of users and servers.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...certificates import backward
from ._tableau import Tableau, place, raised

#: Tasks on pairs that are dearer than they need be by more than this level are dropped.
_DEAR = backward.OPTIONS.levels[1]


@compiled
def _begun(q, unit):  # type: ignore[no-untyped-def]
    """The tableau at no tasks, and the capacity rows' slacks (servers, resources); the column of the sum is the last.

    The row of the sum is the last.
    """
    users, servers, resources = q.use.shape
    pairs, rows = np.count_nonzero(q.gamma > 0), np.count_nonzero(q.row) + 1
    for n in range(users):
        rows += q.gamma[n].max() > 0 and q.limit[n] < q.gamma[n].sum()
    table, capacity = np.zeros((rows, pairs + 2)), np.full((servers, resources), -1)
    k = p = 0
    for i in range(servers):
        for r in range(resources):
            if q.row[i, r]:
                capacity[i, r], table[k, -1] = k, 1.0
                k += 1
    for n in range(users):
        limited = q.gamma[n].max() > 0 and q.limit[n] < q.gamma[n].sum()
        for i in range(servers):
            if q.gamma[n, i] > 0:
                for r in range(resources):
                    if q.use[n, i, r] > 0:
                        table[capacity[i, r], p] = q.use[n, i, r]
                if limited:
                    table[k, p], table[k, -1] = q.gamma[n, i] / q.limit[n], 1.0
                table[-1, p] = -q.gamma[n, i] * q.share[n, 0] / unit
                p += 1
        k += limited
    table[-1, pairs] = 1.0
    slack = pairs + 1
    return Tableau(table, np.arange(slack, slack + rows), np.arange(slack)), capacity + slack


@compiled
def efficient(q, tasks, prices):  # type: ignore[no-untyped-def]
    """Fill tasks (users, servers) and prices of whole capacities (servers, resources); False: failed."""
    tasks[:], prices[:], unit = 0.0, 0.0, 0.0
    for n in range(len(tasks)):
        unit = max(unit, q.gamma[n].sum() * q.share[n, 0]) if q.gamma[n].max() > 0 else unit
    if unit == 0:
        return True
    t, capacity = _begun(q, unit)
    at = raised(t, len(t.free) - 1)
    if at < 0:
        return False
    for i in range(capacity.shape[0]):
        for r in range(capacity.shape[1]):
            j = place(t.free, capacity[i, r]) if q.row[i, r] else -1
            prices[i, r] = max(t.table[at, j], 0.0) * unit if j >= 0 else 0.0
    p = 0
    for n in range(tasks.shape[0]):
        for i in range(tasks.shape[1]):
            if q.gamma[n, i] > 0:
                k = place(t.basic, p)
                tasks[n, i] = max(t.table[k, -1], 0.0) * q.gamma[n, i] if k >= 0 else 0.0
                p += 1
    return True


@compiled
def _of_user(q, n, tasks, prices, dropped):  # type: ignore[no-untyped-def]
    """The error of one user who can run: of its worth, of pairs dearer than they need be, of what is `dropped`."""
    cost, least = np.full(len(prices), np.inf), np.inf
    for i in range(len(prices)):
        if q.gamma[n, i] > 0:
            cost[i] = (q.use[n, i] * prices[i]).sum() / q.gamma[n, i]
            least = min(least, cost[i])
    total, reach = tasks[n].sum(), q.gamma[n].sum()
    off = np.log(q.share[n, 0]) - np.log(least)
    room = max(1 - total / q.limit[n], 0.0) if np.isfinite(q.limit[n]) else np.inf
    served = total > _DEAR * reach
    worst, lost = 0.0, 0.0
    if off > 0:
        worst = min(off, room)
    elif served:
        worst = -off
    for i in range(len(prices)):
        if tasks[n, i] > 0:
            dear = np.log(cost[i] / least) if cost[i] > least else 0.0
            if served and dear <= _DEAR:
                worst = max(worst, dear)
            else:
                dropped[n, i] = tasks[n, i]
                lost += tasks[n, i]
    return max(worst, lost / reach)


@compiled
def efficiency_error(q, tasks, prices):  # type: ignore[no-untyped-def]
    """`certificates.backward` at alpha = 0 and one level: the relative change of the data that makes tasks optimal."""
    worst, dropped = 0.0, np.zeros(tasks.shape)
    for n in range(len(tasks)):
        if q.gamma[n].max() > 0:
            worst = max(worst, _of_user(q, n, tasks, prices, dropped))
    for i in range(len(prices)):
        for r in range(prices.shape[1]):
            if q.row[i, r] and prices[i, r] > 0:
                used = lost = 0.0
                for n in range(len(tasks)):
                    used += tasks[n, i] * q.demand[n, r]
                    lost += dropped[n, i] * q.demand[n, r]
                worst = max(worst, abs(1 - used / q.capacity[i, r]), lost / q.capacity[i, r])
    return worst
