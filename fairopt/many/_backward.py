"""Compiled: the componentwise backward error of one small problem, by the definition in `certificates.backward`."""

from __future__ import annotations

import numpy as np

from ._scaled import compiled

#: Levels tau as in `certificates.backward`: fine ones, and coarse ones for bad answers.
_FINE = np.array([1e-6, 1e-9, 1e-12])
_COARSE = np.array([1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0])
_NEAR = 1e-4


@compiled
def log_marginals(alpha, weight, share, totals, result):  # type: ignore[no-untyped-def]
    """Fill `result` (users, servers) with `alpha log phi + (1 - alpha) log u - alpha log x_n`; u (users, servers)."""
    for n in range(len(totals)):
        for i in range(share.shape[1]):
            own = alpha * np.log(weight[n]) - alpha * np.log(totals[n])
            result[n, i] = own + (0.0 if alpha == 1 else (1 - alpha) * np.log(share[n, i]))


@compiled
def _log_prices(gamma, use, log_rows, live, result):  # type: ignore[no-untyped-def]
    """Fill `result` (users, servers) with `log sum_r lambda_ir d_nr`; -inf where nothing has a price."""
    resources = use.shape[2]
    for n in range(len(gamma)):
        for i in range(gamma.shape[1]):
            result[n, i] = -np.inf
            if gamma[n, i] <= 0:
                continue
            top = -np.inf
            for r in range(resources):
                if live[i, r] and use[n, i, r] > 0:
                    top = max(top, np.log(use[n, i, r]) + log_rows[i, r])
            if top == -np.inf:
                continue
            total = 0.0
            for r in range(resources):
                if live[i, r] and use[n, i, r] > 0:
                    total += np.exp(np.log(use[n, i, r]) + log_rows[i, r] - top)
            result[n, i] = top + np.log(total) - np.log(gamma[n, i])


@compiled
def _shift(high, low):  # type: ignore[no-untyped-def]
    """The shift that makes the larger of `high` and `-low` least; infinite ones are unknown."""
    if high == -np.inf and low == np.inf:
        return 0.0
    high = low if high == -np.inf else high
    low = high if low == np.inf else low
    return (high + low) / 2


@compiled
def _at(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, fitted):  # type: ignore[no-untyped-def]
    """The error at one level tau, prices in the scale that fits best or as they are."""
    users, servers = gamma.shape
    resources = use.shape[2]
    live, price = np.zeros(idle.shape, np.bool_), np.empty(gamma.shape)
    worst = 0.0
    for i in range(servers):
        for r in range(resources):
            if idle[i, r] == np.inf:  # needed by nobody
                continue
            live[i, r] = idle[i, r] <= tau and log_rows[i, r] > -np.inf
            worst = max(worst, abs(idle[i, r]) if live[i, r] else -idle[i, r])
    _log_prices(gamma, use, log_rows, live, price)
    dropped = np.zeros(gamma.shape, np.bool_)
    if game:
        for i in range(servers):
            worst = max(worst, _of_server(i, scale, gamma, marginal, price, tasks, totals, room, tau, fitted, dropped))
    else:
        worst = max(worst, _of_users(scale, gamma, marginal, price, tasks, totals, room, tau, fitted, dropped))
    for n in range(users):
        lost = 0.0
        for i in range(servers):
            if dropped[n, i]:
                lost += tasks[n, i] / totals[n]
        worst = max(worst, lost)
    for i in range(servers):
        for r in range(resources):
            lost = 0.0
            for n in range(users):
                if live[i, r] and dropped[n, i]:
                    lost += use[n, i, r] * tasks[n, i] / gamma[n, i]
            worst = max(worst, lost)
    return worst


@compiled
def _of_users(scale, gamma, marginal, price, tasks, totals, room, tau, fitted, dropped):  # type: ignore[no-untyped-def]
    """Global: the largest error of users and of kept pairs; fills `dropped`."""
    users, servers = gamma.shape
    off, least = np.full(users, np.nan), np.full(users, np.inf)
    high, low = -np.inf, np.inf
    for n in range(users):
        if totals[n] <= 0:
            continue
        first = -1
        for i in range(servers):
            if gamma[n, i] > 0:
                first = i
                least[n] = min(least[n], price[n, i])
        off[n] = marginal[n, first] - least[n]
        if np.isfinite(off[n]):
            high = max(high, off[n]) if room[n] > tau else high
            low = min(low, off[n])
    shift = _shift(high, low) if fitted else 0.0
    worst = 0.0
    for n in range(users):
        if totals[n] <= 0:
            continue
        error = (off[n] - shift) / scale
        worst = max(worst, min(error, room[n]) if error > 0 else -error)
        for i in range(servers):
            if tasks[n, i] > 0:
                dear = price[n, i] - least[n] if price[n, i] > least[n] else 0.0
                if dear > tau:
                    dropped[n, i] = True
                else:
                    worst = max(worst, dear)
    return worst


@compiled
def _of_server(i, scale, gamma, marginal, price, tasks, totals, room, tau, fitted, dropped):  # type: ignore[no-untyped-def]
    """The game: the largest error of the pairs of one server; fills `dropped`."""
    users = len(gamma)
    shift, high, low = 0.0, -np.inf, np.inf
    if fitted:
        for n in range(users):
            off = marginal[n, i] - price[n, i]
            if gamma[n, i] > 0 and np.isfinite(off) and room[n] > tau:
                high = max(high, off)
        for n in range(users):
            off = marginal[n, i] - price[n, i]
            if gamma[n, i] > 0 and np.isfinite(off) and tasks[n, i] / totals[n] > max(tau, (high - off) / scale):
                low = min(low, off)
        # A server where nothing wants more stays as its pairs with tasks have it.
        shift = _shift(high, low)
    worst = 0.0
    for n in range(users):
        if gamma[n, i] <= 0:
            continue
        off = (marginal[n, i] - price[n, i] - shift) / scale
        if off > 0:
            worst = max(worst, min(off, room[n]))
        elif tasks[n, i] > 0:
            if -off > tau:
                dropped[n, i] = True
            else:
                worst = max(worst, -off)
    return worst


@compiled
def backward_error(alpha, game, demand, capacity, gamma, use, row, limit, weight, share, tasks, log_rows):  # type: ignore[no-untyped-def]
    """The error at the best of a few levels; log prices (servers, resources) of whole capacities, -inf for none.

    `share` is (users, servers) for both scopes. Users who can run nothing take no part.
    """
    users, servers = gamma.shape
    totals, room = np.zeros(users), np.full(users, np.inf)
    idle, marginal = np.full(row.shape, np.inf), np.empty(gamma.shape)
    for n in range(users):
        usable = False
        for i in range(servers):
            usable |= gamma[n, i] > 0
            totals[n] += tasks[n, i] if gamma[n, i] > 0 else 0.0
        if usable and not totals[n] > 0:
            return np.inf
        if usable and np.isfinite(limit[n]):
            room[n] = max(1 - totals[n] / limit[n], 0.0)
    for i in range(servers):
        for r in range(row.shape[1]):
            if row[i, r]:
                used = 0.0
                for n in range(users):
                    used += tasks[n, i] * demand[n, r]
                idle[i, r] = 1 - used / capacity[i, r]
    log_marginals(alpha, weight, share, totals, marginal)
    scale, best = max(alpha, 1.0), np.inf
    for tau in _FINE:
        if best <= tau or (tau < _FINE[0] and best > _NEAR):
            break
        best = _fitting(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, best)
    for tau in _COARSE:
        if best <= tau:
            break
        best = _fitting(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, best)
    return best


@compiled
def _fitting(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, best):  # type: ignore[no-untyped-def]
    """The smaller of `best` and the error at one level, in the scale given or the one that fits best."""
    found = _at(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, False)
    if not found <= tau:
        other = _at(scale, game, gamma, use, marginal, tasks, totals, room, idle, log_rows, tau, True)
        if other == other and not found <= other:
            found = other
    return found if found < best else best
