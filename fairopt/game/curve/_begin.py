"""Compiled: where the curve begins: the equilibrium near alpha = 1, as a regular active set.

Splits of users over servers, and prices of rows that are full together, may be undetermined, for all alpha where users
share a bottleneck. Then the set is made regular: along a direction in which nothing but the split changes something
falls to zero and leaves. Whatever is not in the set is made worse by a little, other for every pair and row, so that
ties do not come back; the point is exactly an equilibrium of the data that were changed.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...engines.small._conditions import conditions
from ...engines.small._interior import equilibrium
from ...engines.small._scaled import cell
from ._system import Game, Place, evaluate, gauged, values_of

#: Singular values below this part of the largest are ties.
_TIE = 1e-9
#: By how much what is outside the active set is worse than in the data.
_JITTER = 1e-8


@compiled
def _game(q):  # type: ignore[no-untyped-def]
    """The numbers of a game."""
    c, users, resources = conditions(q), len(q.demand), q.capacity.shape[1]
    pairs, rows = len(c.user), q.row.sum()
    first, limit = np.zeros(users + 1, np.int64), np.full(users, np.inf)
    number = np.cumsum(q.row.astype(np.int64).ravel()).reshape(q.row.shape) - 1
    at, host, gain = np.full((pairs, resources), -1), np.empty(rows, np.int64), np.empty(pairs)
    for i in range(len(q.capacity)):
        for r in range(resources):
            if q.row[i, r]:
                host[number[i, r]] = i
    cost = np.zeros((pairs, resources))
    for p in range(pairs):
        n, i = c.user[p], c.server[p]
        first[n + 1] += 1
        gain[p] = np.log(q.weight[n] * c.size[p])
        for r in range(resources):
            if q.use[n, i, r] > 0:
                at[p, r], cost[p, r] = number[i, r], q.use[n, i, r]
    for n in range(users):
        first[n + 1] += first[n]
        if q.gamma[n].max() > 0 and q.limit[n] < q.gamma[n].sum() * (1 + 1e-9):
            limit[n] = q.limit[n] / q.gamma[n].max()
    return Game(c.user, c.server, first, c.size, gain, at, cost, host, limit, np.zeros(pairs), np.zeros(rows))


@compiled
def _null(matrix):  # type: ignore[no-untyped-def]
    """A direction of length 1 that the matrix (equations, unknowns) maps to zero; empty for none."""
    if matrix.shape[1] == 0:
        return np.empty(0)
    left, values, right = np.linalg.svd(matrix, full_matrices=True)
    if len(values) < matrix.shape[1] or values[-1] < _TIE * values[0]:
        return right[-1]
    return np.empty(0)


@compiled
def _pushed(matrix, amount, unit, on):  # type: ignore[no-untyped-def]
    """Move `amount` along null directions of the matrix until none are left among those that are `on`; how many left."""
    left = 0
    while True:
        members = np.flatnonzero(on)
        chosen = np.empty((len(matrix), len(members)))
        for j in range(len(members)):
            chosen[:, j] = matrix[:, members[j]]
        along = _null(chosen)
        if not len(along):
            return left
        low, at, sign = np.inf, -1, 1.0
        for way in (1.0, -1.0):
            for j in range(len(members)):
                if way * along[j] < -1e-9 and amount[members[j]] / (unit[members[j]] * abs(along[j])) < low:
                    # what is least in its unit leaves
                    low, at, sign = amount[members[j]] / (unit[members[j]] * abs(along[j])), j, way
        if at < 0:
            return -1
        t = amount[members[at]] / abs(along[at])
        for j in range(len(members)):
            amount[members[j]] = max(amount[members[j]] + sign * t * along[j], 0.0)
        amount[members[at]], on[members[at]] = 0.0, False
        left += 1


@compiled
def begun(q, tol, most):  # type: ignore[no-untyped-def]
    """The game, the curve's place at the alpha of a cell, and whether there is one."""
    g = _game(q)
    pairs, rows, users, alpha = len(g.user), len(g.host), len(g.limit), q.alpha
    at = Place(
        np.zeros(pairs),
        np.zeros(rows),
        np.zeros(rows),
        np.zeros(users),
        np.array([np.log(alpha)]),
        np.zeros(pairs, np.bool_),
        np.zeros(rows, np.bool_),
        np.zeros(users, np.bool_),
        np.zeros(rows, np.bool_),
    )
    tasks, log_rows = np.empty(q.gamma.shape), np.empty(q.capacity.shape)
    certificate, _ = equilibrium(q, tol, tol, most, tasks, log_rows)
    if not certificate <= 1e-8:
        return g, at, False
    v = values_of(g)
    for p in range(pairs):
        at.z[p] = tasks[g.user[p], g.server[p]] / q.gamma[g.user[p], g.server[p]]
        for r in range(q.capacity.shape[1]):
            k = g.at[p, r]
            if k >= 0:
                price = log_rows[g.server[p], r]
                at.row_on[k] = price > -np.inf
                at.level[k], at.w[k] = (price / alpha, 1.0) if at.row_on[k] else (0.0, 0.0)
    at.pair_on[:] = at.z > 0
    if not evaluate(g, at, v):
        return g, at, False
    for n in range(users):
        if 1 - v.x[n] / g.limit[n] < 1e-7:
            at.limit_on[n] = True
            least = 0.0
            for p in range(g.first[n], g.first[n + 1]):
                if g.size[p] * at.z[p] > 1e-7 * v.x[n]:
                    least = min(least, v.slack[p])
            at.xi[n] = -least
            for p in range(g.first[n], g.first[n + 1]):
                v.slack[p] -= least
    for p in range(pairs):
        at.pair_on[p] = g.size[p] * at.z[p] / v.x[g.user[p]] > abs(v.slack[p])
        at.z[p] = at.z[p] if at.pair_on[p] else 0.0
    gauged(g, at)
    for k in range(rows):
        at.row_on[k] = at.row_on[k] and (at.stands[k] or at.w[k] > abs(v.idle[k]))
        at.w[k] = at.w[k] if at.row_on[k] else 0.0
    gauged(g, at)
    if not evaluate(g, at, v):
        return g, at, False
    return g, at, _regular(g, at, v)


@compiled
def _regular(g, at, v):  # type: ignore[no-untyped-def]
    """Make the active set regular and the rest worse by a little; False where that cannot be done."""
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    # Splits that use the same and give the same. Columns in parts of the user's tasks.
    matrix, unit = np.zeros((users + rows, pairs)), np.empty(pairs)
    for p in range(pairs):
        unit[p] = v.x[g.user[p]] / g.size[p]
        matrix[g.user[p], p] = g.size[p]
        for r in range(g.at.shape[1]):
            if g.at[p, r] >= 0 and at.row_on[g.at[p, r]]:
                matrix[users + g.at[p, r], p] = g.cost[p, r]
    if _pushed(matrix, at.z, unit, at.pair_on) < 0:
        return False
    # Prices at which everybody pays the same.
    price, ones = at.w.copy(), np.ones(rows)
    felt = np.zeros((pairs, rows))
    for k in range(rows):
        price[k] = at.w[k] if at.row_on[k] else 0.0
    for p in range(pairs):
        if at.pair_on[p]:
            for r in range(g.at.shape[1]):
                if g.at[p, r] >= 0 and at.row_on[g.at[p, r]]:
                    felt[p, g.at[p, r]] = v.felt[p, r]
    if _pushed(felt, price, ones, at.row_on) < 0:
        return False
    at.w[:] = price
    for p in range(pairs):
        g.jitter[p] = 0.0 if at.pair_on[p] else _JITTER * (1 + (0.6180339887 * (p + 1)) % 1)
    for k in range(rows):
        g.room[k] = 0.0 if at.row_on[k] else _JITTER * (1 + (0.7548776662 * (k + 1)) % 1)
    gauged(g, at)
    return True


@compiled
def of_data(alpha, capacity, demand, eligible, share, weight, limit, tol, most):  # type: ignore[no-untyped-def]
    """`begun` for the numbers of a problem (`engines.small.stack.Stacked`, one of them)."""
    return begun(cell(alpha, True, capacity, demand, eligible, limit, weight, share), tol, most)
