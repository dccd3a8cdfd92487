"""Rounds of decisions where a policy compares pairs of queue and server."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._loops import compiled
from ._columns import (
    BEGIN,
    BEST,
    BIG,
    BY_SHARE,
    FAIRNESS,
    FROM,
    FURTHEST,
    LISTED,
    NEXT_GROUP,
    ONE,
    PAIR,
    STOP,
    TOP,
    UNTIL,
    VALUE,
    VIRTUAL,
    WAIT,
    WAITS,
    WHO,
)
from ._events import start
from ._forest import next_leaf, sufficient
from ._places import best_among, best_of_all, envelope_of
from ._queues import share_of
from ._waiting import first_group

#: A bound may be larger than the value by a few roundings.
ROUNDED = 1 - 1e-14


@compiled(inner=True)
def pairs_of(sv, qs, tasks, option, parameter, counter, queues, few):  # type: ignore[no-untyped-def]
    """The pair of queue and server with the lowest value.

    Candidates are the queues with a fresh group. Queues without that may have a group that fits a touched server: they
    are candidates too, or, where values have bounds, `_lowest_pair` finds the best of them. A candidate's best server
    stays its best until the candidate or that server is served: other values do not fall meanwhile.
    """
    touched = sv.touched[:few]
    bounded = option[PAIR] == VIRTUAL and few > 0
    for k in range(queues):
        qs.table[qs.chosen[WHO, k], LISTED] = 1
    n = _candidates(sv, qs, queues, touched, bounded)
    q, s, g = np.int64(-1), np.int64(-1), np.int64(-1)
    while True:
        left: Any = np.int64(0)
        for k in range(n):
            keep = True
            if qs.chosen[ONE, k] == q or qs.chosen[BEST, k] == s:  # or nothing is known yet
                keep = qs.table[qs.chosen[ONE, k], WAITS] > 0 and _best(sv, qs, tasks, option, counter, touched, k)
            if keep:
                if left < k:
                    _move(qs, k, left)
                left += 1
        n = left
        if option[FURTHEST]:
            _sort(qs, tasks, option, n)
        among = max(1, int(np.ceil((1 - parameter[FAIRNESS]) * n))) if option[FURTHEST] else n
        q, s, g, least = np.int64(-1), np.int64(-1), np.int64(-1), np.inf
        for k in range(min(among, n)):
            value = qs.values[VALUE, k]
            if q < 0 or value < least or (value == least and qs.chosen[ONE, k] < q):
                q, s, g, least = qs.chosen[ONE, k], qs.chosen[BEST, k], qs.chosen[NEXT_GROUP, k], value
        if bounded:
            q, s, g = _lowest_pair(sv, qs, tasks, option, counter, touched, q, s, g, least)
        if q < 0:
            break
        start(sv, qs, tasks, option, counter, g, s)
    for k in range(queues):
        qs.table[qs.chosen[WHO, k], LISTED] = 0


@compiled(inline=True)
def _candidates(sv, qs, queues, touched, bounded):  # type: ignore[no-untyped-def]
    """Queues with a fresh group, and perhaps those with one that may fit a touched server; how many."""
    leaves = len(qs.all_tree) // 2
    row = np.int64(-1) if bounded else envelope_of(sv, len(touched))
    q: Any = np.int64(-1)
    i, n = 0, np.int64(0)
    while True:
        q = next_leaf(qs.all_tree, np.int64(0), leaves, np.int64(-1), sv.envelope, row, q + 1) if row >= 0 else -1
        if i < queues and (q < 0 or qs.chosen[WHO, i] < q):
            q = qs.chosen[WHO, i]
        if q < 0:
            return n
        begin, until = 0, 0
        if i < queues and qs.chosen[WHO, i] == q:
            begin, until = qs.chosen[FROM, i], qs.chosen[UNTIL, i]
            i += 1
        qs.chosen[ONE, n], qs.chosen[BEGIN, n], qs.chosen[STOP, n], qs.chosen[BEST, n] = q, begin, until, -1
        n += 1


@compiled(inline=True)
def _lowest_pair(sv, qs, tasks, option, counter, touched, queue, server, group, lowest):  # type: ignore[no-untyped-def]
    """The best pair of a queue that has no fresh group and a touched server, or that which is given if it is better.

    Branch and bound: where no demand is small enough or no value can be lower, nothing is looked at. A value is at
    least the largest of what the queues below hold of an amount, over the capacity; but for rounding.
    """
    stack, bounds, leaves = qs.stack, qs.bounds, len(qs.all_tree) // 2
    row = envelope_of(sv, len(touched))
    stack[0], bounds[0], top = counter[TOP], 0.0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        if queue >= 0 and bounds[top] > lowest:
            continue
        if node < leaves:
            for child in range(2 * node, 2 * node + 2):
                if sufficient(qs.all_tree, child, -1, sv.envelope, row):
                    bound, at = _bound(sv, qs, touched, child), top
                    if top > 0 and stack[top - 1] == child - 1 and bounds[top - 1] <= bound:
                        stack[top], bounds[top], at = child - 1, bounds[top - 1], top - 1
                    stack[at], bounds[at] = child, bound
                    top += 1
            continue
        q, g = qs.seated[node - leaves], np.int64(BIG)
        if qs.table[q, LISTED]:
            continue
        for t in range(len(touched)):
            g = min(g, first_group(sv, qs, tasks, q, touched[t], option))
        if g < BIG:
            s, value = best_among(sv, qs, tasks, g, q, touched, option)
            if queue < 0 or value < lowest or (value == lowest and q < queue):
                queue, server, group, lowest = q, s, g, value
    return queue, server, group


@compiled(inline=True)
def _bound(sv, qs, touched, node):  # type: ignore[no-untyped-def]
    """No queue below a node has a lower value on a touched server."""
    lowest = np.inf
    for t in range(len(touched)):
        bound = 0.0
        for r in range(qs.key.shape[1]):
            if qs.key[node, r] > 0:
                bound = max(bound, ROUNDED * qs.key[node, r] / sv.capacity[touched[t], r])
        lowest = min(lowest, bound)
    return lowest


@compiled(inline=True)
def _move(qs, k, to):  # type: ignore[no-untyped-def]
    for row in range(3, 8):
        qs.chosen[row, to] = qs.chosen[row, k]
    for row in range(2):
        qs.values[row, to] = qs.values[row, k]


@compiled(inner=True)
def _sort(qs, tasks, option, n):  # type: ignore[no-untyped-def]
    """Candidates by share, then by place: nearly sorted but the first time, so by insertion."""
    for k in range(n):
        qs.values[BY_SHARE, k] = share_of(qs, tasks, qs.chosen[ONE, k], option)
    spare = qs.chosen.shape[1] - 1
    for k in range(1, n):
        j = k
        if not _after(qs, j - 1, j):
            continue
        _move(qs, k, spare)
        while j > 0 and _after(qs, j - 1, spare):
            _move(qs, j - 1, j)
            j -= 1
        _move(qs, spare, j)


@compiled(inline=True)
def _after(qs, one, other):  # type: ignore[no-untyped-def]
    a, b = qs.values[BY_SHARE, one], qs.values[BY_SHARE, other]
    return a > b or (a == b and qs.chosen[ONE, one] > qs.chosen[ONE, other])


@compiled(inline=True)
def _best(sv, qs, tasks, option, counter, touched, k):  # type: ignore[no-untyped-def]
    """The next group of candidate k that fits, and its best server; False if there is none."""
    q, g = qs.chosen[ONE, k], np.int64(BIG)
    for t in range(len(touched)):
        g = min(g, first_group(sv, qs, tasks, q, touched[t], option))
    s, value = -1, np.inf
    while qs.chosen[BEGIN, k] < qs.chosen[STOP, k]:
        fresh = tasks.fresh[qs.chosen[BEGIN, k]]
        if fresh > g:
            break
        if tasks.group[fresh, WAIT] > 0:
            s, value = best_of_all(sv, qs, tasks, fresh, q, option, counter)
            if s >= 0:
                g = fresh
                break
        qs.chosen[BEGIN, k] += 1
    if s < 0 and g < BIG:
        s, value = best_among(sv, qs, tasks, g, q, touched, option)
    qs.chosen[NEXT_GROUP, k], qs.chosen[BEST, k], qs.values[VALUE, k] = g, s, value
    return s >= 0
