"""Best-Fit: the server whose free resources are most like a demand, by a scan or outward from its ratio."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import NBLOCKS
from ._ratios import locate

#: Distances of ratios are rounded by less, relative to the ratios.
_NEAR = 1e-14


@compiled(inline=True)
def fits(demand, g, free, s):  # type: ignore[no-untyped-def]
    """Is there room for a task of a group?"""
    for r in range(free.shape[1]):
        if demand[g, r] > free[s, r]:
            return False
    return True


@compiled(inner=True)
def aim_at(sv, demand, g, q):  # type: ignore[no-untyped-def]
    """Set what `misfit` needs of a group, for every resource r: its demand, and what turns quotients into scores."""
    for r in range(len(sv.pool)):
        sv.aim[0, r], sv.aim[1, r] = demand[g, r], sv.pool[q] / (sv.pool[r] * float(demand[g, q]))


@compiled(inner=True)
def misfit(sv, s, q):  # type: ignore[no-untyped-def]
    """DRFH's H(n, i), equation (9), in the order of operations of the plain policy; q: the first that is demanded."""
    aim, score, have = sv.aim, 0.0, float(sv.free[s, q])
    need = aim[0, q]
    for r in range(sv.free.shape[1]):
        if r != q:
            score += abs(float(sv.free[s, r]) * need - aim[0, r] * have) / have * aim[1, r]
    return score


@compiled(inline=True)
def first_demanded(demand, g):  # type: ignore[no-untyped-def]
    """The first resource that a group demands."""
    q = np.int64(0)
    while demand[g, q] == 0:
        q += 1
    return q


@compiled(inner=True)
def best_by_scan(sv, demand, g, servers, p, best):  # type: ignore[no-untyped-def]
    """The server of a list with the lowest score, or -1; `best`: by score, else the first."""
    free, eligible = sv.free, sv.eligible
    q = first_demanded(demand, g) if best else np.int64(0)
    if best:
        aim_at(sv, demand, g, q)
    found, lowest = np.int64(-1), np.inf
    for k in range(len(servers)):
        s = servers[k]
        if fits(demand, g, free, s) and eligible[p, s]:
            if not best:
                if found < 0 or s < found:
                    found = s
                continue
            score = misfit(sv, s, q)
            if score < lowest or (score == lowest and s < found) or found < 0:
                found, lowest = s, score
    return found


@compiled(inner=True)
def best_by_ratio(sv, demand, g, p, counter):  # type: ignore[no-untyped-def]
    """The same of two resources by the index of ratios, for a group that demands the first.

    Outward from the ratio of the demand, whose distance is the score but for a factor and rounding: the first with room
    is the best of its side, but for ratios that rounding makes as far.
    """
    aim_at(sv, demand, g, np.int64(0))
    x, factor = demand[g, 1] / demand[g, 0], sv.aim[0, 0] * sv.aim[1, 1]
    begin, inside = locate(sv, counter, x, np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    for step in range(1, -2, -2):  # to larger ratios, and to smaller ones
        q, k = begin, inside if step > 0 else inside - 1
        while True:
            q, k = _next(sv, demand, g, p, counter, q, k, step, x, lowest / factor * (1 + _NEAR) + _NEAR * x)
            if q < 0:
                break
            here = sv.ratios[sv.directory[q], 0, k]
            i, j = q, k
            if step < 0:  # the first server of this ratio with room
                q, k = locate(sv, counter, here, np.int64(-1))
                i, j = _next(sv, demand, g, p, counter, q, k, 1, here, 0.0)
            s = sv.ids[sv.directory[i], j]
            score = misfit(sv, s, np.int64(0))
            if score < lowest or (score == lowest and s < found) or found < 0:
                found, lowest = s, score
            if step > 0:
                q, k = locate(sv, counter, np.nextafter(here, np.inf), np.int64(-1))
            else:
                k -= 1
    return found


@compiled(inner=True)
def best_by_ratios(sv, demand, g, p, counter):  # type: ignore[no-untyped-def]
    """The same of three resources or more, where that distance is the first part of the score, so a lower bound.

    Scores are sums of distances of ratios that blocks keep: most servers are passed without a look at their room.
    """
    aim_at(sv, demand, g, np.int64(0))
    ratios, aim = sv.ratios, sv.aim
    begin, inside = locate(sv, counter, demand[g, 1] / demand[g, 0], np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    for step in range(1, -2, -2):
        q, k, near = begin, inside if step > 0 else inside - 1, True
        while near and 0 <= q < counter[NBLOCKS]:
            b = sv.directory[q]
            if _room(demand, g, sv.most, q):
                while 0 <= k < sv.filled[b]:
                    bound = _apart(aim, ratios[b, 0, k], 1)
                    if bound > lowest:
                        near = False
                        break
                    for r in range(2, aim.shape[1]):
                        bound += _apart(aim, ratios[b, r - 1, k], r)
                    s = sv.ids[b, k]
                    if bound <= lowest and _enough(demand, g, sv.have, b, k) and sv.eligible[p, s]:
                        score = misfit(sv, s, np.int64(0))
                        if score < lowest or (score == lowest and s < found) or found < 0:
                            found, lowest = s, score
                    k += step
            q += step
            k = np.int64(0) if step > 0 or q < 0 else sv.filled[sv.directory[q]] - 1
    return found


@compiled(inner=True)
def best_from_top(sv, demand, g, p, counter):  # type: ignore[no-untyped-def]
    """The same for a group that demands the second resource but not the first: from the largest ratio down.

    The first part of the score is one over the ratio, but for rounding.
    """
    aim_at(sv, demand, g, np.int64(1))
    found, lowest, least = np.int64(-1), np.inf, 0.0
    for q in range(counter[NBLOCKS] - 1, -1, -1):
        b = sv.directory[q]
        if sv.ratios[b, 0, sv.filled[b] - 1] < least:
            break
        if _room(demand, g, sv.most, q):
            for k in range(sv.filled[b] - 1, -1, -1):
                if sv.ratios[b, 0, k] < least:
                    break
                s = sv.ids[b, k]
                if _enough(demand, g, sv.have, b, k) and sv.eligible[p, s]:
                    score = misfit(sv, s, np.int64(1))
                    if score < lowest or (score == lowest and s < found) or found < 0:
                        found, lowest, least = s, score, (1 - _NEAR) * sv.aim[0, 1] * sv.aim[1, 0] / score
    return found


@compiled(inner=True)
def _next(sv, demand, g, p, counter, q, k, step, x, far):  # type: ignore[no-untyped-def]
    """The first server with room from entry k of the q-th block on, not farther than so much from x; else -1."""
    while 0 <= q < counter[NBLOCKS]:
        b = sv.directory[q]
        if _room(demand, g, sv.most, q):
            while 0 <= k < sv.filled[b] and step * (sv.ratios[b, 0, k] - x) <= far:
                if _enough(demand, g, sv.have, b, k) and sv.eligible[p, sv.ids[b, k]]:
                    return q, k
                k += step
            if 0 <= k < sv.filled[b]:
                break
        q += step
        k = np.int64(0) if step > 0 or q < 0 else sv.filled[sv.directory[q]] - 1
    return np.int64(-1), np.int64(-1)


@compiled(inline=True)
def _apart(aim, ratio, r):  # type: ignore[no-untyped-def]
    """A part of the score, or a little less, from a server's ratio to the first resource."""
    asked = ratio * aim[0, 0]
    return (abs(asked - aim[0, r]) - _NEAR * (asked + aim[0, r])) * aim[1, r]


@compiled(inline=True)
def _room(demand, g, most, q):  # type: ignore[no-untyped-def]
    for r in range(most.shape[1]):
        if demand[g, r] > most[q, r]:
            return False
    return True


@compiled(inline=True)
def _enough(demand, g, have, b, k):  # type: ignore[no-untyped-def]
    for r in range(have.shape[1]):
        if demand[g, r] > have[b, r, k]:
            return False
    return True
