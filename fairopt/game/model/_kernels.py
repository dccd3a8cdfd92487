"""Compiled loops of the interior point: everything that is done once per pair (user, server)."""

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
def parts(start, server, per_task, tasks, share, row, used, result):  # type: ignore[no-untyped-def]
    """The average part that each row has in the prices its users pay, (servers, resources); 1 where there is none."""
    servers, size = row.shape
    for i in range(servers):
        for r in range(size):
            result[i, r] = 0.0
    for k in range(start[-1]):
        i = server[k]
        for r in range(size):
            result[i, r] += per_task[k, r] * tasks[k] * share[k, r]
    for i in range(servers):
        for r in range(size):
            result[i, r] = max(result[i, r] / max(used[i, r], 1e-300), 1e-300) if row[i, r] else 1.0


@compiled
def right_hand(  # type: ignore[no-untyped-def]
    start, server, per_task, tasks, slack, true, correct,
    total, gap, extra,
    row, excess, measure, idle, bend,
    target, power, rx, c0, wanted, result,
):  # fmt: skip
    """Right-hand side of the prices' system: `rx` (pairs,), `c0` (users,), `wanted` and result (servers, resources).

    Products go to `target`, up to second order (`correct` of pairs, `bend` of rows): `wanted` is by what a row's idle
    part has to change at the same price.
    """
    servers, size = row.shape
    for i in range(servers):
        for r in range(size):
            wanted[i, r] = (target - bend[i, r]) / measure[i, r] - idle[i, r] if row[i, r] else 0.0
            result[i, r] = excess[i, r] + wanted[i, r]
    for n in range(len(start) - 1):
        whole, sum_rx = extra[n], 0.0
        for k in range(start[n], start[n + 1]):
            weight = tasks[k] / slack[k]
            whole += weight
            rx[k] = (target * power * total[n] - correct[k]) / slack[k] - tasks[k] + weight * (slack[k] - true[k])
            sum_rx += rx[k]
        c0[n] = -(sum_rx + gap[n]) / whole
        for k in range(start[n], start[n + 1]):
            moved = rx[k] + tasks[k] / slack[k] * c0[n]
            i = server[k]
            for r in range(size):
                result[i, r] += per_task[k, r] * moved
    for i in range(servers):
        for r in range(size):
            result[i, r] = result[i, r] if row[i, r] else 0.0


@compiled
def direction(start, server, right, tasks, slack, true, extra, rx, c0, step, d_tasks, d_slack, d_level):  # type: ignore[no-untyped-def]
    """From relative price steps (servers, resources) to the steps of tasks and slacks (pairs,) and levels (users,)."""
    for n in range(len(start) - 1):
        whole, moved = extra[n], 0.0
        for k in range(start[n], start[n + 1]):
            i = server[k]
            change = 0.0
            for r in range(right.shape[1]):
                change += right[k, r] * step[i, r]
            weight = tasks[k] / slack[k]
            d_slack[k] = change
            whole += weight
            moved += weight * change
        d_level[n] = c0[n] + moved / whole
        for k in range(start[n], start[n + 1]):
            change = d_slack[k] - d_level[n]
            d_tasks[k] = rx[k] - tasks[k] / slack[k] * change
            d_slack[k] = change - (slack[k] - true[k])


@compiled(fastmath={"nnan", "nsz"})
def fastest(row, tasks, slack, idle, d_tasks, d_slack, d_price, d_level, d_idle):  # type: ignore[no-untyped-def]
    """The largest rate at which tasks, slacks, prices, levels (both relative) or what idles fall; 0 if nothing does."""
    result = 0.0
    for k in range(len(tasks)):
        result = max(result, -d_tasks[k] / tasks[k], -d_slack[k] / slack[k])
    for n in range(len(d_level)):
        result = max(result, -d_level[n])
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            if row[i, r]:
                result = max(result, -d_price[i, r], -d_idle[i, r] / idle[i, r])
    return result


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
def backward(start, server, per_task, tasks, total, true, scale, above, room, tau, dropped):  # type: ignore[no-untyped-def]
    """Largest relative error in tasks over users, as in `certificates.backward` at the level tau.

    `scale` turns the logarithm of a slack into an error. `above` (users,) is by how much the log of a user's level
    exceeds that of its tasks, `room` how much of them is left up to its limit, relative; what dear pairs lose is added
    to `dropped` (servers, resources), in parts of capacities.
    """
    worst = 0.0
    for n in range(len(start) - 1):
        lost = 0.0
        for k in range(start[n], start[n + 1]):
            level = np.log1p(max(true[k], -1 + 1e-20)) * scale - above[n]
            if level < 0:
                worst = max(worst, min(-level, room[n]))
            elif level > tau:
                lost += tasks[k]
                for r in range(per_task.shape[1]):
                    dropped[server[k], r] += per_task[k, r] * tasks[k]
            elif tasks[k] > 0:
                worst = max(worst, level)
        worst = max(worst, lost / total[n])
    return worst


@compiled
def largest_parts(start, server, share, result):  # type: ignore[no-untyped-def]
    """The largest price share of each resource over the pairs of its server, (servers, resources)."""
    for k in range(start[-1]):
        i = server[k]
        for r in range(share.shape[1]):
            result[i, r] = max(result[i, r], share[k, r])


@compiled
def slacks(pairs, user, server, use, prices, top, power, log_gain, log_level, result):  # type: ignore[no-untyped-def]
    """The slacks of some pairs as in `price`; `prices` (servers, resources) are relative to e^top (servers,)."""
    for j in range(len(pairs)):
        pair = pairs[j]
        i, cost = server[pair], 0.0
        for r in range(use.shape[1]):
            cost += use[pair, r] * prices[i, r]
        result[j] = np.expm1(power[0] * (np.log(cost) + top[i]) + power[1] * (log_level[user[pair]] - log_gain[pair]))


@compiled
def lowered(pairs, user, server, prices, levels, slack, result):  # type: ignore[no-untyped-def]
    """The slacks of some pairs if costs change by the factors `prices` (servers,), and `levels` (users,)."""
    for j in range(len(pairs)):
        pair = pairs[j]
        result[j] = (1 + slack[pair]) * prices[server[pair]] * levels[user[pair]] - 1
