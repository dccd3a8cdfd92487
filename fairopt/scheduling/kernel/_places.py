"""Which server a task of a group is put on."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._best import best_by_ratio, best_by_ratios, best_by_scan, best_from_top, fits
from ._columns import (
    ALIGNMENT,
    BEST_INDEX,
    BEST_SCAN,
    DIRTY,
    FIRST_INDEX,
    INSTANTS,
    NDIRTY,
    PAIR,
    PLACE,
    PLACEMENT,
    SLOT,
    TREE,
    VIRTUAL,
)
from ._forest import next_leaf, set_server
from ._ratios import move


@compiled(inner=True)
def flush(sv, option, counter):  # type: ignore[no-untyped-def]
    """Bring the index of free vectors up to date."""
    for k in range(counter[NDIRTY]):
        s = sv.dirty[k]
        sv.table[s, DIRTY] = 0
        if option[PLACE] == BEST_INDEX:
            move(sv, counter, s)
        else:
            t = sv.table[s, TREE]
            set_server(sv.tree, sv.tree_at[t, 0], sv.tree_at[t, 1], sv.table[s, SLOT], sv.mix, sv.free, s)
    counter[NDIRTY] = 0


@compiled(inline=True)
def envelope_of(sv, few):  # type: ignore[no-untyped-def]
    """The row of `envelope` with the largest free amounts of the first few touched servers."""
    row = len(sv.envelope) - 1
    for r in range(sv.free.shape[1]):
        sv.envelope[row, r] = -1
    for k in range(few):
        for r in range(sv.free.shape[1]):
            sv.envelope[row, r] = max(sv.envelope[row, r], sv.free[sv.touched[k], r])
    return row


@compiled(inline=True)
def first_of_type(sv, tasks, g, t, option, counter):  # type: ignore[no-untyped-def]
    """The first server of a tree with room for a group, or -1.

    In a round servers only lose room: what was found before is still the first if it has room, and else the next are
    looked at. `cursor` has the leaf where a group stands, as long as its slot is its own.
    """
    slot = g & (len(sv.holder) - 1)
    if sv.holder[slot, 0] != g or sv.holder[slot, 1] != counter[INSTANTS]:
        sv.holder[slot, 0], sv.holder[slot, 1] = g, counter[INSTANTS]
        for other in range(len(sv.tree_at)):
            sv.cursor[slot, other] = -1
    s, k = np.int64(-1), sv.cursor[slot, t]
    if k >= 0 and k < sv.tree_at[t, 1]:
        s = sv.leaf[sv.tree_at[t, 2] + k]
        if not fits(tasks.demand, g, sv.free, s):
            s = np.int64(-1)
    if s < 0 and k < sv.tree_at[t, 1]:
        s = _next_of_type(sv, tasks, g, t, option, counter, slot)
    return s


@compiled(inner=True)
def _next_of_type(sv, tasks, g, t, option, counter, slot):  # type: ignore[no-untyped-def]
    """The first after `cursor`, which goes there."""
    flush(sv, option, counter)
    base, size, first, k = sv.tree_at[t, 0], sv.tree_at[t, 1], sv.tree_at[t, 2], sv.cursor[slot, t]
    while True:
        k = next_leaf(sv.tree, base, size, np.int64(1), tasks.demand, g, k + 1)
        if k < 0:
            sv.cursor[slot, t] = size
            return np.int64(-1)
        if sv.eligible[tasks.group[g, PLACEMENT], sv.leaf[first + k]]:
            sv.cursor[slot, t] = k
            return sv.leaf[first + k]


@compiled(inner=True)
def find(sv, tasks, g, option, counter):  # type: ignore[no-untyped-def]
    """Where a task of a group goes, of all servers, or -1."""
    p, place = tasks.group[g, PLACEMENT], option[PLACE]
    best = place == BEST_INDEX or place == BEST_SCAN
    if sv.near_first[p + 1] > sv.near_first[p]:
        return best_by_scan(sv, tasks.demand, g, sv.near[sv.near_first[p] : sv.near_first[p + 1]], p, best)
    if place == FIRST_INDEX:
        return first_of_type(sv, tasks, g, np.int64(0), option, counter)
    if place == BEST_INDEX and tasks.demand[g, 0] + tasks.demand[g, 1] > 0:
        flush(sv, option, counter)
        if tasks.demand[g, 0] == 0:
            return best_from_top(sv, tasks.demand, g, p, counter)
        if sv.free.shape[1] > 2:
            return best_by_ratios(sv, tasks.demand, g, p, counter)
        return best_by_ratio(sv, tasks.demand, g, p, counter)
    return best_by_scan(sv, tasks.demand, g, sv.everyone, p, best)


@compiled(inline=True)
def find_among(sv, tasks, g, servers, option):  # type: ignore[no-untyped-def]
    """The same of a few servers."""
    best = option[PLACE] == BEST_INDEX or option[PLACE] == BEST_SCAN
    return best_by_scan(sv, tasks.demand, g, servers, tasks.group[g, PLACEMENT], best)


@compiled(inline=True)
def virtual_share(allocated, capacity, weight, q, s):  # type: ignore[no-untyped-def]
    """The value of PS-DSF."""
    value = 0.0
    for r in range(capacity.shape[1]):
        if allocated[q, r] > 0:
            value = max(value, allocated[q, r] / (capacity[s, r] * weight[q]))
    return value


@compiled(inline=True)
def value_of(sv, qs, tasks, g, q, s, option):  # type: ignore[no-untyped-def]
    """What the plain policy calls `value`: the lowest pair of queue and server is next."""
    value = 0.0
    if option[PAIR] == VIRTUAL:
        return virtual_share(qs.allocated, sv.capacity, qs.weight, q, s)
    for r in range(sv.free.shape[1]):
        there = max(sv.capacity[s, r], 1)
        if option[PAIR] == ALIGNMENT:
            value -= tasks.demand[g, r] / there * (sv.free[s, r] / there)
        else:
            value = max(value, qs.placed[q, s, r] / (there * qs.weight[q]))
    return value


@compiled(inline=True)
def best_among(sv, qs, tasks, g, q, servers, option):  # type: ignore[no-untyped-def]
    """The server of a list with the lowest value for a queue, and the value; -1 where none fits."""
    found, lowest, p = -1, np.inf, tasks.group[g, PLACEMENT]
    for k in range(len(servers)):
        s = servers[k]
        if fits(tasks.demand, g, sv.free, s) and sv.eligible[p, s]:
            value = value_of(sv, qs, tasks, g, q, s, option)
            if found < 0 or value < lowest or (value == lowest and s < found):
                found, lowest = s, value
    return found, lowest


@compiled(inline=True)
def best_of_all(sv, qs, tasks, g, q, option, counter):  # type: ignore[no-untyped-def]
    """The same of all servers; where values are the same for all of a type, the first with room of every type."""
    if option[PAIR] != VIRTUAL or option[PLACE] != FIRST_INDEX:
        return best_among(sv, qs, tasks, g, q, sv.everyone, option)
    found, lowest = -1, np.inf
    for t in range(len(sv.tree_at) - 1, -1, -1):  # types with more come last, where values are lower
        value = virtual_share(qs.allocated, sv.capacity, qs.weight, q, sv.leaf[sv.tree_at[t, 2]])
        if found >= 0 and value > lowest:
            continue
        s = first_of_type(sv, tasks, g, np.int64(t), option, counter)
        if s >= 0 and (found < 0 or value < lowest or s < found):
            found, lowest = s, value
    return found, lowest
