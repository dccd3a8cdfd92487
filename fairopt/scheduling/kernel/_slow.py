"""Tasks that run slower on servers that are over-committed; as `plain.ThrashingSimulation`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._loops import compiled
from ._columns import AFTER, END, FACTOR, GROUP, HEAD, LEFT, MOVED, NMOVED, SINCE_THEN, SLOW, SLOWS, SLOWS_ALL, TIME
from ._heap import push


@compiled(inline=True)
def moved(sv, counter, s):  # type: ignore[no-untyped-def]
    """Other tasks run on a server than before."""
    if sv.table[s, MOVED] == 0:
        sv.table[s, MOVED] = 1
        sv.moved[counter[NMOVED]] = s
        counter[NMOVED] += 1


@compiled(inner=True)
def settle(sv, tasks, option, parameter, counter):  # type: ignore[no-untyped-def]
    """Look at the tasks of the servers where some started or ended: how fast they run now, and when they end."""
    run, pace, now = tasks.run, tasks.pace, counter[TIME]
    for k in range(counter[NMOVED]):
        s = sv.moved[k]
        sv.table[s, MOVED] = 0
        for a in range(sv.amount.shape[1]):
            sv.level[a] = _level(sv, tasks, s, a)
            if option[SLOWS] == SLOWS_ALL and sv.level[a] < np.inf:
                sv.level[a] = -1.0
        r = sv.table[s, HEAD]
        while r >= 0:
            slow = 0.0
            for a in range(sv.amount.shape[1]):
                if tasks.amount[run[r, GROUP], a] > sv.level[a]:
                    slow = 1.0
            if slow != pace[r, SLOW]:
                factor: Any = parameter[FACTOR] if pace[r, SLOW] else 1.0
                pace[r, LEFT] -= (now - pace[r, SINCE_THEN]) / factor
                pace[r, SLOW], pace[r, SINCE_THEN] = slow, now
                takes = pace[r, LEFT] * (parameter[FACTOR] if slow else 1.0)
                end = now + max(np.int64(np.ceil(takes)), np.int64(1))
                if end != run[r, END]:
                    run[r, END] = end
                    push(tasks.heap, run, counter, r)
            r = run[r, AFTER]
    counter[NMOVED] = 0


@compiled(inner=True)
def _level(sv, tasks, s, a):  # type: ignore[no-untyped-def]
    """The level up to which all tasks of a server are given what they demand; infinite where it has as much.

    Whoever demands at most an equal part of what is left is given that: the part rises, until nobody else is.
    """
    run, remaining, many = tasks.run, sv.amount[s, a], np.int64(0)
    limit: Any = np.int64(-1)  # demands up to here are given
    while True:
        left, count, total = remaining, np.int64(0), np.int64(0)
        r = sv.table[s, HEAD]
        while r >= 0:
            one = tasks.amount[run[r, GROUP], a]
            total += one
            if one <= limit:
                left -= one
            else:
                count += 1
            r = run[r, AFTER]
        if total <= remaining:
            return np.inf
        if count == many:
            return left / count
        many, limit = count, left // count
