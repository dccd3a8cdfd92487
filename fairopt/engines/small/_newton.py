"""Compiled: the linear system of a Newton step of the interior point, without the pairs that hardly count.

With relative changes a of fractions and b of prices, t the part of a pair in its user's tasks, Y the sum of t a,

    s_p a_p + ratio Y_n + sum_r share_pr b_r = f_p,      sum_p use_pr z_p a_p - w_r b_r = g_r.

Pairs whose part t is below their slack s are eliminated: that divides by nothing small, so that ties, pairs with more
tasks than prices determine, cost no digits. With `y_n = 1 / (1 + ratio sum t/s)` over them

    Y_n = y_n (sum_kept t a + sum t/s (f - share b)),    a_p = (f_p - ratio Y_n - share_p b) / s_p.

What stays, kept pairs and rows, is solved densely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ._conditions import jacobian
from ._dense import factored, solved


class Factors(NamedTuple):
    """The system at one point."""

    z: np.ndarray
    s: np.ndarray
    share: np.ndarray  # (pairs, resources + 1), what a relative change of a price adds to the log of a cost
    place: np.ndarray  # (pairs + rows,), the number of what stays, -1: eliminated
    part: np.ndarray  # (pairs,), t
    shrink: np.ndarray  # (users,), y
    bought: np.ndarray  # (users, rows), sum t/s share over eliminated pairs
    used: np.ndarray  # (users, rows), sum use z/s over them
    matrix: np.ndarray
    order: np.ndarray
    sound: bool


@compiled
def _eliminated(c, z, s, part, place, share, stay, shrink, bought, used, matrix):  # type: ignore[no-untyped-def]
    """Fill what pairs that go leave behind, by user, and the rows' part of the matrix with their products."""
    for p in range(len(z)):
        n = c.user[p]
        if place[p] >= 0:
            continue
        shrink[n] += c.ratio * part[p] / s[p]
        for r in range(c.at.shape[1]):
            if c.use[p, r] > 0:
                k, each = c.at[p, r], c.use[p, r] * z[p] / s[p]
                bought[n, k] += part[p] / s[p] * share[p, r]
                used[n, k] += each
                for q in range(c.at.shape[1]):
                    if c.use[p, q] > 0:
                        matrix[stay + k, stay + c.at[p, q]] -= each * share[p, q]
    for n in range(len(shrink)):
        shrink[n] = 1 / shrink[n]
        for k in range(c.rows):
            if used[n, k] > 0:
                for m in range(c.rows):
                    matrix[stay + k, stay + m] += c.ratio * shrink[n] * used[n, k] * bought[n, m]


@compiled
def factors(c, z, s, w, x, share):  # type: ignore[no-untyped-def]
    """Of the system at fractions z, slacks s, idle parts w, user tasks x and shares (pairs, resources + 1) of costs."""
    pairs, users = len(z), len(x)
    place, part, stay = np.full(pairs + c.rows, -1), np.empty(pairs), 0
    shrink, bought, used = np.ones(users), np.zeros((users, c.rows)), np.zeros((users, c.rows))
    for p in range(pairs):
        part[p] = c.size[p] * z[p] / x[c.user[p]]
        if part[p] > s[p]:
            place[p] = stay
            stay += 1
    matrix, order = np.empty((stay + c.rows, stay + c.rows)), np.empty(stay + c.rows, np.int64)
    for k in range(c.rows):
        place[pairs + k] = stay + k
    jacobian(c, z, x, share, place, matrix)
    for k in range(c.rows):
        matrix[stay + k, stay + k] = -w[k]
    _eliminated(c, z, s, part, place, share, stay, shrink, bought, used, matrix)
    for p in range(pairs):
        a, n = place[p], c.user[p]
        if a >= 0:
            for m in range(stay):
                matrix[a, m] *= shrink[n]
            matrix[a, a] += s[p]
            for k in range(c.rows):
                matrix[a, stay + k] -= c.ratio * shrink[n] * bought[n, k]
                matrix[stay + k, a] -= c.ratio * shrink[n] * used[n, k] * part[p]
    sound = factored(matrix, order) > 0
    return Factors(z, s, share, place, part, shrink, bought, used, matrix, order, sound)


@compiled
def _left(c, at, f, g, whole):  # type: ignore[no-untyped-def]
    """The right-hand side of what stays; `whole` (users,) becomes what pairs that go add to Y."""
    stay = len(at.matrix) - c.rows
    rhs = np.empty(len(at.matrix))
    for p in range(len(f)):
        if at.place[p] < 0:
            whole[c.user[p]] += at.part[p] / at.s[p] * f[p]
    rhs[stay:] = g
    for n in range(len(whole)):
        whole[n] *= at.shrink[n]
        for k in range(c.rows):
            rhs[stay + k] += c.ratio * at.used[n, k] * whole[n]
    for p in range(len(f)):
        if at.place[p] >= 0:
            rhs[at.place[p]] = f[p] - c.ratio * whole[c.user[p]]
        else:
            for r in range(c.at.shape[1]):
                if c.use[p, r] > 0:
                    rhs[stay + c.at[p, r]] -= c.use[p, r] * at.z[p] / at.s[p] * f[p]
    return rhs


@compiled
def direction(c, at, f, g, a, b):  # type: ignore[no-untyped-def]
    """Fill the relative changes a (pairs,) and b (rows,) for right-hand sides f (pairs,) and g (rows,)."""
    whole, found = np.zeros(len(at.shrink)), np.empty(len(at.matrix))
    solved(at.matrix, at.order, _left(c, at, f, g, whole), found)
    b[:] = found[len(at.matrix) - c.rows :]
    for n in range(len(whole)):
        for k in range(c.rows):
            whole[n] -= at.shrink[n] * at.bought[n, k] * b[k]
    for p in range(len(f)):
        if at.place[p] >= 0:
            a[p] = found[at.place[p]]
            whole[c.user[p]] += at.shrink[c.user[p]] * at.part[p] * a[p]
    for p in range(len(f)):
        if at.place[p] < 0:
            due = f[p] - c.ratio * whole[c.user[p]]
            for r in range(c.at.shape[1]):
                if c.use[p, r] > 0:
                    due -= at.share[p, r] * b[c.at[p, r]]
            a[p] = due / at.s[p]
