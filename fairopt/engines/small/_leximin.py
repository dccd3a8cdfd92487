"""Compiled: lexicographic max-min over the servers of one small cluster: a linear program per level, in one tableau.

Every round raises the common level t of the users that are left, `phi_n t <= u_n x_n`, as far as capacities, limits and
the levels of the others let it; whose row has a price is done. As `exact.rational.leximin`, in doubles: fractions of
monopoly tasks, levels in units of the largest that one of those left could have. Ties end by Bland's rule.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled

#: Entries of the tableau below this are rounding, as are parts of the price of a level below the second.
_SMALL, _PRICED = 1e-9, 1e-10
#: Steps that do not raise the level before Bland's rule, and most steps of a round, in parts of rows + columns.
_STILL, _STEPS = 1, 50


class Tableau(NamedTuple):
    """`basic_i = table[i, -1] - sum_j table[i, j] free_j`; variables by number: columns first, then slacks of rows."""

    table: np.ndarray
    basic: np.ndarray
    free: np.ndarray


@compiled
def _pivot(t, i, j):  # type: ignore[no-untyped-def]
    """Exchange the variables of row i and column j."""
    at = t.table[i, j]
    t.table[i] /= at
    t.table[i, j] = 1 / at
    for k in range(len(t.table)):
        by = t.table[k, j]
        if k != i and by != 0:
            for m in range(t.table.shape[1]):
                if m != j:
                    t.table[k, m] -= by * t.table[i, m]
            t.table[k, j] = -by / at
    t.basic[i], t.free[j] = t.free[j], t.basic[i]


@compiled
def _leaving(t, j, bland):  # type: ignore[no-untyped-def]
    """The row that stops a column first; of several the largest entry, by Bland's rule the first variable."""
    best, ratio = -1, np.inf
    for i in range(len(t.table)):
        if t.table[i, j] > _SMALL:
            own = t.table[i, -1] / t.table[i, j]
            if own < ratio - 1e-13 or best < 0:
                best, ratio = i, own
            elif own <= ratio + 1e-13:
                better = t.basic[i] < t.basic[best] if bland else t.table[i, j] > t.table[best, j]
                best, ratio = (i, min(own, ratio)) if better else (best, ratio)
    return best


@compiled
def _place(numbers, variable):  # type: ignore[no-untyped-def]
    """Where a variable is; -1: not there."""
    for k in range(len(numbers)):
        if numbers[k] == variable:
            return k
    return -1


@compiled
def _raised(t, level):  # type: ignore[no-untyped-def]
    """Make the variable `level`, which is free, as large as it can be: its row then, -1 where that fails."""
    i = _leaving(t, _place(t.free, level), False)
    if i < 0:
        return -1
    _pivot(t, i, _place(t.free, level))
    size = len(t.table) + len(t.free)
    still = 0
    for _ in range(_STEPS * size):
        enter, most, bland = -1, -_SMALL, still > _STILL * size
        for j in range(len(t.free)):
            if t.table[i, j] < most and (not bland or enter < 0 or t.free[j] < t.free[enter]):
                enter = j
                most = -_SMALL if bland else t.table[i, j]
        if enter < 0:
            return i
        out, before = _leaving(t, enter, bland), t.table[i, -1]
        if out < 0 or out == i:
            return -1
        _pivot(t, out, enter)
        t.table[:, -1] = np.maximum(t.table[:, -1], 0.0)
        still = still + 1 if t.table[i, -1] <= before else 0
    return -1


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
                j = _place(t.free, level[n])
                if j >= 0:
                    t.table[:, column] += per_level[n] / unit * t.table[:, j]
                else:
                    t.table[_place(t.basic, level[n]), column] += per_level[n] / unit
        i = _raised(t, variable)
        if i < 0 or rounds == len(prices):
            return -1
        for a in range(capacity.shape[0]):
            for r in range(capacity.shape[1]):
                j = _place(t.free, capacity[a, r]) if q.row[a, r] else -1
                prices[rounds, a, r] = max(t.table[i, j], 0.0) if j >= 0 else 0.0
        rounds += 1
        column, most = -1, _PRICED
        for n in range(len(level)):
            j = _place(t.free, level[n]) if rising[n] else -1
            part = per_level[n] / unit * t.table[i, j] if j >= 0 else 0.0
            if part > _PRICED:
                rising[n] = False
                column, most = (j, part) if part > most else (column, most)
        if column < 0:
            return -1
        if rising.any():  # the level moves to the bounds, and a further rise takes its column
            value = t.table[i, -1]
            _pivot(t, i, column)
            t.table[:, -1] = np.maximum(t.table[:, -1] - t.table[:, column] * value, 0.0)
    p = 0
    for n in range(tasks.shape[0]):
        for i in range(tasks.shape[1]):
            if q.gamma[n, i] > 0:
                at = _place(t.basic, p)
                tasks[n, i] = t.table[at, -1] * q.gamma[n, i] if at >= 0 else 0.0
                p += 1
    return rounds
