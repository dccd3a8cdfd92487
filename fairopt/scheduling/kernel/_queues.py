"""Trees of queues: the least demands of what waits, and the lowest shares.

Queues that wait have seats, leaves side by side from the first on, so that searches begin at row `counter[TOP]`, above
the seats that are taken. Where the order of queues matters to searches, all of them have the seat of their number.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import (
    AFTER_TASK,
    BASE,
    BIG,
    FIRST,
    NO_PAIRS,
    NSEATS,
    PAIR,
    SEAT,
    SHARE,
    SIZE,
    TOP,
    UNWEIGHTED,
    VIRTUAL,
    WAITS,
)
from ._forest import clear_leaf, raised


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


@compiled(inline=True)
def set_rank(qs, tasks, q, option):  # type: ignore[no-untyped-def]
    """Put right what a queue is ranked by, if it is."""
    if qs.table[q, SEAT] >= 0 and (option[PAIR] == NO_PAIRS or option[PAIR] == VIRTUAL):
        _set_rank(qs, tasks, q, option)


@compiled(inner=True)
def _set_rank(qs, tasks, q, option):  # type: ignore[no-untyped-def]
    node, same = len(qs.key) // 2 + qs.table[q, SEAT], True
    for c in range(qs.key.shape[1]):
        part = np.inf
        if qs.table[q, WAITS] > 0 and option[PAIR] == VIRTUAL:
            part = qs.allocated[q, c] / qs.weight[q]
        elif qs.table[q, WAITS] > 0:
            part = share_of(qs, tasks, q, option)
        same = same and qs.key[node, c] == part
        qs.key[node, c] = part
    if not same:
        _lowered(qs.key, node)


@compiled(inner=True)
def _lowered(key, node):  # type: ignore[no-untyped-def]
    """Put minima right from the parent of `node` to the root."""
    node >>= 1
    while node >= 1:
        same = True
        for c in range(key.shape[1]):
            least = min(key[2 * node, c], key[2 * node + 1, c])
            same = same and key[node, c] == least
            key[node, c] = least
        if same:
            return
        node >>= 1


@compiled(inner=True)
def set_root(qs, q):  # type: ignore[no-untyped-def]
    """Copy the root of a queue's tree into the tree of all."""
    node, same = len(qs.key) // 2 + qs.table[q, SEAT], True
    for r in range(qs.tree.shape[1]):
        root = qs.tree[qs.table[q, BASE] + 1, r]
        same = same and qs.all_tree[node, r] == root
        qs.all_tree[node, r] = root
    if not same:
        raised(qs.all_tree, np.int64(0), node)


@compiled(inline=True)
def take_seat(qs, q, counter):  # type: ignore[no-untyped-def]
    """A queue that begins to wait takes the next seat."""
    if qs.table[q, SEAT] < 0:
        qs.table[q, SEAT], qs.seated[counter[NSEATS]] = counter[NSEATS], q
        counter[NSEATS] += 1
        if counter[NSEATS] > len(qs.key) // 2 // counter[TOP]:
            counter[TOP] >>= 1


@compiled(inner=True)
def leave_seat(qs, tasks, q, option, counter):  # type: ignore[no-untyped-def]
    """A queue waits no more: the last one that does takes its seat."""
    leaves, last = len(qs.key) // 2, counter[NSEATS] - 1
    seat, other = qs.table[q, SEAT], qs.seated[last]
    qs.table[other, SEAT], qs.seated[seat], counter[NSEATS] = seat, other, last
    qs.table[q, SEAT] = -1
    if other != q:
        set_root(qs, other)
        set_rank(qs, tasks, other, option)
    clear_leaf(qs.all_tree, np.int64(0), leaves, last, -BIG)
    qs.key[leaves + last] = np.inf
    _lowered(qs.key, leaves + last)
    while counter[TOP] < leaves and leaves // (2 * counter[TOP]) >= last:
        counter[TOP] *= 2
