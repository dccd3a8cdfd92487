"""Compiled: the index of an equilibrium of a small game, from tasks and prices; see `index` for what it is."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...engines.small._dense import factored, solved
from .index_options import OPTIONS

#: numba reads no dataclass.
_PART, _BINDS, _REGULAR, _SINGULAR = OPTIONS.part, OPTIONS.binds, OPTIONS.regular, OPTIONS.singular
_ALL, _PROBES = OPTIONS.all, OPTIONS.probes


@compiled
def _log_costs(alpha, demand, gamma, weight, log_prices, total, slack, share):  # type: ignore[no-untyped-def]
    """Fill slacks of levels (users, servers), NaN where not usable, and parts of rows in prices."""
    for n in range(len(demand)):
        for i in range(gamma.shape[1]):
            slack[n, i] = np.nan
            share[n, i] = 0.0
            if gamma[n, i] <= 0 or total[n] <= 0:
                continue
            top, whole = -np.inf, 0.0
            for r in range(demand.shape[1]):
                if demand[n, r] > 0:
                    top = max(top, np.log(demand[n, r]) + log_prices[i, r])
            if top == -np.inf:
                slack[n, i] = -np.inf
                continue
            for r in range(demand.shape[1]):
                if demand[n, r] > 0:
                    share[n, i, r] = np.exp(np.log(demand[n, r]) + log_prices[i, r] - top)
                    whole += share[n, i, r]
            for r in range(demand.shape[1]):
                share[n, i, r] /= whole
            log_value = alpha * (np.log(weight[n]) - np.log(total[n])) + (alpha - 1) * np.log(gamma[n, i])
            slack[n, i] = (top + np.log(whole) - log_value) / alpha


@compiled
def _matrix(active, tasks, total, share, use, row, rows):  # type: ignore[no-untyped-def]
    """The derivative for active pairs (pairs, 2) and rows, numbered by `row`; relative units, rows negative."""
    pairs = len(active)
    matrix, largest = np.zeros((pairs + rows, pairs + rows)), np.zeros(rows)
    for p in range(pairs):
        for r in range(row.shape[1]):
            k = row[active[p, 1], r]
            if k >= 0:
                largest[k] = max(largest[k], share[active[p, 0], active[p, 1], r])
    for p in range(pairs):
        n, i = active[p]
        for q in range(pairs):
            if active[q, 0] == n:
                matrix[p, q] = 1.0
        for r in range(row.shape[1]):
            k = row[i, r]
            if k >= 0:
                matrix[p, pairs + k] = share[n, i, r] / largest[k]
                matrix[pairs + k, p] = -use[n, i, r] * total[n]
    for k in range(pairs + rows):
        matrix[k, k] += _REGULAR
    return matrix


@compiled
def _sign(matrix, users):  # type: ignore[no-untyped-def]
    """That of the determinant; 0 where sums of unknowns by user (`users` of the first ones) move without bound."""
    size = len(matrix)
    order, rhs, step = np.empty(size, np.int64), np.zeros(size), np.empty(size)
    if factored(matrix, order) == 0:
        return 0
    sign = 1
    for k in range(size):
        sign *= 1 if matrix[k, k] > 0 else -1
    seen = np.zeros(size, np.bool_)
    for k in range(size):
        length, at = 0, k
        while not seen[at]:
            seen[at] = True
            at, length = order[at], length + 1
        sign *= -1 if length > 0 and length % 2 == 0 else 1
    moved = np.zeros(users.max() + 1)
    for probe in range(size if size <= _ALL else _PROBES):
        for k in range(size):
            if size <= _ALL:
                rhs[k] = 1.0 if k == probe else 0.0
            else:
                rhs[k] = 1.0 if ((k + 1) * (2 * probe + 3) * 0.6180339887) % 1.0 < 0.5 else -1.0
        solved(matrix, order, rhs, step)
        moved[:] = 0.0
        for p in range(len(users)):
            moved[users[p]] += step[p]
        if not np.abs(moved).max() < _SINGULAR:
            return 0
    return sign


@compiled
def index(alpha, capacity, demand, gamma, weight, limit, tasks, log_prices):  # type: ignore[no-untyped-def]
    """+1, -1 or 0; 2 where a limit binds. Log prices per resource unit, on the scale of marginal welfare."""
    users, servers, resources = len(demand), len(capacity), demand.shape[1]
    total = np.empty(users)
    for n in range(users):
        total[n] = tasks[n].sum()
        if total[n] >= limit[n] * (1 - _BINDS) and limit[n] > 0:
            return 2
    slack, share = np.empty((users, servers)), np.zeros((users, servers, resources))
    _log_costs(alpha, demand, gamma, weight, log_prices, total, slack, share)
    active, pairs = np.empty((users * servers, 2), np.int64), 0
    for n in range(users):
        best = tasks[n].max()
        for i in range(servers):
            if best > 0 and (tasks[n, i] > total[n] * max(slack[n, i], _PART) or tasks[n, i] == best):
                active[pairs, 0], active[pairs, 1] = n, i
                pairs += 1
    active = active[:pairs]
    use, row, rows = np.zeros((users, servers, resources)), np.full((servers, resources), -1), 0
    for i in range(servers):
        for r in range(resources):
            part, used = 0.0, 0.0
            for p in range(pairs):
                if active[p, 1] == i:
                    n = active[p, 0]
                    part = max(part, share[n, i, r])
                    used += tasks[n, i] * demand[n, r] / capacity[i, r] if demand[n, r] > 0 else 0.0
            if part > max(1 - used, 0.0):
                row[i, r] = rows
                rows += 1
                for n in range(users):
                    use[n, i, r] = demand[n, r] / capacity[i, r]
    if pairs == 0:
        return 1
    return _sign(_matrix(active, tasks, total, share, use, row, rows), active[:, 0].copy())
