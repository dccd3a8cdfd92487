"""Rounds of decisions, until none is left; as `scheduling/plain.py`, which looks at more."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import (
    ACTIVITY,
    AFTER_TASK,
    BASE,
    BIG,
    CHANGED,
    FIRST,
    FRESH,
    FURTHEST,
    GROUPS,
    LIMITED,
    LOOK,
    NFRESH,
    NO_PAIRS,
    NTOUCHED,
    PAIR,
    QUEUE,
    SHARE,
    SINCE,
    SIZE,
    STRICT,
    TOUCHED,
    VIRTUAL,
    WAIT,
    WAITS,
)
from ._events import look_at, start
from ._forest import next_leaf
from ._places import best_among, best_of_all, find, find_among
from ._waiting import allowed, first_group, head_of, lowest_queue, share_of

# Rows of `Queues.chosen` in a round: the queues with fresh groups, and where these begin and end in `Tasks.fresh`.
WHO, FROM, UNTIL = range(3)
# In rounds of pairs also candidates: the group that is next, its best server, the queue, the same places.
NEXT_GROUP, BEST, ONE, BEGIN, END = range(3, 8)
# Rows of `Queues.values`.
BY_SHARE, VALUE = range(2)
#: More touched servers than these are not looked at one by one.
FEW = 6


@compiled(inline=True)
def round_of(sv, qs, tasks, option, parameter, counter):  # type: ignore[no-untyped-def]
    """One round, and what was touched is forgotten."""
    if option[LIMITED]:
        _limits(qs, tasks, counter)
    if option[STRICT]:
        _strict(sv, qs, tasks, option, counter)
    elif counter[NTOUCHED] > 0 or counter[NFRESH] > 0:
        among = counter[NTOUCHED]
        if among > FEW and (option[PAIR] == NO_PAIRS or option[PAIR] == VIRTUAL):
            _all_fresh(sv, qs, tasks, counter)
            among = 0
        fresh = _fresh(qs, tasks, counter)
        if option[PAIR]:
            _pairs(sv, qs, tasks, option, parameter, counter, fresh, among)
        else:
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
    while qs.key[1] < np.inf:
        node = 1
        while node < leaves:
            node = 2 * node if qs.key[2 * node] == qs.key[node] else 2 * node + 1
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
    amounts, row = sv.free.shape[1], len(sv.envelope) - 1
    for r in range(amounts):
        sv.envelope[row, r] = -1
    for k in range(counter[NTOUCHED]):
        for r in range(amounts):
            sv.envelope[row, r] = max(sv.envelope[row, r], sv.free[sv.touched[k], r])
    for q in range(len(qs.table)):
        if qs.table[q, WAITS] > 0:
            base, size, k = qs.table[q, BASE], qs.table[q, SIZE], np.int64(-1)
            while True:
                k = next_leaf(qs.tree, base, size, np.int64(-1), sv.envelope, row, k + 1)
                if k < 0:
                    break
                look_at(tasks, counter, qs.table[q, FIRST] + k)


@compiled(inline=True)
def _fresh(qs, tasks, counter):  # type: ignore[no-untyped-def]
    """Sort the fresh groups, and note where those of every queue begin and end; how many queues have some."""
    n, queues = counter[NFRESH], np.int64(0)
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
                    known[t], key[t] = lowest_queue(sv, qs, tasks, touched[t], option)
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
                    share = qs.key[leaves + q]
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


@compiled(inner=True)
def _pairs(sv, qs, tasks, option, parameter, counter, queues, few):  # type: ignore[no-untyped-def]
    """The pair of queue and server with the lowest value.

    A queue's best server stays its best until the queue or that server is served: other values do not fall meanwhile.
    """
    touched, n, i = sv.touched[:few], np.int64(0), 0
    for q in range(len(qs.table)):
        begin, until = 0, 0
        if i < queues and qs.chosen[WHO, i] == q:
            begin, until = qs.chosen[FROM, i], qs.chosen[UNTIL, i]
            i += 1
        if qs.table[q, WAITS] == 0:
            continue
        qs.chosen[ONE, n], qs.chosen[BEGIN, n], qs.chosen[END, n] = q, begin, until
        if _best(sv, qs, tasks, option, counter, touched, n):
            n += 1
    if option[FURTHEST]:
        _sort(qs, tasks, option, n)
    while n > 0:
        among = max(1, int(np.ceil((1 - parameter[0]) * n))) if option[FURTHEST] else n
        chosen = np.int64(0)
        for k in range(1, among):
            value, least = qs.values[VALUE, k], qs.values[VALUE, chosen]
            if value < least or (value == least and qs.chosen[ONE, k] < qs.chosen[ONE, chosen]):
                chosen = k
        q, s, g = qs.chosen[ONE, chosen], qs.chosen[BEST, chosen], qs.chosen[NEXT_GROUP, chosen]
        start(sv, qs, tasks, option, counter, g, s)
        left = np.int64(0)
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
    while qs.chosen[BEGIN, k] < qs.chosen[END, k]:
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


@compiled(inline=True)
def _limits(qs, tasks, counter):  # type: ignore[no-untyped-def]
    """MQDRF's caps by age, and what may start again below them: groups of queues whose tasks ended or whose caps rose."""
    if counter[ACTIVITY]:
        counter[ACTIVITY] = 0
        levels, level, left = len(qs.level_size), 0, qs.level_size[0]
        for q in range(len(qs.table)):
            qs.chosen[WHO, q] = qs.table[q, SINCE] >= 0
        while level < levels:
            newest = -1  # of equal age the last in place
            for q in range(len(qs.table)):
                if qs.chosen[WHO, q] and (newest < 0 or qs.table[q, SINCE] >= qs.table[newest, SINCE]):
                    newest = q
            if newest < 0:
                break
            if level == levels - 1:
                for q in range(len(qs.table)):  # all that are left
                    if qs.chosen[WHO, q]:
                        _capped(qs, q, level)
                break
            qs.chosen[WHO, newest] = 0
            _capped(qs, newest, level)
            left -= 1
            if left == 0:
                level += 1
                left = qs.level_size[level]
    for q in range(len(qs.table)):
        if qs.table[q, LOOK]:
            qs.table[q, LOOK] = 0
            if qs.table[q, WAITS] > 0:
                first = qs.table[q, FIRST]
                for g in range(first, first + qs.table[q, GROUPS]):
                    if tasks.group[g, WAIT] > 0:
                        look_at(tasks, counter, g)


@compiled(inline=True)
def _capped(qs, q, level):  # type: ignore[no-untyped-def]
    if qs.level_cap[level] > qs.limit[q]:
        qs.table[q, LOOK] = 1
    qs.limit[q] = qs.level_cap[level]
