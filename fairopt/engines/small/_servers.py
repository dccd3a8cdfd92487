"""Compiled: max-min inside servers, filled level by level, and how far it is from that: `certificates.bottleneck`."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ...certificates._kernels import rises
from ..maxmin._filling import fill


@compiled
def filled(q, i, elsewhere, limit, tasks):  # type: ignore[no-untyped-def]
    """Fill `tasks` (users,): max-min of `u_n x_n / phi_n` on server i, of users with tasks `elsewhere`."""
    resources = q.demand.shape[1]
    mine = np.flatnonzero(q.gamma[:, i] > 0)
    gain, other, room = np.empty(len(mine)), np.empty(len(mine)), np.empty(len(mine))
    per_task, levels, parts = np.empty((len(mine), resources)), np.empty(resources), np.empty(len(mine))
    for k in range(len(mine)):
        n = mine[k]
        gain[k] = q.weight[n] / (q.share[n, i] * q.gamma[n, i])
        other[k] = elsewhere[n] / q.gamma[n, i]
        room[k] = max(limit[n] - elsewhere[n], 0.0) / q.gamma[n, i]
        per_task[k] = q.use[n, i]
    fill(gain, per_task, other, room, levels, parts)
    tasks[:] = 0.0
    for k in range(len(mine)):
        tasks[mine[k]] = parts[k] * q.gamma[mine[k], i]


@compiled
def exploitability(q, tasks, everywhere, limit):  # type: ignore[no-untyped-def]
    """The largest relative rise that a server owes a user; levels and rises of tasks `everywhere` or of those there."""
    worst = 0.0
    for i in range(tasks.shape[1]):
        mine = np.flatnonzero(q.gamma[:, i] > 0)
        if not len(mine):
            continue
        here = tasks[mine, i].copy()
        totals = here.copy()
        if everywhere:
            for k in range(len(mine)):
                totals[k] = tasks[mine[k]].sum()
        levels = totals * q.share[mine, i] / q.weight[mine]
        idle = np.empty(q.capacity.shape[1])
        for r in range(len(idle)):
            idle[r] = max(q.capacity[i, r] - (here * q.demand[mine, r]).sum(), 0.0)
        found = rises(q.demand[mine], idle, here, levels, totals, limit[mine])
        worst = max(worst, found.max())
    return worst
