"""Compiled loops of games: everything that is done once per pair (user, server)."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled


@compiled
def price(start, server, use, log_price, power, log_gain, log_level, slack, share, cost):  # type: ignore[no-untyped-def]
    """Per pair: true slack `p^power / level - 1`, price shares, and `log p` of all of the server, `p = sum_r D e^y`.

    `log_gain` (pairs,) is `log(phi gamma)`, `log_level` (users,); `power` the pair (kappa/alpha, kappa).
    """
    servers, size = log_price.shape
    top = np.full(servers, -np.inf)
    scaled = np.empty((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], log_price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(log_price[i, r] - top[i])
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            i = server[k]
            total = 0.0
            for r in range(size):
                share[k, r] = use[k, r] * scaled[i, r]
                total += share[k, r]
            if total > 1e-200:
                cost[k] = np.log(total) + top[i]
                for r in range(size):
                    share[k, r] /= total
            else:  # it needs only resources that are next to free here
                most = -np.inf
                for r in range(size):
                    if use[k, r] > 0:
                        most = max(most, np.log(use[k, r]) + log_price[i, r])
                total = 0.0
                for r in range(size):
                    share[k, r] = np.exp(np.log(use[k, r]) + log_price[i, r] - most) if use[k, r] > 0 else 0.0
                    total += share[k, r]
                cost[k] = most + np.log(total)
                for r in range(size):
                    share[k, r] /= total
            ratio = power[0] * cost[k] - power[1] * (log_gain[k] - log_level[n])
            slack[k] = np.expm1(min(max(ratio, -50.0), 60.0))


@compiled
def error(start, tasks, total, true, power, log_level, limit, row, used, parts):  # type: ignore[no-untyped-def]
    """The largest error, relative in tasks: misplaced, missing, priced and idle, or beyond a capacity.

    See `certificates.game`. A user's level exceeds that of its tasks where a limit holds them down.
    """
    worst = 0.0
    for n in range(len(start) - 1):
        above, room, whole = log_level[n] - np.log(total[n]), limit[n] / total[n] - 1, 0.0
        for k in range(start[n], start[n + 1]):
            level = np.log1p(max(true[k], -1 + 1e-20)) / power - above
            worst = max(worst, min(-level, room) if level < 0 else tasks[k] / total[n] * level)
            whole += tasks[k]
        worst = max(worst, abs(whole / total[n] - 1))
        if not np.isfinite(whole):
            return np.inf
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            if row[i, r]:
                worst = max(worst, (1 - used[i, r]) * parts[i, r], used[i, r] - 1)
    return worst


@compiled
def largest_parts(start, server, share, result):  # type: ignore[no-untyped-def]
    """The largest price share of each resource over the pairs of its server, (servers, resources)."""
    for k in range(start[-1]):
        i = server[k]
        for r in range(share.shape[1]):
            result[i, r] = max(result[i, r], share[k, r])
