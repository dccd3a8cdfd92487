"""Compiled loops of `smoothing`: the smoothed equations of all pairs and resources, and Newton's step on them."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled


@compiled
def smoothed(one, other, mu):  # type: ignore[no-untyped-def]
    """Half of `a + b - root`, `root = sqrt((a - b)^2 + 4 mu)`, its slopes over a and b, and the root.

    Without a subtraction, where there is one to avoid.
    """
    more, add = one - other, one + other
    root = np.sqrt(more * more + 4 * mu)
    half = 2 * (one * other - mu) / (add + root) if add > 0 else (add - root) / 2
    first = 2 * mu / (root * (root + more)) if more > 0 else (1 - more / root) / 2
    second = 2 * mu / (root * (root - more)) if more < 0 else (1 + more / root) / 2
    return half, first, second, root


@compiled
def fill_pairs(  # type: ignore[no-untyped-def]
    start, server, per_task, power, mu, tasks, true, unit, total, residual, rate, to_part, weight, gap, used
):
    """Everything that is done once per pair, with slacks `true`; the sum of squares of what is wrong, and the largest.

    Filled are, over pairs, what is wrong, how that changes with log mu, its slope over the part, and the pair's weight
    in the prices' system; over users, tasks less those of the level; `used` (servers, resources) is added to.
    """
    squares, largest = 0.0, 0.0
    for n in range(len(start) - 1):
        whole = 0.0
        for k in range(start[n], start[n + 1]):
            slack = true[k] / power
            half, first, second, root = smoothed(tasks[k] / unit[n], slack, mu)
            residual[k], rate[k], to_part[k] = half, -mu / root, first
            weight[k] = unit[n] * (second / first) * (1 + true[k])
            whole += tasks[k]
            squares += half * half
            largest = max(largest, abs(half))
            for r in range(per_task.shape[1]):
                used[server[k], r] += per_task[k, r] * tasks[k]
        gap[n] = whole - total[n]
        off = gap[n] / total[n]
        squares += off * off
        largest = max(largest, abs(off))
    return squares, largest


@compiled
def fill_rows(row, power, mu, log_price, unit, used, residual, rate, to_idle, own):  # type: ignore[no-untyped-def]
    """The same for (server, resource); `own` is what they add to the diagonal of the prices' system."""
    squares, largest = 0.0, 0.0
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            residual[i, r], rate[i, r], to_idle[i, r], own[i, r] = 0.0, 0.0, 1.0, 1.0
            if row[i, r]:
                price = np.exp(power * (log_price[i, r] - unit[i, r]))
                half, first, second, root = smoothed(1 - used[i, r], price, mu)
                residual[i, r], rate[i, r], to_idle[i, r] = half, -mu / root, first
                own[i, r] = power * price * second / first
                squares += half * half
                largest = max(largest, abs(half))
    return squares, largest


@compiled
def reduce(start, server, per_task, unit, to_part, weight, slope, pairs, gap, fixed, level, result):  # type: ignore[no-untyped-def]
    """Tasks that move whatever prices do (`fixed`), what levels do (`level`), and the use of both, added to result."""
    for n in range(len(start) - 1):
        whole, moved = slope[n], gap[n]
        for k in range(start[n], start[n + 1]):
            fixed[k] = -unit[n] * pairs[k] / to_part[k]
            whole += weight[k]
            moved += fixed[k]
        level[n] = moved / whole
        for k in range(start[n], start[n + 1]):
            amount = fixed[k] - weight[k] * level[n]
            for r in range(per_task.shape[1]):
                result[server[k], r] += per_task[k, r] * amount


@compiled
def expand(start, server, share, weight, slope, fixed, level, d_price, d_level, d_tasks):  # type: ignore[no-untyped-def]
    """From the steps of log prices to those of log levels and tasks."""
    for n in range(len(start) - 1):
        whole, moved = slope[n], 0.0
        for k in range(start[n], start[n + 1]):
            cost = 0.0
            for r in range(share.shape[1]):
                cost += share[k, r] * d_price[server[k], r]
            d_tasks[k] = cost
            whole += weight[k]
            moved += weight[k] * cost
        d_level[n] = level[n] - moved / whole
        for k in range(start[n], start[n + 1]):
            d_tasks[k] = fixed[k] - weight[k] * (d_level[n] + d_tasks[k])


@compiled
def inner(start, one, other, unit):  # type: ignore[no-untyped-def]
    """Sum over pairs of the product of two steps of tasks, in each user's `unit`."""
    total = 0.0
    for n in range(len(start) - 1):
        own = 0.0
        for k in range(start[n], start[n + 1]):
            own += one[k] * other[k]
        total += own / (unit[n] * unit[n])
    return total
