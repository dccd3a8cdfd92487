"""Compiled loops of `psdsf`: smoothed choices of servers, and how use answers to prices. Pairs are sorted by user."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled

#: Pairs with `part < exp(-_UNDERFLOW)` are left out: no double sees them.
_UNDERFLOW = 300.0


@compiled
def chosen(start, server, log_gain, per_task, price, tau, first, near, part, total, used):  # type: ignore[no-untyped-def]
    """Parts `softmax((log gain - price)/tau)` of the pairs that matter (listed by user in `near`), tasks, use.

    Fills `first` (users + 1,), `near` and `part` (pairs,), `total` (users,); adds to `used` (servers, resources).
    Returns how many pairs are listed.
    """
    count = 0
    for n in range(len(start) - 1):
        best = -np.inf
        for p in range(start[n], start[n + 1]):
            best = max(best, log_gain[p] - price[server[p]])
        first[n] = count
        whole, least = 0.0, best - _UNDERFLOW * tau
        for p in range(start[n], start[n + 1]):
            level = log_gain[p] - price[server[p]]
            if level > least:
                near[count] = p
                part[count] = np.exp((level - best) / tau)
                whole += part[count]
                count += 1
        total[n] = np.exp(best + tau * np.log(whole))
        for k in range(first[n], count):
            part[k] /= whole
            tasks = part[k] * total[n]
            for r in range(used.shape[1]):
                used[server[near[k]], r] += tasks * per_task[near[k], r]
    first[len(start) - 1] = count
    return count


@compiled
def answers(first, near, part, total, server, per_task, weight, tau, result):  # type: ignore[no-untyped-def]
    """Minus the derivatives of `sum_r weight_ir use_ir` over log prices, added to `result` (servers, servers)."""
    for n in range(len(first) - 1):
        for k in range(first[n], first[n + 1]):
            i, scaled = server[near[k]], 0.0
            for r in range(weight.shape[1]):
                scaled += weight[i, r] * per_task[near[k], r]
            scaled *= part[k] * total[n]
            others = 0.0
            for j in range(first[n], first[n + 1]):
                if j != k:
                    others += part[j]
                    if part[j] > 1e-20:
                        result[i, server[near[j]]] -= scaled * (1 / tau - 1) * part[j]
            result[i, i] += scaled * (others / tau + part[k])
