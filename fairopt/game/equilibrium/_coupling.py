"""Compiled loops of `coupling`: one pass over pairs (user, server) each.

Pairs whose part of a user's tasks is below e^-60, next to nothing in doubles, count as having none: where many users
meet few types of servers and temperatures are low, those are nearly all, and no logarithm is taken of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)

#: Parts of a user's tasks below e^-NOTHING are none.
_NOTHING = 60.0
#: Costs below this, relative to the server's dearest resource, are computed in logarithms.
_TINY = 1e-280


@_compile
def levels(start, server, use, log_gain, price, a, share, highest, short):  # type: ignore[no-untyped-def]
    """Price shares (pairs, resources), users' highest log levels, and by how much those of pairs are lower.

    `price` (servers, resources) is log v; the level of a pair is `log gain - log(sum_r D v^a)/a`.
    """
    servers, size = price.shape
    top, scaled = np.full(servers, -np.inf), np.empty((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], a * price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(a * price[i, r] - top[i])
    for n in range(len(start) - 1):
        highest[n] = -np.inf
        for k in range(start[n], start[n + 1]):
            i, whole, above = server[k], 0.0, top[server[k]]
            for r in range(size):
                share[k, r] = use[k, r] * scaled[i, r]
                whole += share[k, r]
            if not whole > _TINY:
                above, whole = -np.inf, 0.0
                for r in range(size):
                    if use[k, r] > 0:
                        above = max(above, np.log(use[k, r]) + a * price[i, r])
                for r in range(size):
                    share[k, r] = np.exp(np.log(use[k, r]) + a * price[i, r] - above) if use[k, r] > 0 else 0.0
                    whole += share[k, r]
            for r in range(size):
                share[k, r] /= whole
            short[k] = log_gain[k] - (above + np.log(whole)) / a
            highest[n] = max(highest[n], short[k])
        for k in range(start[n], start[n + 1]):
            short[k] -= highest[n]


@_compile
def carried(start, server, share, short, rise, a, tau, new_share, new_short):  # type: ignore[no-untyped-def]
    """Shares and levels where `a log v` is higher by `rise` (servers, resources): see `coupling`.

    Of pairs that have next to nothing a bound of the level is enough, and shares are not carried.
    """
    servers, size = rise.shape
    least, most = np.empty(servers), np.empty(servers)
    factor, growth = np.exp(rise), np.expm1(rise)
    for i in range(servers):
        least[i], most[i] = rise[i].min(), rise[i].max()
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k] - most[server[k]] / a)
        for k in range(start[n], start[n + 1]):
            i = server[k]
            bound = short[k] - least[i] / a
            if bound < best - _NOTHING * tau:
                new_short[k] = bound
                for r in range(size):
                    new_share[k, r] = share[k, r]
                continue
            grown, whole = 0.0, 0.0
            for r in range(size):
                grown += share[k, r] * growth[i, r]
                new_share[k, r] = share[k, r] * factor[i, r]
                whole += new_share[k, r]  # 1 + grown, without the subtraction where little is left
            for r in range(size):
                new_share[k, r] /= whole
            new_short[k] = short[k] - (np.log1p(grown) if abs(grown) < 0.5 else np.log(whole)) / a


@_compile
def choices(  # type: ignore[no-untyped-def]
    start, server, per_task, short, highest, log_limit, tau, part, choice, log_level, over, kept, tasks, used
):
    """Parts of users' tasks and what follows from them; fills all but the first seven, `used` is added to."""
    size = per_task.shape[1]
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k])
        total = 0.0
        for k in range(start[n], start[n + 1]):
            lower = (short[k] - best) / tau
            part[k] = np.exp(lower) if lower > -_NOTHING else 0.0
            total += part[k]
        choice[n] = best / tau + np.log(total)
        log_level[n] = highest[n] + tau * choice[n]
        # A limit q bends X below it: log X = -tau log(e^(-log level/tau) + q^(-1/tau)).
        over[n], kept[n], whole = -np.inf, 1.0, log_level[n]
        if log_limit[n] < np.inf:
            over[n] = (highest[n] - log_limit[n]) / tau + choice[n]
            kept[n] = 1 / (1 + np.exp(min(over[n], 700.0)))
            whole -= tau * (max(over[n], 0.0) + np.log1p(np.exp(-abs(over[n]))))
        whole = np.exp(whole) / total
        for k in range(start[n], start[n + 1]):
            tasks[k] = part[k] * whole
            part[k] /= total
            for r in range(size):
                used[server[k], r] += per_task[k, r] * tasks[k]


@_compile
def matrix(start, server, per_task, share, part, tasks, kept, full, tau, result):  # type: ignore[no-untyped-def]
    """Adds the derivatives of log use over log prices, (servers resources, servers resources), but for barriers."""
    size = per_task.shape[1]
    for n in range(len(start) - 1):
        choice = 1 / tau - kept[n]
        for k in range(start[n], start[n + 1]):
            if part[k] == 0:
                continue
            i = server[k]
            for r in range(size):
                answer = tasks[k] * per_task[k, r] / full[i, r]
                if answer == 0:
                    continue
                row = result[i * size + r]
                for s in range(size):
                    row[i * size + s] -= answer * share[k, s] / tau
                answer *= choice
                for j in range(start[n], start[n + 1]):
                    if part[j] > 0:
                        for s in range(size):
                            row[server[j] * size + s] += answer * part[j] * share[j, s]
