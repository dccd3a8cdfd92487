"""Compiled loops of games: everything that is done once per pair (user, server)."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled

#: Costs below this, relative to the server's dearest resource, are computed in logarithms.
_TINY = 1e-200


@compiled
def exploitability(  # type: ignore[no-untyped-def] # noqa: C901 - one pass over pairs
    start, server, use, tasks, log_gain, limit, log_price, alpha, power, row, used
):
    """The largest error, relative in tasks: misplaced, priced and idle, or beyond a capacity; see `certificates.game`.

    `log_price` (servers, resources) is alpha log v, `log_gain` (pairs,) `log(phi gamma)`. Of a pair that pays less than
    its user would, as one at its limit may, prices count less, in this `power`.
    """
    servers, size = log_price.shape
    top, scaled, parts = np.full(servers, -np.inf), np.empty((servers, size)), np.zeros((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], log_price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(log_price[i, r] - top[i])
    share, worst = np.empty(size), 0.0
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += tasks[k]
        if not np.isfinite(total):
            return np.inf
        for k in range(start[n], start[n + 1]):
            i, above, whole = server[k], top[server[k]], 0.0
            for r in range(size):
                share[r] = use[k, r] * scaled[i, r]
                whole += share[r]
            if not whole > _TINY:  # it needs only resources that are next to free here
                above, whole = -np.inf, 0.0
                for r in range(size):
                    if use[k, r] > 0:
                        above = max(above, np.log(use[k, r]) + log_price[i, r])
                for r in range(size):
                    share[r] = np.exp(np.log(use[k, r]) + log_price[i, r] - above) if use[k, r] > 0 else 0.0
                    whole += share[r]
            level = (above + np.log(whole)) / alpha - log_gain[k] + np.log(total)
            worst = max(worst, min(-level, limit[n] / total - 1) if level < 0 else tasks[k] / total * level)
            part = np.exp(power * min(level, 0.0)) / whole
            for r in range(size):
                parts[i, r] = max(parts[i, r], share[r] * part)
    for i in range(servers):
        for r in range(size):
            if row[i, r]:
                worst = max(worst, (1 - used[i, r]) * parts[i, r], used[i, r] - 1)
    return worst
