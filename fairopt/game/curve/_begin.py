"""Compiled: where the curve begins: the equilibrium near alpha = 1, as a regular active set.

Splits of users over servers, and prices of rows that are full together, may be undetermined, for all alpha where users
share a bottleneck. Then the set is made regular: along a direction in which nothing but the split changes something
falls to zero and leaves. Whatever is not in the set is made worse by a little, other for every pair and row, so that
ties do not come back; the point is exactly an equilibrium of the data that were changed.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...core.interior import solved
from ...core.system import Stack, of_arrays
from ._gauge import gauged
from ._scaled import Cell
from ._system import LOG_TAX, Game, Place, Values, evaluate, values_of
from .options import BEGIN


@compiled
def _game(q):  # type: ignore[no-untyped-def]
    """The numbers of a game."""
    (user, server), users, resources = np.nonzero(q.gamma > 0), len(q.demand), q.capacity.shape[1]
    pairs, rows, size = len(user), q.row.sum(), np.empty(len(user))
    first, limit = np.zeros(users + 1, np.int64), np.full(users, np.inf)
    number = np.cumsum(q.row.astype(np.int64).ravel()).reshape(q.row.shape) - 1
    at, host, gain = np.full((pairs, resources), -1), np.empty(rows, np.int64), np.empty(pairs)
    for i in range(len(q.capacity)):
        for r in range(resources):
            if q.row[i, r]:
                host[number[i, r]] = i
    cost = np.zeros((pairs, resources))
    for p in range(pairs):
        n, i = user[p], server[p]
        first[n + 1] += 1
        size[p] = q.gamma[n, i] / q.gamma[n].max()
        gain[p] = np.log(q.weight[n] * size[p])
        for r in range(resources):
            if q.use[n, i, r] > 0:
                at[p, r], cost[p, r] = number[i, r], q.use[n, i, r]
    for n in range(users):
        first[n + 1] += first[n]
        if q.gamma[n].max() > 0 and q.limit[n] < q.gamma[n].sum() * (1 + BEGIN.binds):
            limit[n] = q.limit[n] / q.gamma[n].max()
    log_cost, tax = np.log(cost), gain - np.log(limit)[user] - BEGIN.tax
    unchanged = np.zeros(pairs), np.zeros(rows)
    return Game(user, server, first, size, gain, at, cost, log_cost, host, limit, tax, *unchanged)


@compiled
def _null(matrix):  # type: ignore[no-untyped-def]
    """A direction of length 1 that the matrix (equations, unknowns) maps to zero; empty for none."""
    if matrix.shape[1] == 0:
        return np.empty(0)
    _, values, right = np.linalg.svd(matrix, full_matrices=True)
    if len(values) < matrix.shape[1] or values[-1] < BEGIN.tie * values[0]:
        return right[-1]
    return np.empty(0)


@compiled
def _leaving(matrix, members, along, amount, value, sign, fixed):  # type: ignore[no-untyped-def]
    """What falls to zero first along a direction or against it: how far, number (-1: nothing), sense, is it a row?"""
    low, at, way, guard = np.inf, -1, 1.0, False
    for sense in (1.0, -1.0):
        for j in range(len(members)):
            if sense * along[j] < -BEGIN.still and amount[members[j]] / abs(along[j]) < low:
                low, at, way, guard = amount[members[j]] / abs(along[j]), j, sense, False
        for i in range(len(fixed)):
            if not fixed[i]:
                rate = 0.0
                for j in range(len(members)):
                    rate += sense * sign * matrix[i, members[j]] * along[j]
                if rate < -BEGIN.still and max(value[i], 0.0) / -rate < low:
                    low, at, way, guard = max(value[i], 0.0) / -rate, i, sense, True
    return low, at, way, guard


@compiled
def _pushed(matrix, amount, on, value, sign, fixed):  # type: ignore[no-untyped-def]
    """Move `amount` along directions in which nothing that is `held` changes until none are left; how many it took.

    What falls to zero first is no longer `on`; a row of the matrix whose `value` falls to zero first, by `sign` times
    the product with the direction, is held from then on.
    """
    for taken in range(len(on) + len(fixed)):
        members, rows = np.flatnonzero(on), np.flatnonzero(fixed)
        chosen = np.empty((len(rows), len(members)))
        for j in range(len(members)):
            for i in range(len(rows)):
                chosen[i, j] = matrix[rows[i], members[j]]
        along = _null(chosen)
        if not len(along):
            return taken
        low, at, way, guard = _leaving(matrix, members, along, amount, value, sign, fixed)
        if at < 0:
            return -1
        for i in range(len(fixed)):
            if not fixed[i]:
                for j in range(len(members)):
                    value[i] += low * way * sign * matrix[i, members[j]] * along[j]
        for j in range(len(members)):
            amount[members[j]] = max(amount[members[j]] + way * low * along[j], 0.0)
        if guard:
            fixed[at] = True
        else:
            amount[members[at]], on[members[at]] = 0.0, False
    return -1


def stack_of(q: Cell) -> Stack:
    """The game of a cell as the core has it."""
    usable, one = (q.gamma > 0)[..., None], np.full(1, q.alpha)
    data = q.capacity.T[..., None], q.demand.T[..., None], usable, q.weight[:, None], q.limit[:, None]
    return of_arrays(True, one, *data, None)


def begun(q: Cell, tol: float, most: int) -> tuple[Game, Place, bool]:
    """The game, the curve's place at the alpha of a cell, and whether there is one.

    Not compiled, nor is `_regular`: they run once a curve, and compiling them takes longer than it would ever save.
    """
    g = _game(q)
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    at = Place(
        np.zeros(pairs),
        np.zeros(rows),
        np.zeros(rows),
        np.zeros(users),
        np.array([np.log(q.alpha)]),
        np.zeros(pairs, np.bool_),
        np.zeros(rows, np.bool_),
        np.zeros(users, np.bool_),
        np.zeros(rows, np.bool_),
    )
    stack, v = stack_of(q), values_of(g)
    found = solved(stack, BEGIN.good, tol, most)
    tasks, log_rows = stack.tasks(found.z)[0], found.log_rows[..., 0].T.copy()
    sound = pairs > 0 and found.error[0] <= BEGIN.sound and _placed(q, g, at, v, tasks, log_rows)
    if sound and np.isfinite(g.limit).any():
        sound = _without_noise(g, at, v)
    if sound:
        _settled(g, at, v)
        sound = evaluate(g, at, v) and _regular(g, at, v)
    return g, at, bool(sound)


@compiled
def _placed(q, g, at, v, tasks, log_rows):  # type: ignore[no-untyped-def]
    """Fill the place from an equilibrium, all of its prices; False where its numbers are not finite."""
    for p in range(len(g.user)):
        at.z[p] = tasks[g.user[p], g.server[p]] / q.gamma[g.user[p], g.server[p]]
        for r in range(q.capacity.shape[1]):
            k = g.at[p, r]
            if k >= 0:
                price = log_rows[g.server[p], r]
                at.row_on[k] = price > -np.inf
                at.level[k], at.w[k] = (price / q.alpha, 1.0) if at.row_on[k] else (0.0, 0.0)
    at.pair_on[:] = at.z > 0
    return evaluate(g, at, v)


@compiled
def _settled(g, at, v):  # type: ignore[no-untyped-def]
    """Keep of pairs and rows what is more than its slack, or what idles; limits that are reached become active."""
    pairs, rows = len(g.user), len(g.host)
    for n in range(len(g.limit)):
        if 1 - v.x[n] / g.limit[n] < BEGIN.reached:
            at.limit_on[n] = True
            least = 0.0
            for p in range(g.first[n], g.first[n + 1]):
                if g.size[p] * at.z[p] > BEGIN.reached * v.x[n]:
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


@compiled
def _without_noise(g, at, v):  # type: ignore[no-untyped-def]
    """Rows that idle lose the price that an interior point has left them: it may be more than the tax."""
    tax = g.tax.copy()
    g.tax[:] += BEGIN.tax - LOG_TAX / np.exp(at.theta[0])  # what the last task is worth
    gauged(g, at)
    for k in range(len(g.host)):
        at.row_on[k] = at.row_on[k] and (at.stands[k] or at.w[k] > abs(v.idle[k]))
        at.w[k] = at.w[k] if at.row_on[k] else 0.0
    g.tax[:] = tax
    gauged(g, at)
    return evaluate(g, at, v)


@compiled
def _splits(g, at, v):  # type: ignore[no-untyped-def]
    """Move tasks between servers, every user's total and the use of priced rows held, until the split is determined."""
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    matrix, value, fixed = np.zeros((users + rows, pairs)), np.zeros(users + rows), np.ones(users + rows, np.bool_)
    for p in range(pairs):
        matrix[g.user[p], p] = g.size[p]
        for r in range(g.at.shape[1]):
            if g.at[p, r] >= 0:
                matrix[users + g.at[p, r], p] = g.cost[p, r]
    value[users:], fixed[users:] = v.idle, at.row_on
    taken = _pushed(matrix, at.z, at.pair_on, value, -1.0, fixed)
    at.row_on[:] = fixed[users:]
    return taken


@compiled
def _prices(g, at, v):  # type: ignore[no-untyped-def]
    """Move prices, what active pairs pay held, until they are determined."""
    pairs, rows, alpha = len(g.user), len(g.host), np.exp(at.theta[0])
    matrix, value = np.zeros((pairs, rows)), np.empty(pairs)
    for p in range(pairs):
        value[p] = -np.expm1(-alpha * v.slack[p])
        for r in range(g.at.shape[1]):
            if g.at[p, r] >= 0 and at.row_on[g.at[p, r]]:
                matrix[p, g.at[p, r]] = v.felt[p, r]
    return _pushed(matrix, at.w, at.row_on, value, 1.0, at.pair_on)


def _regular(g: Game, at: Place, v: Values) -> bool:
    """Make the active set regular and the rest worse by a little; False where that cannot be done."""
    for _ in range(BEGIN.rounds):
        taken = _splits(g, at, v)
        gauged(g, at)
        if taken < 0 or not evaluate(g, at, v):
            return False
        more = _prices(g, at, v)
        gauged(g, at)
        if more < 0 or not evaluate(g, at, v):
            return False
        if more == 0:
            break
    return bool(_perturbed(g, at, v))


@compiled
def _spread(k):  # type: ignore[no-untyped-def]
    """A number in (1, 2), other for every k; nor are differences alike, as ties are of two users on two servers."""
    return 1 + (43758.5453123 * np.sin(12.9898 * (k + 1))) % 1


@compiled
def _perturbed(g, at, v):  # type: ignore[no-untyped-def]
    """Move everything active off zero, and change the data so that the place is exactly an equilibrium."""
    pairs, rows = len(g.user), len(g.host)
    for p in range(pairs):
        if at.pair_on[p]:
            # In parts of the user's tasks, but of the server where these are more than it can hold.
            at.z[p] += BEGIN.jitter * _spread(p) * min(v.x[g.user[p]] / g.size[p], 1.0)
    for k in range(rows):
        if at.row_on[k] and not at.stands[k]:
            at.w[k] += BEGIN.jitter * _spread(pairs + k)
    if not evaluate(g, at, v):
        return False
    worst = 0.0
    for p in range(pairs):
        g.jitter[p] = -v.slack[p] if at.pair_on[p] else max(-v.slack[p], 0.0) + BEGIN.jitter * _spread(p)
        worst = max(worst, abs(g.jitter[p]))
    for k in range(rows):
        g.room[k] = -v.idle[k] if at.row_on[k] else max(-v.idle[k], 0.0) + BEGIN.jitter * _spread(pairs + k)
        worst = max(worst, abs(g.room[k]))
    for n in range(len(g.limit)):
        if at.limit_on[n]:
            at.xi[n] += BEGIN.jitter * _spread(n)
            worst = max(worst, abs(v.x[n] / g.limit[n] - 1))
            g.limit[n] = v.x[n]
    for p in range(pairs):
        if at.limit_on[g.user[p]]:
            g.jitter[p] -= BEGIN.jitter * _spread(g.user[p])
    return worst <= BEGIN.most * BEGIN.jitter
