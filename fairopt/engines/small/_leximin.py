"""Compiled: lexicographic max-min over the servers of one small cluster: a linear program per level, in one tableau.

Every round raises the common level t of the users that are left, `phi_n t <= u_n x_n`, as far as capacities, limits and
the levels of the others let it; whose row has a price is done. As `exact.rational.leximin`, in doubles: fractions of
monopoly tasks, levels in units of the largest that one of those left could have. Ties end by Bland's rule.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._tableau import Tableau, pivot, place, raised
from .options import TABLEAU


@compiled
def _begun(q):  # type: ignore[no-untyped-def]
    """The tableau at no tasks, the capacity rows' slacks (servers, resources), the level rows' (users,), and weights.

    The column of the level is the last; `per_level` is what a unit of it asks of each user, in parts of its reach.
    """
    users, servers, resources = q.use.shape
    pairs, capacities = np.count_nonzero(q.gamma > 0), np.count_nonzero(q.row)
    reach = np.empty(users)
    limited, able = 0, 0
    for n in range(users):
        reach[n] = q.gamma[n].sum()
        able += reach[n] > 0
        limited += reach[n] > 0 and q.limit[n] < reach[n]
    rows = capacities + limited + able
    table = np.zeros((rows, pairs + 2))
    capacity, level = np.full((servers, resources), -1), np.full(users, -1)
    per_level, k = np.zeros(users), 0
    for i in range(servers):
        for r in range(resources):
            if q.row[i, r]:
                capacity[i, r] = k
                k += 1
    p = 0
    for n in range(users):
        if reach[n] <= 0:
            continue
        limit = k if q.limit[n] < reach[n] else -1
        k += limit >= 0
        level[n] = k
        k += 1
        per_level[n] = q.weight[n] / (q.share[n, 0] * reach[n])
        for i in range(servers):
            if q.gamma[n, i] > 0:
                for r in range(resources):
                    if q.use[n, i, r] > 0:
                        table[capacity[i, r], p] = q.use[n, i, r]
                if limit >= 0:
                    table[limit, p] = q.gamma[n, i] / q.limit[n]
                    table[limit, -1] = 1.0
                table[level[n], p] = -q.gamma[n, i] / reach[n]
                p += 1
    for i in range(servers):
        for r in range(resources):
            if q.row[i, r]:
                table[capacity[i, r], -1] = 1.0
    slack = pairs + 1
    basic, free = np.arange(slack, slack + rows), np.arange(slack)
    return Tableau(table, basic, free), capacity + slack, level + slack, per_level


@compiled
def leximin(q, tasks, prices):  # type: ignore[no-untyped-def]
    """Fill tasks (users, servers) and one set of prices of whole capacities per round; how many rounds, -1: failed."""
    tasks[:], prices[:] = 0.0, 0.0
    t, capacity, level, per_level = _begun(q)
    rising, column, rounds = per_level > 0, len(t.free) - 1, 0
    variable = column
    while rising.any():
        # The column of the level, through the slacks of the users that rise.
        t.table[:, column] = 0.0
        unit = per_level[rising].max()
        for n in range(len(level)):
            if rising[n]:
                j = place(t.free, level[n])
                if j >= 0:
                    t.table[:, column] += per_level[n] / unit * t.table[:, j]
                else:
                    t.table[place(t.basic, level[n]), column] += per_level[n] / unit
        i = raised(t, variable)
        if i < 0 or rounds == len(prices):
            return -1
        for a in range(capacity.shape[0]):
            for r in range(capacity.shape[1]):
                j = place(t.free, capacity[a, r]) if q.row[a, r] else -1
                prices[rounds, a, r] = max(t.table[i, j], 0.0) if j >= 0 else 0.0
        rounds += 1
        column, most = -1, TABLEAU.priced
        for n in range(len(level)):
            j = place(t.free, level[n]) if rising[n] else -1
            part = per_level[n] / unit * t.table[i, j] if j >= 0 else 0.0
            if part > TABLEAU.priced:
                rising[n] = False
                column, most = (j, part) if part > most else (column, most)
        if column < 0:
            return -1
        if rising.any():  # the level moves to the bounds, and a further rise takes its column
            value = t.table[i, -1]
            pivot(t, i, column)
            t.table[:, -1] = np.maximum(t.table[:, -1] - t.table[:, column] * value, 0.0)
    p = 0
    for n in range(tasks.shape[0]):
        for i in range(tasks.shape[1]):
            if q.gamma[n, i] > 0:
                at = place(t.basic, p)
                tasks[n, i] = t.table[at, -1] * q.gamma[n, i] if at >= 0 else 0.0
                p += 1
    return rounds
