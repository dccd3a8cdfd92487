"""Compiled loops of games: everything that is done once per pair (user, server)."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled

#: Costs below this, relative to the server's dearest resource, are computed in logarithms.
_TINY = 1e-280


@compiled
def costs(server, use, log_gain, price, a, share, whole, level):  # type: ignore[no-untyped-def]
    """`D v^a` of the pairs (pairs, resources) over `e^above`, their sums, and `log gain - above/a`.

    `price` (servers, resources) is log v; above is that of the server's dearest resource, or of the pair's where sums
    would be too small for logarithms.
    """
    servers, size = price.shape
    top, scaled = np.full(servers, -np.inf), np.empty((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], a * price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(a * price[i, r] - top[i])
    for k in range(len(server)):
        i, above, total = server[k], top[server[k]], 0.0
        for r in range(size):
            share[k, r] = use[k, r] * scaled[i, r]
            total += share[k, r]
        if not total > _TINY:
            above, total = -np.inf, 0.0
            for r in range(size):
                if use[k, r] > 0:
                    above = max(above, np.log(use[k, r]) + a * price[i, r])
            for r in range(size):
                share[k, r] = np.exp(np.log(use[k, r]) + a * price[i, r] - above) if use[k, r] > 0 else 0.0
                total += share[k, r]
        whole[k] = total
        level[k] = log_gain[k] - above / a


@compiled
def exploitability(start, server, level, share, whole, tasks, limit, power, row, used):  # type: ignore[no-untyped-def]
    """The largest error, relative in tasks: misplaced, priced and idle, or beyond a capacity; see `certificates.game`.

    `level` (pairs,) is log, `share` (pairs, resources) of costs, over `whole`. Of a pair that pays less than its user
    would, as one at its limit may, prices count less, in this `power`.
    """
    worst, parts = 0.0, np.zeros(row.shape)
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += tasks[k]
        if not np.isfinite(total):
            return np.inf
        log_total = np.log(total)
        for k in range(start[n], start[n + 1]):
            above = log_total - level[k]
            worst = max(worst, min(-above, limit[n] / total - 1) if above < 0 else tasks[k] / total * above)
            part = (1.0 if above >= 0 else np.exp(power * above)) / whole[k]
            for r in range(row.shape[1]):
                parts[server[k], r] = max(parts[server[k], r], share[k, r] * part)
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            if row[i, r]:
                worst = max(worst, (1 - used[i, r]) * parts[i, r], used[i, r] - 1)
    return worst
