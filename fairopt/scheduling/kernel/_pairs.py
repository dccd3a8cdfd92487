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
    NEXT_GROUP,
    ONE,
    STOP,
    UNTIL,
    VALUE,
    WAIT,
    WAITS,
    WHO,
)
from ._events import start
from ._forest import next_leaf
from ._places import best_among, best_of_all, envelope_of
from ._waiting import first_group, share_of


@compiled(inner=True)
def pairs_of(sv, qs, tasks, option, parameter, counter, queues, few):  # type: ignore[no-untyped-def]
    """The pair of queue and server with the lowest value.

    A queue's best server stays its best until the queue or that server is served: other values do not fall meanwhile.
    """
    touched, i, row, leaves = sv.touched[:few], 0, envelope_of(sv, few), len(qs.all_tree) // 2
    n: Any = np.int64(0)
    q: Any = np.int64(-1)
    while True:  # queues with a group that may fit a touched server, or with a fresh one
        q = next_leaf(qs.all_tree, np.int64(0), leaves, np.int64(-1), sv.envelope, row, q + 1) if few > 0 else -1
        if i < queues and (q < 0 or qs.chosen[WHO, i] < q):
            q = qs.chosen[WHO, i]
        if q < 0:
            break
        begin, until = 0, 0
        if i < queues and qs.chosen[WHO, i] == q:
            begin, until = qs.chosen[FROM, i], qs.chosen[UNTIL, i]
            i += 1
        if qs.table[q, WAITS] == 0:
            continue
        qs.chosen[ONE, n], qs.chosen[BEGIN, n], qs.chosen[STOP, n] = q, begin, until
        if _best(sv, qs, tasks, option, counter, touched, n):
            n += 1
    if option[FURTHEST]:
        _sort(qs, tasks, option, n)
    while n > 0:
        among = max(1, int(np.ceil((1 - parameter[FAIRNESS]) * n))) if option[FURTHEST] else n
        chosen: Any = np.int64(0)
        for k in range(1, among):
            value, least = qs.values[VALUE, k], qs.values[VALUE, chosen]
            if value < least or (value == least and qs.chosen[ONE, k] < qs.chosen[ONE, chosen]):
                chosen = k
        q, s, g = qs.chosen[ONE, chosen], qs.chosen[BEST, chosen], qs.chosen[NEXT_GROUP, chosen]
        start(sv, qs, tasks, option, counter, g, s)
        left: Any = np.int64(0)
        for k in range(n):
            keep = True
            if qs.chosen[ONE, k] == q or qs.chosen[BEST, k] == s:
                keep = qs.table[qs.chosen[ONE, k], WAITS] > 0 and _best(sv, qs, tasks, option, counter, touched, k)
            if keep:
                if left < k:
                    _move(qs, k, left)
                left += 1
        n = left
        if option[FURTHEST]:
            _sort(qs, tasks, option, n)


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


@compiled(inner=True)
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
