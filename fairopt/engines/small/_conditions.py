"""Compiled: the optimality conditions of one small problem at finite alpha, global and game alike.

Unknowns are fractions z of monopoly tasks of the usable pairs (user, server), and level prices v of rows: whole
capacities, and limits of users who could run more. With `A = max(alpha, 1)`, in levels
(`docs/algorithms/small-interior-point.md`),

    s_p = (alpha log x_n + log sum_r cost_pr v_r^A) / A - gain_p >= 0,   complementary to z_p >= 0,
    w_r = 1 - sum_p use_pr z_p >= 0,                                     complementary to v_r >= 0.

`exp(A gain) = gamma dF/dx` at one task. Of a capacity cost and use are `D`. A limit is used by `gamma/limit`, and its
price makes a task dearer in proportion to what it is worth on the server: in a global program that is the limit's
price, in the game one of its generalised equilibria. Global programs are games in which a task is worth the same
everywhere, as in `EquilibriumSystem.of`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from .options import BINDS


class Conditions(NamedTuple):
    """The pairs and rows of a cell; the last entry of the axis of resources is the user's limit."""

    power: float  # A
    norm: float  # what stands for A in the sum over rows, A at last
    ratio: float  # alpha/A
    user: np.ndarray  # (pairs,)
    server: np.ndarray  # (pairs,)
    size: np.ndarray  # (pairs,), gamma in units of the user's largest
    gain: np.ndarray  # (pairs,)
    at: np.ndarray  # (pairs, resources + 1), the row, -1: none
    cost: np.ndarray  # (pairs, resources + 1)
    use: np.ndarray  # (pairs, resources + 1)
    row: np.ndarray  # (servers, resources), the number of the row, -1: none
    rows: int


@compiled
def conditions(q):  # type: ignore[no-untyped-def]
    """Those of a cell."""
    users, servers, resources = q.use.shape
    power = max(q.alpha, 1.0)
    pairs = np.count_nonzero(q.gamma > 0)
    user, server = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    size, gain = np.empty(pairs), np.empty(pairs)
    at = np.full((pairs, resources + 1), -1)
    cost, use = np.zeros((pairs, resources + 1)), np.zeros((pairs, resources + 1))
    row, rows = np.full((servers, resources), -1), 0
    for i in range(servers):
        for r in range(resources):
            if q.row[i, r]:
                row[i, r] = rows
                rows += 1
    p = 0
    for n in range(users):
        first, most, top, reach = p, q.gamma[n].max(), -np.inf, q.gamma[n].sum()
        for i in range(servers):
            if q.gamma[n, i] > 0:
                user[p], server[p], size[p] = n, i, q.gamma[n, i] / most
                at[p, :resources] = row[i]
                cost[p, :resources] = q.use[n, i]
                use[p, :resources] = q.use[n, i]
                log_value = q.alpha * np.log(q.weight[n] / most) + np.log(q.gamma[n, i])
                log_value += 0.0 if q.alpha == 1 else (1 - q.alpha) * np.log(q.share[n, i])
                gain[p] = log_value / power
                top = max(top, gain[p])
                p += 1
        if p > first and q.limit[n] < reach * (1 + BINDS):
            for j in range(first, p):
                at[j, resources], use[j, resources] = rows, q.gamma[n, server[j]] / q.limit[n]
                cost[j, resources] = np.exp(power * (gain[j] - top))
            rows += 1
    return Conditions(power, power, q.alpha / power, user, server, size, gain, at, cost, use, row, rows)


@compiled
def softened(c, norm):  # type: ignore[no-untyped-def]
    """The same with another exponent in the sum over rows: a smaller one sees rows that are dominated by others."""
    return Conditions(c.power, norm, c.ratio, c.user, c.server, c.size, c.gain, c.at, c.cost, c.use, c.row, c.rows)


@compiled
def totals(c, z, x):  # type: ignore[no-untyped-def]
    """Fill x (users,): tasks in units of the largest gamma."""
    x[:] = 0.0
    for p in range(len(z)):
        x[c.user[p]] += c.size[p] * z[p]


@compiled
def slacks(c, z, v, x, share, slack):  # type: ignore[no-untyped-def]
    """Fill x, the slacks (pairs,) and the part of each row in what a pair pays, (pairs, resources + 1)."""
    totals(c, z, x)
    log_price, level = np.empty(c.rows), np.empty(len(x))
    for k in range(c.rows):
        log_price[k] = np.log(v[k]) if v[k] > 0 else -np.inf
    for n in range(len(x)):
        level[n] = c.ratio * np.log(x[n]) if x[n] > 0 else -np.inf
    for p in range(len(z)):
        top, whole = -np.inf, 0.0
        for r in range(c.at.shape[1]):
            if c.cost[p, r] > 0:
                top = max(top, log_price[c.at[p, r]])
        for r in range(c.at.shape[1]):
            share[p, r] = 0.0
            if c.cost[p, r] > 0:
                below = log_price[c.at[p, r]] - top
                share[p, r] = c.cost[p, r] * (np.exp(c.norm * below) if below < 0 else 1.0)
            whole += share[p, r]
        for r in range(c.at.shape[1]):
            share[p, r] /= whole
        slack[p] = level[c.user[p]] + top + np.log(whole) / c.norm - c.gain[p]


@compiled
def jacobian(c, z, x, share, place, matrix):  # type: ignore[no-untyped-def]
    """Fill the derivatives of slacks and use by relative changes of z and v, where their `place` is not -1.

    `place` (pairs + rows,) is the number of a pair's or row's equation and unknown in the matrix.
    """
    pairs = len(z)
    matrix[:] = 0.0
    for p in range(pairs):
        a = place[p]
        if a < 0:
            continue
        j = p  # the pairs of a user stand together
        while j > 0 and c.user[j - 1] == c.user[p]:
            j -= 1
        while j < pairs and c.user[j] == c.user[p]:
            if place[j] >= 0:
                matrix[a, place[j]] = c.ratio * c.size[j] * z[j] / x[c.user[p]]
            j += 1
        for r in range(c.at.shape[1]):
            if c.use[p, r] > 0:
                b = place[pairs + c.at[p, r]]
                if b >= 0:
                    matrix[a, b] = share[p, r]
                    matrix[b, a] = c.use[p, r] * z[p]


@compiled
def allocation(q, c, z, tasks):  # type: ignore[no-untyped-def]
    """Fill tasks (users, servers)."""
    tasks[:] = 0.0
    for p in range(len(z)):
        tasks[c.user[p], c.server[p]] = z[p] * q.gamma[c.user[p], c.server[p]]


@compiled
def log_prices(c, v, log_rows):  # type: ignore[no-untyped-def]
    """Fill the log prices of whole capacities (servers, resources), -inf for none."""
    for i in range(c.row.shape[0]):
        for r in range(c.row.shape[1]):
            known = c.row[i, r] >= 0 and v[c.row[i, r]] > 0
            log_rows[i, r] = c.power * np.log(v[c.row[i, r]]) if known else -np.inf
