"""Best-Fit: the server whose free resources are most like a demand, by a scan or outward from its ratio."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import NBLOCKS
from ._ratios import locate


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
    """The same by the index of ratios, for a group that demands the first resource.

    Outward from the ratio of the demand. For two resources the distance is the score: the first with room is the best
    of its side, but for ratios that rounding makes as far. For more the distance is a lower bound.
    """
    ratios, two = sv.ratios, sv.free.shape[1] == 2
    x = demand[g, 1] / sv.pool[1] / (demand[g, 0] / sv.pool[0])
    begin, inside = locate(sv, counter, x, np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    q, k = begin, inside
    while True:  # to larger ratios
        q, k = _upwards(sv, demand, g, p, counter, q, k, x, lowest)
        if q < 0:
            break
        b = sv.directory[q]
        s, here = sv.ids[b, k], ratios[b, k]
        score = here - x if two else misfit(demand, g, sv.free, sv.pool, s, np.int64(0))
        if score < lowest or (score == lowest and s < found) or found < 0:
            found, lowest = s, score
        k += 1
        if two:
            after = np.nextafter(here, np.inf)
            if after - x > lowest:
                break
            q, k = locate(sv, counter, after, np.int64(-1))
    q, k = begin, inside - 1
    while True:  # to smaller ones
        q, k = _downwards(sv, demand, g, p, q, k, x, lowest)
        if q < 0:
            return found
        b = sv.directory[q]
        s, here = sv.ids[b, k], ratios[b, k]
        if two:  # the first server of this ratio with room
            q, k = locate(sv, counter, here, np.int64(-1))
            i, j = _upwards(sv, demand, g, p, counter, q, k, here, 0.0)
            s = sv.ids[sv.directory[i], j]
        score = x - here if two else misfit(demand, g, sv.free, sv.pool, s, np.int64(0))
        if score < lowest or (score == lowest and s < found) or found < 0:
            found, lowest = s, score
        if two and x - np.nextafter(here, -np.inf) > lowest:
            return found
        k -= 1


@compiled(inner=True)
def best_from_top(sv, demand, g, p, counter):  # type: ignore[no-untyped-def]
    """The same for a group that demands the second resource but not the first: from the largest ratio down.

    The first part of the score is one over the ratio, but for rounding.
    """
    found, lowest, least = np.int64(-1), np.inf, 0.0
    for q in range(counter[NBLOCKS] - 1, -1, -1):
        b = sv.directory[q]
        if sv.ratios[b, sv.filled[b] - 1] < least:
            break
        if _room(demand, g, sv.most, q):
            for k in range(sv.filled[b] - 1, -1, -1):
                if sv.ratios[b, k] < least:
                    break
                s = sv.ids[b, k]
                if _enough(demand, g, sv.have, b, k) and sv.eligible[p, s]:
                    score = misfit(demand, g, sv.free, sv.pool, s, np.int64(1))
                    if score < lowest or (score == lowest and s < found) or found < 0:
                        found, lowest, least = s, score, (1 - 1e-14) / score
    return found


@compiled(inner=True)
def _upwards(sv, demand, g, p, counter, q, k, x, far):  # type: ignore[no-untyped-def]
    """The first server with room from entry k of the q-th block on, not farther than so much from x; else -1."""
    while q < counter[NBLOCKS]:
        b = sv.directory[q]
        if _room(demand, g, sv.most, q):
            while k < sv.filled[b] and sv.ratios[b, k] - x <= far:
                if _enough(demand, g, sv.have, b, k) and sv.eligible[p, sv.ids[b, k]]:
                    return q, k
                k += 1
            if k < sv.filled[b]:
                break
        q, k = q + 1, np.int64(0)
    return np.int64(-1), np.int64(-1)


@compiled(inner=True)
def _downwards(sv, demand, g, p, q, k, x, far):  # type: ignore[no-untyped-def]
    """The same in the other direction."""
    while True:
        b = sv.directory[q]
        if k >= 0 and _room(demand, g, sv.most, q):
            while k >= 0 and x - sv.ratios[b, k] <= far:
                if _enough(demand, g, sv.have, b, k) and sv.eligible[p, sv.ids[b, k]]:
                    return q, k
                k -= 1
            if k >= 0:
                break
        if q == 0:
            break
        q -= 1
        k = sv.filled[sv.directory[q]] - 1
    return np.int64(-1), np.int64(-1)


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
