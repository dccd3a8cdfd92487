"""Servers in order of (ratio of what is free of the second and the first resource, place): an index for Best-Fit.

The order is kept in blocks of at most `ids.shape[1]` servers, each with copies of free amounts and of their ratios to
the first, side by side, as searches read them: `ratios[b, r - 1]` has those of resource r. The first `counter[NBLOCKS]`
entries of `directory` are blocks in order, the others are not in use; `most[q]` has the largest free amounts of the
q-th in order.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import NBLOCKS


@compiled(inner=True)
def locate(sv, counter, x, s):  # type: ignore[no-untyped-def]
    """Where (x, s) stands, or would: the place of its block in the directory, and how many of that stand before it."""
    directory, ratios, ids = sv.directory, sv.ratios, sv.ids
    low, high = 0, counter[NBLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        b = directory[middle]
        if x < ratios[b, 0, 0] or (x == ratios[b, 0, 0] and s < ids[b, 0]):
            high = middle
        else:
            low = middle
    q, b = low, directory[low]
    low, high = 0, sv.filled[b]
    while low < high:
        middle = (low + high) >> 1
        if ratios[b, 0, middle] < x or (ratios[b, 0, middle] == x and ids[b, middle] < s):
            low = middle + 1
        else:
            high = middle
    return q, low


@compiled(inline=True)
def ratio_of(free, s, r):  # type: ignore[no-untyped-def]
    """Free of a resource over free of the first; infinite without any of the first."""
    if free[s, 0] <= 0:
        return np.inf
    return free[s, r] / free[s, 0]


@compiled(inner=True)
def highest(sv, q):  # type: ignore[no-untyped-def]
    """The largest free amounts of the q-th block anew."""
    b = sv.directory[q]
    for r in range(sv.most.shape[1]):
        most = np.int64(-1)
        for k in range(sv.filled[b]):
            most = max(most, sv.have[b, r, k])
        sv.most[q, r] = most


@compiled(inline=True)
def fill(sv, order, counter):  # type: ignore[no-untyped-def]
    """All blocks anew, half full, from servers in order."""
    half = sv.ids.shape[1] // 2
    blocks = -(-len(order) // half)
    counter[NBLOCKS] = blocks
    for b in range(len(sv.directory)):
        sv.directory[b], sv.filled[b] = b, 0
    for k in range(len(order)):
        s, b = order[k], k // half
        sv.ids[b, k % half] = s
        for r in range(sv.most.shape[1]):
            sv.have[b, r, k % half] = sv.seen[s, r]
            if r > 0:
                sv.ratios[b, r - 1, k % half] = ratio_of(sv.seen, s, r)
        sv.filled[b] += 1
    for q in range(blocks):
        highest(sv, q)


@compiled(inline=True)
def split(sv, counter, q):  # type: ignore[no-untyped-def]
    """A full block becomes two; if no block is left all are filled anew."""
    directory, ratios, ids, have, filled, most = sv.directory, sv.ratios, sv.ids, sv.have, sv.filled, sv.most
    blocks, half = counter[NBLOCKS], ids.shape[1] // 2
    if blocks == len(directory):
        order, n = sv.order, 0
        for p in range(blocks):
            b = directory[p]
            for k in range(filled[b]):
                order[n] = ids[b, k]
                n += 1
        fill(sv, order[:n], counter)
        return
    b, new = directory[q], directory[blocks]
    for k in range(half, filled[b]):
        ids[new, k - half] = ids[b, k]
        for r in range(most.shape[1]):
            have[new, r, k - half] = have[b, r, k]
            if r > 0:
                ratios[new, r - 1, k - half] = ratios[b, r - 1, k]
    filled[new], filled[b] = filled[b] - half, half
    for p in range(blocks, q + 1, -1):
        directory[p] = directory[p - 1]
        for r in range(most.shape[1]):
            most[p, r] = most[p - 1, r]
    directory[q + 1] = new
    counter[NBLOCKS] = blocks + 1
    highest(sv, q)
    highest(sv, q + 1)


@compiled(inner=True)
def move(sv, counter, s):  # type: ignore[no-untyped-def]
    """Put a server where what is free of it belongs now."""
    directory, ratios, ids, have, filled, most = sv.directory, sv.ratios, sv.ids, sv.have, sv.filled, sv.most
    ratio, seen, free = sv.ratio, sv.seen, sv.free
    same = True
    for r in range(free.shape[1]):
        same = same and seen[s, r] == free[s, r]
    if same:
        return
    q, k = locate(sv, counter, ratio[s], s)
    b, again = directory[q], False
    filled[b] -= 1
    for j in range(k, filled[b]):
        ids[b, j] = ids[b, j + 1]
    for r in range(ratios.shape[1]):
        for j in range(k, filled[b]):
            ratios[b, r, j] = ratios[b, r, j + 1]
    for r in range(free.shape[1]):
        for j in range(k, filled[b]):
            have[b, r, j] = have[b, r, j + 1]
        again = again or seen[s, r] == most[q, r]
    if filled[b] == 0 and counter[NBLOCKS] > 1:
        counter[NBLOCKS] -= 1
        for p in range(q, counter[NBLOCKS]):
            directory[p] = directory[p + 1]
            for r in range(free.shape[1]):
                most[p, r] = most[p + 1, r]
        directory[counter[NBLOCKS]] = b
    elif again:
        highest(sv, q)
    ratio[s] = ratio_of(free, s, 1)
    q, k = locate(sv, counter, ratio[s], s)
    b = directory[q]
    for j in range(filled[b], k, -1):
        ids[b, j] = ids[b, j - 1]
    ids[b, k] = s
    for r in range(ratios.shape[1]):
        for j in range(filled[b], k, -1):
            ratios[b, r, j] = ratios[b, r, j - 1]
        ratios[b, r, k] = ratio_of(free, s, r + 1)
    for r in range(free.shape[1]):
        for j in range(filled[b], k, -1):
            have[b, r, j] = have[b, r, j - 1]
        have[b, r, k] = seen[s, r] = free[s, r]
        most[q, r] = max(most[q, r], free[s, r])
    filled[b] += 1
    if filled[b] == ids.shape[1]:
        split(sv, counter, q)
