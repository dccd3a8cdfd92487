"""Compiled loops of `coupling`: one pass over pairs (user, server) each.

Pairs whose part of a user's tasks is below e^-60, next to nothing in doubles, count as having none: where many users
meet few types of servers and temperatures are low, those are nearly all. Exponentials and logarithms of pairs are taken
between these loops, of whole arrays, which is several times faster.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled

#: Parts of a user's tasks below e^-NOTHING are none.
_NOTHING = 60.0
#: A limit leaves no less than e^-LARGEST of a rise in level: the least that is not 0.
_LARGEST = 700.0
#: Shares of prices below this are none: products with subnormal numbers take ten times as long.
_LEAST = 1e-200


@compiled
def below_highest(start, whole, share, short, highest):  # type: ignore[no-untyped-def]
    """Normalize shares, and fill in users' highest levels and the distances of pairs below them."""
    size = share.shape[1]
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k])
            part = 1 / whole[k]
            for r in range(size):
                share[k, r] = share[k, r] * part if share[k, r] > _LEAST * whole[k] else 0.0
        for k in range(start[n], start[n + 1]):
            short[k] -= best
        highest[n] = best


@compiled
def carried(start, server, share, short, rise, a, tau, new_share, new_short, grown):  # type: ignore[no-untyped-def]
    """Update shares where `a log v` grows by `rise` (servers, resources), and levels but for `log(1 + grown)/a`.

    Of pairs that have next to nothing a bound of the level is enough, and shares are not carried.
    """
    servers, size = rise.shape
    least, most = np.empty(servers), np.empty(servers)
    factor, growth = np.exp(rise), np.expm1(rise)
    for i in range(servers):
        least[i], most[i] = rise[i].min() / a, rise[i].max() / a
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k] - most[server[k]])
        best -= _NOTHING * tau
        for k in range(start[n], start[n + 1]):
            i = server[k]
            bound = short[k] - least[i]
            grown[k] = 0.0
            if bound < best:
                new_short[k] = bound
                for r in range(size):
                    new_share[k, r] = share[k, r]
                continue
            more, whole = 0.0, 0.0
            for r in range(size):
                more += share[k, r] * growth[i, r]
                new_share[k, r] = share[k, r] * factor[i, r]
                whole += new_share[k, r]  # 1 + more, without the subtraction where little is left
            part = 1 / whole
            for r in range(size):
                new_share[k, r] *= part
            new_short[k] = short[k]
            if abs(more) < 0.5:
                grown[k] = more
            else:
                new_short[k] -= np.log(whole) / a


@compiled
def lower(start, short, tau, result):  # type: ignore[no-untyped-def]
    """Levels of pairs relative to the user's highest, over tau, -infinity below -NOTHING; and the highest, (users,)."""
    best = np.empty(len(start) - 1)
    for n in range(len(best)):
        top = -np.inf
        for k in range(start[n], start[n + 1]):
            top = max(top, short[k])
        for k in range(start[n], start[n + 1]):
            below = (short[k] - top) / tau
            result[k] = below if below > -_NOTHING else -np.inf
        best[n] = top
    return best


@compiled
def placed(start, server, per_task, highest, best, limit, tau, part, tasks, of_users, used):  # type: ignore[no-untyped-def]
    """Normalize parts of users' tasks, fill in tasks, and add their use to `used`.

    `of_users` is for (4, users): what having a choice adds to the log level, over tau; the log level; its distance
    above the log limit, over tau; and what part of a rise in level the limit leaves. A limit q bends the level X below
    it: `log X = -tau log(e^(-log level/tau) + q^(-1/tau))`.
    """
    size = per_task.shape[1]
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += part[k]
        choice = best[n] / tau + np.log(total)
        level, over, kept, bend = highest[n] + tau * choice, -np.inf, 1.0, 0.0
        if limit[n] < np.inf:
            over = (highest[n] - np.log(limit[n])) / tau + choice
            kept = 1 / (1 + np.exp(min(over, _LARGEST)))
            bend = tau * (max(over, 0.0) + np.log1p(np.exp(-abs(over))))
        of_users[0, n], of_users[1, n], of_users[2, n], of_users[3, n] = choice, level, over, kept
        whole, scale = np.exp(level - bend), 1 / total
        for k in range(start[n], start[n + 1]):
            part[k] *= scale
            tasks[k] = part[k] * whole
            if tasks[k] > 0:
                for r in range(size):
                    used[server[k], r] += per_task[k, r] * tasks[k]


@compiled
def unbalanced(row, used, price, unit, weight, power, residual, share, full):  # type: ignore[no-untyped-def]
    """Fill in `log full`, full being use plus the barrier `weight e^(power (unit - price))`, and its share."""
    servers, size = price.shape
    for i in range(servers):
        for r in range(size):
            full[i, r], share[i, r] = 1.0, 1.0
            if row[i, r]:
                taken = weight * np.exp(power * (unit[i] - price[i, r]))
                full[i, r] = used[i, r] + taken
                share[i, r] = taken / full[i, r]
            residual[i, r] = np.log(full[i, r])


@compiled
def matrix(start, server, per_task, share, part, tasks, kept, full, tau, barrier, power, result):  # type: ignore[no-untyped-def]
    """Add derivatives of `log full` by log prices, (servers resources, servers resources).

    `barrier` is the share of barrier terms, of this `power` of prices.
    """
    size = per_task.shape[1]
    for i in range(len(full)):
        for r in range(size):
            result[i * size + r, i * size + r] -= power * barrier[i, r]
    column, weight = np.empty(len(result), np.intp), np.empty(len(result))
    for n in range(len(start) - 1):
        choice, count = 1 / tau - kept[n], 0
        for k in range(start[n], start[n + 1]):
            if part[k] > 0:
                for r in range(size):
                    if share[k, r] > 0:
                        column[count], weight[count] = server[k] * size + r, part[k] * share[k, r]
                        count += 1
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
                for j in range(count):
                    row[column[j]] += answer * weight[j]


@compiled
def drifted(start, server, per_task, part, tasks, change, of_users, tau, row, full, result):  # type: ignore[no-untyped-def]
    """Add derivatives of `log full` by log tau, where levels over tau grow by `change` (pairs,).

    `of_users` is what `placed` found.
    """
    size = per_task.shape[1]
    for n in range(len(start) - 1):
        choice, over, kept, mean = of_users[0, n], of_users[2, n], of_users[3, n], 0.0
        for k in range(start[n], start[n + 1]):
            if part[k] > 0:
                mean += part[k] * change[k]
        rise = tau * (choice + mean)
        if over > -np.inf:
            bend = max(over, 0.0) + np.log1p(np.exp(-abs(over)))
            rise = kept * rise + tau * ((1 - kept) * over - bend)
        for k in range(start[n], start[n + 1]):
            if part[k] > 0:
                i, moved = server[k], tasks[k] * (change[k] - mean + rise)
                for r in range(size):
                    if row[i, r]:
                        result[i, r] += per_task[k, r] * moved / full[i, r]
