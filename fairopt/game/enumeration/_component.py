"""Compiled: all prices and tasks of one connected component of a cell: which equations, and their solutions.

Unknown are log level prices w_r of its R rows. Users take the tasks that the prices of their first server allow,
`log X_n = gain_n - log norm_n(w)`; with T ties (servers of users but the first) the equations are

    gain - log norm equal on both servers of a tie                                                    (T of them)
    sum_r y_r (1 - sum_n d_nr X_n) = 0   for every y with sum_r y_r d_nr the same on both servers of every tie  (R - T)

d_nr what a task uses of a row at the user's first server. For then tasks of pairs exist that add up to X and fill the
rows. Ties are linear in prices, and the rest only asks for a scale if R - T = 1: prices are a null vector, and that is
all. If R - T = 2, prices are `(1 - t) lambda' + t lambda''`, and what remains is one function of t,

    sum_n beta_n cost_n(t)^(-1/alpha) = 0,   cost_n linear in t,

which has at most as many roots as beta has changes of sign in the order of the zeros of cost_n ((t + s)^(-p) is totally
positive: Karlin, "Total Positivity" (1968), chapter 3); it is looked at on a grid, and roots are found by bisection.
Prices below 1e-13 of the largest are hidden by rounding: they are looked for from several values.

One server without ties is a concave program. Otherwise, if R - T > 2, solutions are looked for by damped Newton steps
from several starts.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ..responses._response import respond
from ._equations import bought, newton


@compiled
def _log_prices(part, scaled, floor):  # type: ignore[no-untyped-def]
    """w (rows,) of prices measured from the middles, at least a part `floor` of the largest."""
    w, most = np.empty(len(scaled)), scaled.max()
    for r in range(len(w)):
        w[r] = np.log(max(scaled[r], floor * most)) / part.alpha + part.middle[r]
    return w


@compiled
def _ties(part):  # type: ignore[no-untyped-def]
    """Ties as linear equations in prices measured from the middles, and in y: (ties, rows) twice."""
    pairs, rows = part.log_use.shape
    ties = pairs - len(part.first)
    of_prices, of_y, k = np.zeros((ties, rows)), np.zeros((ties, rows)), 0
    for p in range(pairs):
        home = part.first[part.user[p]]
        if p == home:
            continue
        top = -np.inf
        for r in range(rows):
            for q in (p, home):
                if part.log_use[q, r] > -np.inf:
                    top = max(top, part.log_use[q, r] - part.alpha * (part.gain[q] - part.middle[r]))
        for r in range(rows):
            for q, sign in ((p, 1.0), (home, -1.0)):
                if part.log_use[q, r] > -np.inf:
                    each = part.log_use[q, r] - part.alpha * (part.gain[q] - part.middle[r]) - top
                    of_prices[k, r] += sign * np.exp(each)
            of_y[k, r] = part.per_task[p, r] - part.per_task[home, r]
        of_prices[k] /= np.abs(of_prices[k]).max()
        of_y[k] /= max(np.abs(of_y[k]).max(), 1e-300)
        k += 1
    return of_prices, of_y


@compiled
def _null(matrix):  # type: ignore[no-untyped-def]
    """An orthonormal basis of the null space, (columns, its dimension)."""
    rows, columns = matrix.shape
    if rows == 0:
        return np.eye(columns)
    _, sizes, right = np.linalg.svd(matrix, full_matrices=True)
    rank = 0
    for size in sizes:
        rank += size > 1e-10 * sizes[0]
    return np.ascontiguousarray(right[rank:].T)


@compiled
def _ray(part, basis, prices, total, found, count):  # type: ignore[no-untyped-def]
    """R - T = 1: the null vector, to scale; how many solutions there are now."""
    vector = prices[:, 0] if prices[:, 0].sum() > 0 else -prices[:, 0]
    if vector.min() < -1e-12 * vector.max():
        return count
    weights, floor = np.empty(1), 1e-15
    for _ in range(6 if vector.min() < 1e-13 * vector.max() else 1):
        w = _log_prices(part, vector, floor)
        bought(part, basis, w, total, weights)
        ratio = weights[0] / basis[:, 0].sum()
        if ratio > 0 and np.isfinite(ratio):
            w += np.log(ratio)
            count = _kept(part, basis, w, total, found, count)
        floor *= 1e-6
    return count


@compiled
def _kept(part, basis, w, total, found, count):  # type: ignore[no-untyped-def]
    """Newton's method from w, and its solution among the others, if it is new; how many there are now."""
    if count == len(found) or not newton(part, basis, w, total):
        return count
    for k in range(count):
        if np.abs(found[k] - w).max() < 1e-8:
            return count
    found[count] = w
    return count + 1


@compiled
def _segment(part, basis, prices, bounds, total, found):  # type: ignore[no-untyped-def]
    """R - T = 2: the roots of one function on a segment of prices, all cells of a grid; how many solutions."""
    ends, extreme = 0, np.empty((2, prices.shape[0]))
    best = 0.0
    for a in range(len(bounds)):
        for sign in (1.0, -1.0):
            ray = np.array([sign * bounds[a, 1], -sign * bounds[a, 0]])
            size = np.sqrt(ray[0] ** 2 + ray[1] ** 2)
            if size < 1e-14 or (bounds @ ray).min() < -1e-9 * size:
                continue
            vector = np.maximum(prices @ (ray / size), 0.0)
            if ends == 0:
                extreme[0], ends = vector, 1
            elif np.abs(vector - extreme[0]).max() > max(best, 1e-11):
                best = np.abs(vector - extreme[0]).max()
                extreme[1], ends = vector, 2
    if ends < 2:
        return 0
    weights, count, low, before = np.empty(2), 0, 0.0, 0.0
    b0, b1 = basis[:, 0].sum(), basis[:, 1].sum()
    for k in range(145):
        u = k / 2 - 36.0  # log t/(1 - t)
        here = _off(part, basis, extreme, u, total, weights, b0, b1)
        if k > 0 and before * here <= 0 and before != 0:
            left, right, at_left = low, u, before
            for _ in range(60):
                middle = (left + right) / 2
                value = _off(part, basis, extreme, middle, total, weights, b0, b1)
                if value * at_left > 0:
                    left, at_left = middle, value
                else:
                    right = middle
            _off(part, basis, extreme, right, total, weights, b0, b1)
            if weights[0] * b0 + weights[1] * b1 > 0:
                t = 1 / (1 + np.exp(-right))
                w = _log_prices(part, (1 - t) * extreme[0] + t * extreme[1], 1e-15)
                w += np.log((weights[0] * b0 + weights[1] * b1) / (b0 * b0 + b1 * b1))
                count = _kept(part, basis, w, total, found, count)
        low, before = u, here
    return count


@compiled
def _off(part, basis, extreme, u, total, weights, b0, b1):  # type: ignore[no-untyped-def]
    """The function of t whose roots are looked for."""
    t = 1 / (1 + np.exp(-u))
    w = _log_prices(part, (1 - t) * extreme[0] + t * extreme[1], 1e-15)
    bought(part, basis, w, total, weights)
    return (weights[0] * b1 - weights[1] * b0) / (abs(weights[0]) + abs(weights[1]))


@compiled
def _response(part, basis, start, total, found):  # type: ignore[no-untyped-def]
    """No tie, one server: a concave program, whose answer is one if it has all tasks and prices; how many."""
    pairs = len(part.user)
    w, tasks = _log_prices(part, start, 1e-15), np.empty(pairs)
    none, room = np.zeros(pairs), np.full(pairs, np.inf)
    respond(part.alpha, part.gain, part.per_task, np.exp(part.log_use), none, room, w, tasks)
    if not np.isfinite(w.sum()) or tasks.min() <= 0:
        return 0
    return _kept(part, basis, w, total, found, 0)


@compiled
def roots(part, start, bounds, found):  # type: ignore[no-untyped-def]
    """Fill log level prices (solutions, rows) of a component; how many, and whether they were searched for.

    `start` (rows,) are prices from the middles in the cell, which is `bounds @ prices >= 0` (conditions, rows).
    """
    rows = len(start)
    of_prices, of_y = _ties(part)
    free = rows - len(of_prices)
    prices, basis = _null(of_prices), _null(of_y)
    total = np.empty(len(part.first))
    if basis.shape[1] > free:  # splits are not unique: those with fewer pairs are in other cells
        return 0, False
    if prices.shape[1] == 1 and free == 1:
        return _ray(part, basis, prices, total, found, 0), False
    if prices.shape[1] == 2 and free == 2 and rows > 2:
        return _segment(part, basis, prices, bounds @ prices, total, found), False
    if len(of_prices) == 0:
        return _response(part, basis, start, total, found), False
    count = 0
    for k in range(12):
        w, weights = _log_prices(part, start, 1e-15), np.empty(basis.shape[1])
        for r in range(rows):
            if k > 0:
                w[r] += 2 * ((k * 0.6180339887 * (r + 1) + 0.7548776662 * r) % 1.0) - 1
        bought(part, basis, w, total, weights)
        use = np.zeros(rows)
        for n in range(len(total)):
            use += part.per_task[part.first[n]] * total[n]
        w += np.log(max(use.sum() / rows, 1e-300))
        count = _kept(part, basis, w, total, found, count)
    return count, True
