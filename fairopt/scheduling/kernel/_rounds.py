"""Rounds of decisions, until none is left; as `scheduling/plain.py`, which looks at more."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._loops import compiled
from ._columns import (
    AFTER_TASK,
    BASE,
    BIG,
    CHANGED,
    FIRST,
    FRESH,
    FROM,
    LIMITED,
    NFRESH,
    NO_PAIRS,
    NTOUCHED,
    PAIR,
    QUEUE,
    SEAT,
    SHARE,
    SIZE,
    STRICT,
    TOP,
    TOUCHED,
    UNTIL,
    VIRTUAL,
    WAIT,
    WAITS,
    WHO,
)
from ._events import look_at, start
from ._forest import next_leaf, sufficient
from ._limits import limits_of
from ._pairs import pairs_of
from ._places import envelope_of, find, find_among
from ._queues import head_of
from ._waiting import allowed, first_group, lowest_queue

#: More touched servers than these are not looked at one by one.
FEW = 6


@compiled(inline=True)
def round_of(sv, qs, tasks, option, parameter, counter):  # type: ignore[no-untyped-def]
    """One round, and what was touched is forgotten."""
    if option[LIMITED]:
        limits_of(qs, tasks, counter)
    if option[STRICT]:
        _strict(sv, qs, tasks, option, counter)
    elif counter[NTOUCHED] > 0 or counter[NFRESH] > 0:
        among = counter[NTOUCHED]
        if among > FEW and (option[PAIR] == NO_PAIRS or option[PAIR] == VIRTUAL):
            _all_fresh(sv, qs, tasks, counter)
            among = 0
        fresh = _fresh(qs, tasks, counter)
        row = envelope_of(sv, among)
        some = fresh > 0 or sufficient(qs.all_tree, counter[TOP], -1, sv.envelope, row)  # most rounds end here
        if some and option[PAIR]:
            pairs_of(sv, qs, tasks, option, parameter, counter, fresh, among)
        elif some:
            _lowest(sv, qs, tasks, option, counter, fresh, among)
    for k in range(counter[NTOUCHED]):
        sv.table[sv.touched[k], TOUCHED] = 0
    for k in range(counter[NFRESH]):
        tasks.group[tasks.fresh[k], FRESH] = 0
    counter[NTOUCHED], counter[NFRESH] = 0, 0


@compiled(inline=True)
def _strict(sv, qs, tasks, option, counter):  # type: ignore[no-untyped-def]
    """The first group of the lowest queue, as long as it fits."""
    leaves = len(qs.key) // 2
    while qs.key[1, 0] < np.inf:
        node = 1
        while node < leaves:
            node = 2 * node if qs.key[2 * node, 0] == qs.key[node, 0] else 2 * node + 1
        g = head_of(qs, node - leaves)
        if not allowed(qs, tasks, g, option):
            return
        s = find(sv, tasks, g, option, counter)
        if s < 0:
            return
        start(sv, qs, tasks, option, counter, g, s)


@compiled(inner=True)
def _all_fresh(sv, qs, tasks, counter):  # type: ignore[no-untyped-def]
    """Many servers were touched: whatever fits the largest free amounts of these is looked for everywhere."""
    row = envelope_of(sv, counter[NTOUCHED])
    for q in range(len(qs.table)):
        if qs.table[q, WAITS] > 0:
            base, size = qs.table[q, BASE], qs.table[q, SIZE]
            leaf: Any = np.int64(-1)
            while True:
                leaf = next_leaf(qs.tree, base, size, np.int64(-1), sv.envelope, row, leaf + 1)
                if leaf < 0:
                    break
                look_at(tasks, counter, qs.table[q, FIRST] + leaf)


@compiled(inline=True)
def _fresh(qs, tasks, counter):  # type: ignore[no-untyped-def]
    """Sort the fresh groups, and note where those of every queue begin and end; how many queues have some."""
    n = counter[NFRESH]
    queues: Any = np.int64(0)
    for k in range(1, n):  # nearly in order as they come
        g, j = tasks.fresh[k], k
        while j > 0 and tasks.fresh[j - 1] > g:
            tasks.fresh[j] = tasks.fresh[j - 1]
            j -= 1
        tasks.fresh[j] = g
    for k in range(n):
        q = tasks.group[tasks.fresh[k], QUEUE]
        if k == 0 or qs.chosen[WHO, queues - 1] != q:
            qs.chosen[WHO, queues], qs.chosen[FROM, queues] = q, k
            queues += 1
        qs.chosen[UNTIL, queues - 1] = k + 1
    return queues


@compiled(inner=True)
def _lowest(sv, qs, tasks, option, counter, queues, among):  # type: ignore[no-untyped-def]
    """The lowest queue that has a group that fits.

    Groups that were looked for in vain before fit on touched servers alone. `known[t]` is the lowest queue of touched
    server t as it was last looked for: shares rise in a round, so it stays right until its queue or server changes.
    Where a share may fall (`AFTER_TASK`), all are looked for again after every start.
    """
    touched = sv.touched[:among]
    known, version, key, leaves = sv.known[0], sv.known[1], sv.lowest, len(qs.key) // 2
    known[: len(touched)] = -2
    while True:
        queue, lowest, at = np.int64(-1), np.inf, -1
        while True:
            queue, lowest, at = np.int64(-1), np.inf, -1
            for t in range(len(touched)):
                if known[t] == -2:
                    known[t], key[t] = lowest_queue(sv, qs, tasks, touched[t], option, counter)
                    version[t] = qs.table[known[t], CHANGED] if known[t] >= 0 else 0
                if known[t] >= 0 and (queue < 0 or key[t] < lowest or (key[t] == lowest and known[t] < queue)):
                    queue, lowest, at = known[t], key[t], t
            if at < 0 or version[at] == qs.table[queue, CHANGED]:
                break
            known[at] = -2
        place, fresh, server = -1, np.int64(-1), np.int64(-1)
        while True:  # a lower one with a fresh group that fits somewhere
            place = -1
            low, first = lowest, queue
            for i in range(queues):
                if qs.chosen[FROM, i] < qs.chosen[UNTIL, i]:
                    q = qs.chosen[WHO, i]
                    seat = qs.table[q, SEAT]
                    share = qs.key[leaves + seat, 0] if seat >= 0 else np.inf
                    if first < 0 or share < low or (share == low and q <= first):
                        place, low, first = i, share, q
            if place < 0:
                break
            fresh = tasks.fresh[qs.chosen[FROM, place]]
            if first == queue and at >= 0 and low == lowest:
                break  # the same queue: its groups are compared below
            server = _placed(sv, qs, tasks, option, counter, fresh)
            if server >= 0:
                queue, lowest, at = first, low, -1
                break
            qs.chosen[FROM, place] += 1
        if queue < 0:
            return
        g = np.int64(BIG)
        for t in range(len(touched)):
            g = min(g, first_group(sv, qs, tasks, queue, touched[t], option))
        while place >= 0 and server < 0 and qs.chosen[FROM, place] < qs.chosen[UNTIL, place]:
            fresh = tasks.fresh[qs.chosen[FROM, place]]
            if fresh > g:
                break
            server = _placed(sv, qs, tasks, option, counter, fresh)
            if server < 0:
                qs.chosen[FROM, place] += 1
        if server >= 0 and fresh <= g:
            g = fresh
        elif tasks.group[g, FRESH]:
            server = find(sv, tasks, g, option, counter)
        else:
            server = find_among(sv, tasks, g, touched, option)
        start(sv, qs, tasks, option, counter, g, server)
        for t in range(len(touched)):
            if touched[t] == server or option[SHARE] == AFTER_TASK:
                known[t] = -2


@compiled(inline=True)
def _placed(sv, qs, tasks, option, counter, g):  # type: ignore[no-untyped-def]
    """Where a fresh group goes, or -1 if it does not wait any more, is over its limit or fits nowhere."""
    if tasks.group[g, WAIT] == 0 or not allowed(qs, tasks, g, option):
        return -1
    return find(sv, tasks, g, option, counter)
