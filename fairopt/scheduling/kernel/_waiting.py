"""What waits: groups of every queue in trees of their demands, queues in a tree of their shares."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import (
    AFTER_TASK,
    BASE,
    BIG,
    FIRST,
    LEAF,
    LIMITED,
    NO_PAIRS,
    PAIR,
    PLACEMENT,
    QUEUE,
    SHARE,
    SIZE,
    UNWEIGHTED,
    VIRTUAL,
    WAIT,
    WAITS,
)
from ._forest import clear_leaf, next_leaf, raised, set_leaf, sufficient


@compiled(inline=True)
def head_of(qs, q):  # type: ignore[no-untyped-def]
    """The first waiting group of a queue that has one."""
    base, size, node = qs.table[q, BASE], qs.table[q, SIZE], 1
    while node < size:
        node = 2 * node if qs.tree[base + 2 * node, 0] > -BIG else 2 * node + 1
    return qs.table[q, FIRST] + node - size


@compiled(inline=True)
def share_of(qs, tasks, q, option):  # type: ignore[no-untyped-def]
    """What the plain policy calls `share`."""
    share, head = 0.0, -1
    if option[SHARE] == AFTER_TASK:
        head = head_of(qs, q)
    for j in range(len(qs.total)):
        allocated = qs.allocated[q, j] if head < 0 else qs.allocated[q, j] + tasks.cost[head, j]
        part = allocated / qs.total[j] if option[SHARE] == UNWEIGHTED else allocated / (qs.total[j] * qs.weight[q])
        share = max(share, part)
    return share


@compiled(inner=True)
def set_key(qs, tasks, q, option):  # type: ignore[no-untyped-def]
    """Put a queue's share right in the tree of shares."""
    node = len(qs.key) // 2 + q
    key = share_of(qs, tasks, q, option) if qs.table[q, WAITS] > 0 else np.inf
    if qs.key[node] == key:
        return
    qs.key[node] = key
    node >>= 1
    while node >= 1:
        lowest = min(qs.key[2 * node], qs.key[2 * node + 1])
        if qs.key[node] == lowest:
            return
        qs.key[node] = lowest
        node >>= 1


@compiled(inner=True)
def set_least(qs, q):  # type: ignore[no-untyped-def]
    """Put what a queue holds per weight right in the tree of its minima."""
    node, amounts, waits = len(qs.least) // 2 + q, qs.least.shape[1], qs.table[q, WAITS] > 0
    same = True
    for r in range(amounts):
        part = qs.allocated[q, r] / qs.weight[q] if waits else np.inf
        same = same and qs.least[node, r] == part
        qs.least[node, r] = part
    node >>= 1
    while node >= 1 and not same:
        same = True
        for r in range(amounts):
            part = min(qs.least[2 * node, r], qs.least[2 * node + 1, r])
            same = same and qs.least[node, r] == part
            qs.least[node, r] = part
        node >>= 1


@compiled(inline=True)
def set_rank(qs, tasks, q, option):  # type: ignore[no-untyped-def]
    """Put a queue right in the tree by which the lowest is found."""
    if option[PAIR] == NO_PAIRS:
        set_key(qs, tasks, q, option)
    elif option[PAIR] == VIRTUAL:
        set_least(qs, q)


@compiled(inline=True)
def set_root(qs, q):  # type: ignore[no-untyped-def]
    """Copy the root of a queue's tree into the tree of all."""
    node, same = len(qs.key) // 2 + q, True
    for r in range(qs.tree.shape[1]):
        root = qs.tree[qs.table[q, BASE] + 1, r]
        same = same and qs.all_tree[node, r] == root
        qs.all_tree[node, r] = root
    if not same:
        raised(qs.all_tree, np.int64(0), node)


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


@compiled(inner=True)
def first_group(sv, qs, tasks, q, s, option):  # type: ignore[no-untyped-def]
    """The first waiting group of a queue that fits a server, or `BIG`."""
    base, size, first, k = qs.table[q, BASE], qs.table[q, SIZE], qs.table[q, FIRST], np.int64(-1)
    while True:
        k = next_leaf(qs.tree, base, size, np.int64(-1), sv.free, s, k + 1)
        if k < 0:
            return BIG
        g = first + k
        if sv.eligible[tasks.group[g, PLACEMENT], s] and allowed(qs, tasks, g, option):
            return g


@compiled(inner=True)
def lowest_queue(sv, qs, tasks, s, option):  # type: ignore[no-untyped-def]
    """The queue with the lowest share that has a group that fits a server, and the share; -1 if there is none.

    Branch and bound: first where shares are lower, and no further where no demand is small enough.
    """
    stack, leaves = qs.stack, len(qs.key) // 2
    found, lowest = np.int64(-1), np.inf
    stack[0], top = 1, 1
    while top > 0:
        top -= 1
        node = stack[top]
        if qs.key[node] == np.inf or qs.key[node] > lowest or not sufficient(qs.all_tree, node, -1, sv.free, s):
            continue
        if node < leaves:
            left = qs.key[2 * node] <= qs.key[2 * node + 1]
            stack[top] = 2 * node + 1 if left else 2 * node
            stack[top + 1] = 2 * node if left else 2 * node + 1
            top += 2
            continue
        q, key = node - leaves, qs.key[node]
        if found >= 0 and (key > lowest or (key == lowest and q > found)):
            continue
        if first_group(sv, qs, tasks, q, s, option) < BIG:
            found, lowest = q, key
    return found, lowest
