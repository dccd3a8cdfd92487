"""What waits: groups of every queue in trees of their demands."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import (
    BASE,
    BIG,
    FIRST,
    LEAF,
    LIMITED,
    PLACEMENT,
    QUEUE,
    SIZE,
    TOP,
    WAIT,
)
from ._forest import clear_leaf, next_leaf, set_leaf, sufficient
from ._queues import set_root


@compiled(inner=True)
def set_waiting(qs, tasks, g):  # type: ignore[no-untyped-def]
    """A group begins to wait, or ends."""
    q = tasks.group[g, QUEUE]
    base, size, leaf = qs.table[q, BASE], qs.table[q, SIZE], tasks.group[g, LEAF]
    if tasks.group[g, WAIT] > 0:
        set_leaf(qs.tree, base, size, leaf, np.int64(-1), tasks.demand, g)
    else:
        clear_leaf(qs.tree, base, size, leaf, -BIG)
    set_root(qs, q)


@compiled(inner=True)
def allowed(qs, tasks, g, option):  # type: ignore[no-untyped-def]
    """Does a task more leave its queue within its limit?"""
    if not option[LIMITED]:
        return True
    q = tasks.group[g, QUEUE]
    for j in range(len(qs.total)):
        if (qs.allocated[q, j] + tasks.cost[g, j]) / qs.total[j] > qs.limit[q]:
            return False
    return True


@compiled(inline=True)
def first_group(sv, qs, tasks, q, s, option):  # type: ignore[no-untyped-def]
    """The first waiting group of a queue that fits a server, or `BIG`."""
    base, size, first, k = qs.table[q, BASE], qs.table[q, SIZE], qs.table[q, FIRST], np.int64(-1)
    while True:
        k = next_leaf(qs.tree, base, size, np.int64(-1), sv.free, s, k + 1)
        if k < 0:
            return BIG
        g = first + k
        if sv.eligible[tasks.group[g, PLACEMENT], s] and (not option[LIMITED] or allowed(qs, tasks, g, option)):
            return g


@compiled(inner=True)
def lowest_queue(sv, qs, tasks, s, option, counter):  # type: ignore[no-untyped-def]
    """The queue with the lowest share that has a group that fits a server, and the share; -1 if there is none.

    Branch and bound: first where shares are lower, and no further where no demand is small enough.
    """
    stack, leaves = qs.stack, len(qs.key) // 2
    found, lowest = np.int64(-1), np.inf
    stack[0], top = counter[TOP], 1
    while top > 0:
        top -= 1
        node = stack[top]
        if qs.key[node, 0] == np.inf or qs.key[node, 0] > lowest or not sufficient(qs.all_tree, node, -1, sv.free, s):
            continue
        if node < leaves:
            left = qs.key[2 * node, 0] <= qs.key[2 * node + 1, 0]
            stack[top] = 2 * node + 1 if left else 2 * node
            stack[top + 1] = 2 * node if left else 2 * node + 1
            top += 2
            continue
        q, key = qs.seated[node - leaves], qs.key[node, 0]
        if found >= 0 and (key > lowest or (key == lowest and q > found)):
            continue
        if first_group(sv, qs, tasks, q, s, option) < BIG:
            found, lowest = q, key
    return found, lowest
