"""Compiled: the componentwise backward error of one small problem, by the definition in `certificates.backward`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ...certificates import backward
from ._marginals import log_marginals, log_prices_per_task

#: Levels tau: fine ones, and coarse ones for bad answers.
_FINE, _COARSE, _NEAR = backward.OPTIONS.levels, backward.OPTIONS.coarse, backward.OPTIONS.near


class Point(NamedTuple):
    """Tasks and prices that are judged, and what follows from them for users and rows."""

    marginal: np.ndarray  # (users, servers), log
    tasks: np.ndarray  # (users, servers)
    totals: np.ndarray  # (users,)
    room: np.ndarray  # (users,), 1 - x_n/q_n
    idle: np.ndarray  # (servers, resources), infinite where nobody needs the row
    log_rows: np.ndarray  # (servers, resources)


@compiled
def _shift(high, low):  # type: ignore[no-untyped-def]
    """The shift that makes the larger of `high` and `-low` least; infinite ones are unknown."""
    if high == -np.inf and low == np.inf:
        return 0.0
    high = low if high == -np.inf else high
    low = high if low == np.inf else low
    return (high + low) / 2


@compiled
def _at(q, point, tau, fitted):  # type: ignore[no-untyped-def]
    """The error at one level tau, prices in the scale that fits best or as they are."""
    users, servers = q.gamma.shape
    resources = q.use.shape[2]
    live, price = np.zeros(point.idle.shape, np.bool_), np.empty(q.gamma.shape)
    worst = 0.0
    for i in range(servers):
        for r in range(resources):
            if point.idle[i, r] == np.inf:  # needed by nobody
                continue
            live[i, r] = point.idle[i, r] <= tau and point.log_rows[i, r] > -np.inf
            worst = max(worst, abs(point.idle[i, r]) if live[i, r] else -point.idle[i, r])
    log_prices_per_task(q, point.log_rows, live, price)
    dropped = np.zeros(q.gamma.shape, np.bool_)
    if q.game:
        for i in range(servers):
            worst = max(worst, _of_server(q, point, i, price, tau, fitted, dropped))
    else:
        worst = max(worst, _of_users(q, point, price, tau, fitted, dropped))
    for n in range(users):
        lost = 0.0
        for i in range(servers):
            if dropped[n, i]:
                lost += point.tasks[n, i] / point.totals[n]
        worst = max(worst, lost)
    for i in range(servers):
        for r in range(resources):
            lost = 0.0
            for n in range(users):
                if live[i, r] and dropped[n, i]:
                    lost += q.use[n, i, r] * point.tasks[n, i] / q.gamma[n, i]
            worst = max(worst, lost)
    return worst


@compiled
def _of_users(q, point, price, tau, fitted, dropped):  # type: ignore[no-untyped-def]
    """Global: the largest error of users and of kept pairs; fills `dropped`."""
    users, servers = q.gamma.shape
    off, least = np.full(users, np.nan), np.full(users, np.inf)
    high, low = -np.inf, np.inf
    for n in range(users):
        if point.totals[n] <= 0:
            continue
        first = -1
        for i in range(servers):
            if q.gamma[n, i] > 0:
                first = i
                least[n] = min(least[n], price[n, i])
        off[n] = point.marginal[n, first] - least[n]
        if np.isfinite(off[n]):
            high = max(high, off[n]) if point.room[n] > tau else high
            low = min(low, off[n]) if tau < 1 else low
    shift = _shift(high, low) if fitted else 0.0
    worst = 0.0
    for n in range(users):
        if point.totals[n] <= 0:
            continue
        error = (off[n] - shift) / max(q.alpha, 1.0)
        if error > 0:
            worst = max(worst, min(error, point.room[n]))
        elif tau < 1:
            worst = max(worst, -error)
        for i in range(servers):
            if point.tasks[n, i] > 0:
                dear = price[n, i] - least[n] if price[n, i] > least[n] else 0.0
                if dear > tau or tau >= 1:  # at that level all tasks are in doubt
                    dropped[n, i] = True
                else:
                    worst = max(worst, dear)
    return worst


@compiled
def _of_server(q, point, i, price, tau, fitted, dropped):  # type: ignore[no-untyped-def]
    """The game: the largest error of the pairs of one server; fills `dropped`."""
    users = len(q.gamma)
    scale, shift, high, low = max(q.alpha, 1.0), 0.0, -np.inf, np.inf
    if fitted:
        for n in range(users):
            off = point.marginal[n, i] - price[n, i]
            if q.gamma[n, i] > 0 and np.isfinite(off) and point.room[n] > tau:
                high = max(high, off)
        for n in range(users):
            off = point.marginal[n, i] - price[n, i]
            if q.gamma[n, i] > 0 and np.isfinite(off):
                # Few tasks on a pair that is much too dear are dropped: they are not to move the others' prices.
                there = point.tasks[n, i] / point.totals[n] > max(tau, (high - off) / scale)
                low = min(low, off) if there else low
        shift = _shift(high, low)
    worst = 0.0
    for n in range(users):
        if q.gamma[n, i] <= 0:
            continue
        off = (point.marginal[n, i] - price[n, i] - shift) / scale
        if off > 0:
            worst = max(worst, min(off, point.room[n]))
        elif point.tasks[n, i] > 0:
            if -off > tau:
                dropped[n, i] = True
            else:
                worst = max(worst, -off)
    return worst


@compiled
def _point(q, tasks, log_rows):  # type: ignore[no-untyped-def]
    """What follows from tasks, and whether they are such that they can be judged at all."""
    users, servers = q.gamma.shape
    totals, room = np.zeros(users), np.full(users, np.inf)
    idle, marginal, possible = np.full(q.row.shape, np.inf), np.empty(q.gamma.shape), True
    for n in range(users):
        usable = q.gamma[n].max() > 0
        for i in range(servers):
            totals[n] += tasks[n, i] if q.gamma[n, i] > 0 else 0.0
        if usable and np.isfinite(q.limit[n]):
            room[n] = max(1 - totals[n] / q.limit[n], 0.0)
        possible &= not usable or totals[n] > 0
    for i in range(servers):
        for r in range(q.row.shape[1]):
            if q.row[i, r]:
                used = 0.0
                for n in range(users):
                    used += tasks[n, i] * q.demand[n, r]
                idle[i, r] = 1 - used / q.capacity[i, r]
    log_marginals(q, totals, marginal)
    for n in range(users):
        for i in range(servers):
            possible &= q.gamma[n, i] <= 0 or np.isfinite(marginal[n, i])
    return Point(marginal, tasks, totals, room, idle, log_rows), possible


@compiled
def backward_error(q, tasks, log_rows):  # type: ignore[no-untyped-def]
    """The error of tasks at the best of a few levels; log prices (servers, resources) of whole capacities, -inf: none.

    Users who can run nothing take no part.
    """
    point, possible = _point(q, tasks, log_rows)
    if not possible:
        return np.inf
    best = np.inf
    for tau in _FINE:
        if best <= tau or (tau < _FINE[0] and best > _NEAR):
            break
        best = _fitting(q, point, tau, best)
    for tau in _COARSE:
        if best <= tau:
            break
        best = _fitting(q, point, tau, best)
    return best


@compiled
def _fitting(q, point, tau, best):  # type: ignore[no-untyped-def]
    """The smaller of `best` and the error at one level, in the scale given or the one that fits best."""
    found = _at(q, point, tau, False)
    if not found <= tau:
        other = _at(q, point, tau, True)
        if other == other and not found <= other:
            found = other
    return found if found < best else best
