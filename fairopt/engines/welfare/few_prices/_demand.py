"""Compiled loops of `few_prices`: what users buy at what they pay, and who is put in order by itself."""

from __future__ import annotations

import numpy as np

from ...._loops import compiled


@compiled
def bought(log_marginal, alpha, limit, width, user_price):  # type: ignore[no-untyped-def]
    """The log of a user's tasks, and minus its slope in the log of what it pays, over 1/alpha.

    `log_marginal` is the log of what the first task is worth, `limit` that of the most tasks; `width`, of the bend
    between them, is a difference of logarithms.
    """
    if user_price <= 0.0:
        return limit, 0.0
    free = (log_marginal - np.log(user_price)) / alpha
    if limit == np.inf:
        return free, 1.0
    below = limit - free
    root = np.sqrt(below * below + 4 * width * width)
    # Without a subtraction of what is nearly equal, on either side.
    if below > 0:
        return free - 2 * width * width / (below + root), 0.5 * (1 + below / root)
    return limit - 2 * width * width / (root - below), 2 * width * width / (root * (root - below))


@compiled
def demands(log_marginal, alpha, limit, width, user_price, tasks, part):  # type: ignore[no-untyped-def]
    """`bought` for all users: tasks and parts of the elasticity, (users,)."""
    for n in range(len(user_price)):
        log, part[n] = bought(log_marginal[n], alpha, limit[n], width, user_price[n])
        tasks[n] = np.exp(log)


@compiled
def ordered(start, cost, weight, log_marginal, alpha, limit, width, chosen, tasks, slack, user_price):  # type: ignore[no-untyped-def]
    """Puts the users `chosen` where their tasks are what they buy and every product `tasks slack` is their weight.

    With y = cost of the cheapest pair - pay: `sum_i weight/(cost_i - cheapest + y)` falls as y grows, demand rises. The
    root of the harmonic difference, which is nearly straight, by Newton's method between bounds.
    """
    for n in range(len(user_price)):
        if not chosen[n]:
            continue
        first, last = start[n], start[n + 1]
        cheapest = np.inf
        for k in range(first, last):
            cheapest = min(cheapest, cost[k])
        low, high = 0.0, np.inf
        if limit[n] == np.inf:
            high = cheapest
        y = 0.5 * cheapest if limit[n] == np.inf else min(weight[n] / np.exp(limit[n]), 0.5 * cheapest)
        for _ in range(60):
            log, part = bought(log_marginal[n], alpha, limit[n], width, cheapest - y)
            most, total, squares = weight[n] / np.exp(log), 0.0, 0.0
            for k in range(first, last):
                each = 1 / (cost[k] - cheapest + y)
                total += each
                squares += each * each
            off = 1 / total - most
            if off < 0:
                low = y
            else:
                high = y
            if abs(off) <= 1e-14 * most:
                break
            slope = squares / (total * total)
            if cheapest > y:
                slope += most * part / alpha / (cheapest - y)
            there = y - off / slope
            if not low < there < high:
                there = 2 * y if high == np.inf else (high / 10 if low == 0 else np.sqrt(low * high))
            moved = abs(there - y)
            y = there
            if moved <= 1e-15 * y:
                break
        user_price[n] = cheapest - y
        for k in range(first, last):
            slack[k] = cost[k] - cheapest + y
            tasks[k] = weight[n] / slack[k]
