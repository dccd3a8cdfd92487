"""Compiled loops of interior points: everything that is done once per pair (user, server).

Pairs are sorted by user; `vectors` (pairs, resources) is the part of each capacity that a unit of tasks takes.
"""

from __future__ import annotations

from ..._loops import compiled


@compiled
def used(server, vectors, tasks, result):  # type: ignore[no-untyped-def]
    """Add the part of every capacity in use, (servers, resources)."""
    for k in range(len(server)):
        i = server[k]
        for r in range(vectors.shape[1]):
            result[i, r] += vectors[k, r] * tasks[k]


@compiled
def beyond(tasks, slack, d_tasks, d_slack, far, low, high, result):  # type: ignore[no-untyped-def]
    """What would bring products after a step `far` back to between low and high, taking away at most high."""
    for k in range(len(tasks)):
        product = (tasks[k] + far * d_tasks[k]) * (slack[k] + far * d_slack[k])
        result[k] = max(min(max(product, low), high) - product, -high)
