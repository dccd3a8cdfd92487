"""Servers in order of (ratio of what is free of the second and the first resource, place): an index for Best-Fit.

The order is kept in blocks of at most `ids.shape[1]` servers; `directory` has the blocks in order, and `most` the
largest free amounts of every block. A search walks outward from the ratio of the demand: for two resources the distance
is the score, for more a lower bound, and blocks without room are passed over.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._columns import NBLOCKS


@compiled(inline=True)
def before(x, s, y, t):  # type: ignore[no-untyped-def]
    """Does (x, s) stand before (y, t)?"""
    return x < y or (x == y and s < t)


@compiled(inner=True)
def block_of(directory, ratios, ids, blocks, x, s):  # type: ignore[no-untyped-def]
    """The place in the directory of the last block that begins at or before (x, s), else 0."""
    low, high = 0, blocks
    while high - low > 1:
        middle = (low + high) >> 1
        b = directory[middle]
        if before(x, s, ratios[b, 0], ids[b, 0]):
            high = middle
        else:
            low = middle
    return low


@compiled(inner=True)
def place_in(ratios, ids, b, count, x, s):  # type: ignore[no-untyped-def]
    """How many servers of a block stand before (x, s)."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if before(ratios[b, middle], ids[b, middle], x, s):
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inline=True)
def highest(most, ids, b, count, free):  # type: ignore[no-untyped-def]
    """The largest free amounts of a block anew; it stops as soon as the old ones are met."""
    for r in range(most.shape[1]):
        known, found = most[b, r], free[ids[b, 0], r]
        for k in range(count):
            if free[ids[b, k], r] > found:
                found = free[ids[b, k], r]
            if found >= known:
                break
        most[b, r] = found


@compiled(inline=True)
def ratio_of(free, pool, s):  # type: ignore[no-untyped-def]
    """Free of the second resource over free of the first, in parts of the pool; infinite without any of the first."""
    if free[s, 0] <= 0:
        return np.inf
    return free[s, 1] / pool[1] / (free[s, 0] / pool[0])


@compiled(inline=True)
def fill(sv, order, counter):  # type: ignore[no-untyped-def]
    """All blocks anew, half full, from servers in order."""
    directory, ratios, ids, count, most, ratio, seen = (
        sv.directory, sv.ratios, sv.ids, sv.filled, sv.most, sv.ratio, sv.seen)  # fmt: skip
    half = ids.shape[1] // 2
    blocks = 0
    for k in range(len(order)):
        s = order[k]
        if k % half == 0:
            b = blocks
            directory[blocks] = b
            blocks += 1
            count[b] = 0
            for r in range(most.shape[1]):
                most[b, r] = seen[s, r]
        ids[b, count[b]] = s
        ratios[b, count[b]] = ratio[s]
        count[b] += 1
        for r in range(most.shape[1]):
            if seen[s, r] > most[b, r]:
                most[b, r] = seen[s, r]
    for b in range(blocks, len(count)):
        count[b] = 0
    counter[NBLOCKS] = blocks


@compiled(inline=True)
def split(sv, counter, p):  # type: ignore[no-untyped-def]
    """A full block becomes two; if no block is left all are filled anew."""
    directory, ratios, ids, count, most, seen = sv.directory, sv.ratios, sv.ids, sv.filled, sv.most, sv.seen
    blocks, half = counter[NBLOCKS], ids.shape[1] // 2
    new = -1
    for b in range(len(count)):
        if count[b] == 0:
            new = b
            break
    if new < 0:
        order, n = sv.order, 0
        for q in range(blocks):
            b = directory[q]
            for k in range(count[b]):
                order[n] = ids[b, k]
                n += 1
        fill(sv, order[:n], counter)
        return
    b = directory[p]
    for k in range(half, count[b]):
        ids[new, k - half] = ids[b, k]
        ratios[new, k - half] = ratios[b, k]
    count[new] = count[b] - half
    count[b] = half
    for q in range(blocks, p + 1, -1):
        directory[q] = directory[q - 1]
    directory[p + 1] = new
    counter[NBLOCKS] = blocks + 1
    for c in (b, new):
        for r in range(most.shape[1]):
            most[c, r] = -1
        for k in range(count[c]):
            for r in range(most.shape[1]):
                if seen[ids[c, k], r] > most[c, r]:
                    most[c, r] = seen[ids[c, k], r]


@compiled(inner=True)
def move(sv, counter, s):  # type: ignore[no-untyped-def]
    """Put a server where what is free of it belongs now."""
    directory, ratios, ids, count, most = sv.directory, sv.ratios, sv.ids, sv.filled, sv.most
    ratio, seen, free = sv.ratio, sv.seen, sv.free
    same = True
    for r in range(free.shape[1]):
        same = same and seen[s, r] == free[s, r]
    if same:
        return
    blocks, new = counter[NBLOCKS], ratio_of(free, sv.pool, s)
    p = block_of(directory, ratios, ids, blocks, ratio[s], s)
    b = directory[p]
    k = place_in(ratios, ids, b, count[b], ratio[s], s)
    count[b] -= 1
    for j in range(k, count[b]):
        ids[b, j] = ids[b, j + 1]
        ratios[b, j] = ratios[b, j + 1]
    if count[b] == 0:
        if blocks > 1:
            for q in range(p, blocks - 1):
                directory[q] = directory[q + 1]
            counter[NBLOCKS] = blocks - 1
    else:
        highest(most, ids, b, count[b], seen)
    ratio[s] = new
    for r in range(free.shape[1]):
        seen[s, r] = free[s, r]
    p = block_of(directory, ratios, ids, counter[NBLOCKS], new, s)
    b = directory[p]
    k = place_in(ratios, ids, b, count[b], new, s)
    for j in range(count[b], k, -1):
        ids[b, j] = ids[b, j - 1]
        ratios[b, j] = ratios[b, j - 1]
    ids[b, k] = s
    ratios[b, k] = new
    for r in range(free.shape[1]):
        if count[b] == 0 or free[s, r] > most[b, r]:
            most[b, r] = free[s, r]
    count[b] += 1
    if count[b] == ids.shape[1]:
        split(sv, counter, p)
