"""MQDRF's caps by age."""

from __future__ import annotations

from ..._loops import compiled
from ._columns import ACTIVITY, FIRST, GROUPS, LOOK, SINCE, WAIT, WAITS, WHO
from ._events import look_at


@compiled(inline=True)
def limits_of(qs, tasks, counter):  # type: ignore[no-untyped-def]
    """Caps, and what may start again below them: groups of queues whose tasks ended or whose caps rose."""
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
