"""Compiled: rounds of best responses. Users in units of their largest gamma."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..engines._filling import fill
from ._response import respond

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def play(server, first, pairs, pair_user, alpha, log_gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """One server responds to the totals that it sees, and moves its column by `relax` of the way.

    Returns the largest change that the response asks for, relative to the user's tasks.
    """
    mine = pairs[first[server] : first[server + 1]]
    count = len(mine)
    if count == 0:
        return 0.0
    elsewhere, room, answer = np.empty(count), np.empty(count), np.empty(count)
    gain, asked, needs = np.empty(count), np.empty((count, per_task.shape[1])), np.empty((count, per_task.shape[1]))
    for k in range(count):
        p = mine[k]
        n = pair_user[p]
        elsewhere[k] = max(total[n] - tasks[p], 0.0)
        room[k] = max(limit[n] - elsewhere[k], 0.0)
        gain[k] = log_gain[p]
        asked[k] = per_task[p]
        needs[k] = use[p]
    if alpha == np.inf:
        fill(np.exp(gain), asked, elsewhere, room, q[server], answer)
    else:
        respond(alpha, gain, asked, needs, elsewhere, room, q[server], answer)
    change = 0.0
    over = np.zeros(per_task.shape[1])
    for k in range(count):
        p = mine[k]
        n = pair_user[p]
        whole = max(elsewhere[k] + answer[k], total[n])
        if whole > 0:
            change = max(change, abs(answer[k] - tasks[p]) / whole)
        answer[k] = min(max(tasks[p] + relax * (answer[k] - tasks[p]), 0.0), room[k])
        for r in range(per_task.shape[1]):
            over[r] += asked[k, r] * answer[k]
    part = 1 / max(over.max(), 1.0)  # steps beyond the response may use too much
    for k in range(count):
        p = mine[k]
        n = pair_user[p]
        total[n] = elsewhere[k] + part * answer[k]
        tasks[p] = part * answer[k]
    return change


@_compile
def sweep(order, first, pairs, pair_user, alpha, log_gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """Gauss-Seidel: servers respond one after the other; returns the largest relative change asked for."""
    change = 0.0
    for i in order:
        change = max(
            change,
            play(i, first, pairs, pair_user, alpha, log_gain, per_task, use, limit, relax, tasks, total, q),
        )
    return change


@_compile
def at_once(first, pairs, pair_user, alpha, log_gain, per_task, use, limit, relax, tasks, total, q):  # type: ignore[no-untyped-def]
    """Jacobi: all servers respond to the same totals; returns the largest relative change asked for."""
    change = 0.0
    seen = total.copy()
    own = total.copy()
    for i in range(len(first) - 1):
        own[:] = seen
        change = max(
            change, play(i, first, pairs, pair_user, alpha, log_gain, per_task, use, limit, relax, tasks, own, q)
        )
    total[:] = 0.0
    for p in range(len(tasks)):
        total[pair_user[p]] += tasks[p]
    return change
