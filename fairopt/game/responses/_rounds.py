"""Compiled: rounds of best responses. Users in units of their largest gamma."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._filling import refill
from ._response import respond


@compiled
def play(server, first, pairs, user, alpha, gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """One server responds to the totals that it sees, and moves its column by `relax` of the way.

    `user`, `gain` (its log for finite alpha), `per_task` and `use` are in the order of `pairs`, server by server.
    Returns the largest change that the response asks for, relative to the user's tasks.
    """
    low, high = first[server], first[server + 1]
    count, size = high - low, per_task.shape[1]
    if count == 0:
        return 0.0
    elsewhere, room, answer = np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        n = user[low + k]
        elsewhere[k] = max(total[n] - tasks[pairs[low + k]], 0.0)
        room[k] = max(limit[n] - elsewhere[k], 0.0)
    requested = per_task[low:high]
    if alpha == np.inf:
        refill(gain[low:high], requested, elsewhere, room, q[server], answer)
    else:
        respond(alpha, gain[low:high], requested, use[low:high], elsewhere, room, q[server], answer)
    change = 0.0
    over = np.zeros(size)
    for k in range(count):
        now = tasks[pairs[low + k]]
        whole = max(elsewhere[k] + answer[k], total[user[low + k]])
        if whole > 0:
            change = max(change, abs(answer[k] - now) / whole)
        answer[k] = min(max(now + relax * (answer[k] - now), 0.0), room[k])
        if answer[k] > 0:
            for r in range(size):
                over[r] += requested[k, r] * answer[k]
    part = 1 / max(over.max(), 1.0)  # steps beyond the response may use too much
    for k in range(count):
        total[user[low + k]] = elsewhere[k] + part * answer[k]
        tasks[pairs[low + k]] = part * answer[k]
    return change


@compiled
def sweep(order, first, pairs, user, alpha, gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """Gauss-Seidel: servers respond one after the other; returns the largest relative change asked for."""
    add_up(pairs, user, tasks, total)
    change = 0.0
    for i in order:
        change = max(
            change,
            play(i, first, pairs, user, alpha, gain, per_task, use, limit, relax, tasks, total, q),
        )
    return change


@compiled
def at_once(first, pairs, user, alpha, gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """Jacobi: all servers respond to the same totals; returns the largest relative change asked for."""
    change = 0.0
    seen = total.copy()
    own = total.copy()
    for i in range(len(first) - 1):
        own[:] = seen
        change = max(change, play(i, first, pairs, user, alpha, gain, per_task, use, limit, relax, tasks, own, q))
    add_up(pairs, user, tasks, total)
    return change


@compiled
def add_up(pairs, user, tasks, total):  # type: ignore[no-untyped-def]
    """Totals from tasks: what is left of rounding as servers add and subtract may be more than a user has."""
    total[:] = 0.0
    for k in range(len(tasks)):
        total[user[k]] += tasks[pairs[k]]
