"""Best-Fit: the server whose free resources are most like a demand, by a scan or outward from its ratio."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import NBLOCKS
from ._ratios import block_of, place_in


@compiled(inline=True)
def fits(demand, g, free, s):  # type: ignore[no-untyped-def]
    """Is there room for a task of a group?"""
    for r in range(free.shape[1]):
        if demand[g, r] > free[s, r]:
            return False
    return True


@compiled(inner=True)
def misfit(demand, g, free, pool, s, q):  # type: ignore[no-untyped-def]
    """DRFH's H(n, i), equation (9), in the order of operations of the plain policy; q: the first that is demanded."""
    need, base = demand[g, q] / pool[q], free[s, q] / pool[q]
    score = 0.0
    for r in range(free.shape[1]):
        if r != q:
            score += abs(demand[g, r] / pool[r] / need - free[s, r] / pool[r] / base)
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
    found, lowest = np.int64(-1), np.inf
    for k in range(len(servers)):
        s = servers[k]
        if fits(demand, g, free, s) and eligible[p, s]:
            if not best:
                if found < 0 or s < found:
                    found = s
                continue
            score = misfit(demand, g, free, sv.pool, s, q)
            if score < lowest or (score == lowest and s < found) or found < 0:
                found, lowest = s, score
    return found


@compiled(inner=True)
def best_by_ratio(sv, demand, g, p, counter):  # type: ignore[no-untyped-def]
    """The same by the index of ratios, for a group that demands the first resource."""
    directory, ratios, ids, count, most = sv.directory, sv.ratios, sv.ids, sv.filled, sv.most
    free, pool, eligible = sv.free, sv.pool, sv.eligible
    blocks, only = counter[NBLOCKS], free.shape[1] == 2
    x = demand[g, 1] / pool[1] / (demand[g, 0] / pool[0])
    begin = block_of(directory, ratios, ids, blocks, x, np.int64(-1))
    inside = place_in(ratios, ids, directory[begin], count[directory[begin]], x, np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    k = inside
    for q in range(begin, blocks):  # to larger ratios
        b = directory[q]
        if count[b] == 0 or (q > begin and ratios[b, 0] - x > lowest):
            break
        if _room(demand, g, most, b):
            while k < count[b] and ratios[b, k] - x <= lowest:
                s = ids[b, k]
                if fits(demand, g, free, s) and eligible[p, s]:
                    score = misfit(demand, g, free, pool, s, np.int64(0))
                    if score < lowest or (score == lowest and s < found) or found < 0:
                        found, lowest = s, score
                k += 1
        k = 0
    k = inside - 1
    limit, limited = 0.0, False  # with two resources servers of one ratio are looked at once, from the first on
    for q in range(begin, -1, -1):  # to smaller ones
        b = directory[q]
        if count[b] == 0 or (k >= 0 and x - ratios[b, min(k, count[b] - 1)] > lowest):
            break
        if k >= 0 and _room(demand, g, most, b):
            while k >= 0 and x - ratios[b, k] <= lowest:
                s = ids[b, k]
                if not (limited and ratios[b, k] == limit) and fits(demand, g, free, s) and eligible[p, s]:
                    if only:
                        limit, limited = ratios[b, k], True
                        s = _first_of(sv, demand, g, p, blocks, limit)
                    score = misfit(demand, g, free, pool, s, np.int64(0))
                    if score < lowest or (score == lowest and s < found) or found < 0:
                        found, lowest = s, score
                k -= 1
        if q > 0:
            k = count[directory[q - 1]] - 1
    return found


@compiled(inline=True)
def _room(demand, g, most, b):  # type: ignore[no-untyped-def]
    for r in range(most.shape[1]):
        if demand[g, r] > most[b, r]:
            return False
    return True


@compiled(inner=True)
def _first_of(sv, demand, g, p, blocks, x):  # type: ignore[no-untyped-def]
    """The first server of a ratio where a group fits; there is one."""
    directory, ratios, ids, count = sv.directory, sv.ratios, sv.ids, sv.filled
    begin = block_of(directory, ratios, ids, blocks, x, np.int64(-1))
    k = place_in(ratios, ids, directory[begin], count[directory[begin]], x, np.int64(-1))
    for q in range(begin, blocks):
        b = directory[q]
        if _room(demand, g, sv.most, b):
            while k < count[b]:
                s = ids[b, k]
                if fits(demand, g, sv.free, s) and sv.eligible[p, s]:
                    return s
                k += 1
        k = 0
    return -1
