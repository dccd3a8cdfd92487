"""Placement of tasks: a scan of few servers, or an index of many.

*Trees of types.* If the score depends only on the capacity of a server, it suffices to find the first server with room
of each type.

*Ratios.* For Best-Fit, servers are sorted by the ratio of their free amounts of the second and the first resource, and
then by index, in blocks of at most `ids.shape[1]` servers. A block has copies, contiguous in memory, of free amounts
and of their ratios to the amount of the first resource: `ratios[d, r - 1]` are the ratios of resource r in block d. The
first `n[BLOCKS]` entries of `directory` are the blocks in order, further entries are unused blocks; `most[b]` has the
largest free amounts of the b-th block in order.
"""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from .tables import BLOCKS, EXACT, PLACEMENT, QUEUE, SLOT, STALE, TREE, next_leaf, raised, sufficient

#: Bound on the rounding error of distances of ratios, relative to the ratios.
_NEAR = 1e-14
#: True if the index is the index of ratios.
RATIOS = False


@compiled(inline=True)
def score(t, g, q, s):  # type: ignore[no-untyped-def]
    """Score of a server by the policy; the lowest is chosen."""
    return 0.0


@compiled(inner=True)
def scan(t, g, servers):  # type: ignore[no-untyped-def]
    """Server of a list with room for a task and the lowest score, and this score; -1 and infinity if none has room."""
    q, p = t.groups[g, QUEUE], t.groups[g, PLACEMENT]
    found, lowest = np.int64(-1), np.inf
    for k in range(len(servers)):
        s = servers[k]
        if sufficient(t.free, s, 1, t.demand, g) and t.eligible[p, s]:
            value = score(t, g, q, s)
            if found < 0 or value < lowest or (value == lowest and s < found):
                found, lowest = s, value
    return found, lowest


@compiled(inner=True)
def find(t, g):  # type: ignore[no-untyped-def]
    """Server with room for a task and the lowest score over all servers, and this score; -1 if no server has room."""
    p = t.groups[g, PLACEMENT]
    if t.near_first[p + 1] > t.near_first[p]:
        return scan(t, g, t.near[t.near_first[p] : t.near_first[p + 1]])
    if t.n[STALE] > 0:
        _flush(t)
    if RATIOS:
        if t.demand[g, 0] + t.demand[g, 1] == 0:
            return scan(t, g, t.member)
        if t.demand[g, 0] > 0 and t.free.shape[1] == 2 and t.n[EXACT]:
            return _by_ratio(t, g)
        return _by_ratios(t, g)
    return _by_type(t, g)


@compiled(inner=True)
def _flush(t):  # type: ignore[no-untyped-def]
    """Update the index for the servers in the list `STALE`, whose free amounts have changed, and empty the list."""
    for k in range(t.n[STALE]):
        s = t.lists[STALE, k]
        t.servers[s, STALE] = 0
        if RATIOS:
            _move(t, s)
        else:
            _write_leaf(t, s)
    t.n[STALE] = 0


@compiled(inline=True)
def _write_leaf(t, s):  # type: ignore[no-untyped-def]
    """Write the free amounts of server s, and their mixtures, into its leaf of the tree of its type."""
    kind, amounts = t.servers[s, TREE], t.free.shape[1]
    base, leaf = t.types[kind, 0], t.types[kind, 1] + t.servers[s, SLOT]
    for r in range(amounts):
        t.tree[base + leaf, r] = t.free[s, r]
    for m in range(len(t.mix)):
        least = np.inf
        for r in range(amounts):
            least = min(least, t.mix[m, r] * t.free[s, r])
        t.tree[base + leaf, amounts + m] = np.int64(least)
    raised(t.tree, base, leaf)


@compiled(inner=True)
def _by_type(t, g):  # type: ignore[no-untyped-def]
    """Find a server as `find` does, type by type, from the last type on, where capacities are largest."""
    q, p = t.groups[g, QUEUE], t.groups[g, PLACEMENT]
    found, lowest = np.int64(-1), np.inf
    for kind in range(len(t.types) - 1, -1, -1):
        base, size, first = t.types[kind, 0], t.types[kind, 1], t.types[kind, 2]
        value = score(t, g, q, t.member[first])
        if found >= 0 and value > lowest:
            continue
        k = next_leaf(t.tree, base, size, np.int64(1), t.need, g, np.int64(0))
        while k >= 0 and not t.eligible[p, t.member[first + k]]:
            k = next_leaf(t.tree, base, size, np.int64(1), t.need, g, k + 1)
        if k >= 0 and (found < 0 or value < lowest or t.member[first + k] < found):
            found, lowest = t.member[first + k], value
    return found, lowest


@compiled(inner=True)
def _locate(t, x, s):  # type: ignore[no-untyped-def]
    """Position of ratio x and server s in the index: position of the block in the directory, and rank in the block."""
    directory, ratios, ids = t.directory, t.ratios, t.ids
    low, high = 0, t.n[BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        d = directory[middle]
        if x < ratios[d, 0, 0] or (x == ratios[d, 0, 0] and s < ids[d, 0]):
            high = middle
        else:
            low = middle
    b, d = low, directory[low]
    low, high = 0, t.filled[d]
    while low < high:
        middle = (low + high) >> 1
        if ratios[d, 0, middle] < x or (ratios[d, 0, middle] == x and ids[d, middle] < s):
            low = middle + 1
        else:
            high = middle
    return b, low


@compiled(inner=True)
def _by_ratio(t, g):  # type: ignore[no-untyped-def]
    """Find a server, as `find` does, for a group that demands the first of two resources.

    Servers are inspected in both directions from the ratio of the demand, since the distance of ratios is the score up
    to a factor and rounding: in each direction the first server with room is the best, except for ratios that differ by
    rounding errors. Servers of equal ratios have equal scores, as products are exact (`EXACT`).
    """
    q = t.groups[g, QUEUE]
    x, factor = t.demand[g, 1] / t.demand[g, 0], t.pool[0] / t.pool[1]
    begin, inside = _locate(t, x, np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    for step in range(1, -2, -2):  # first to larger ratios, then to smaller ratios
        b, k = begin, inside if step > 0 else inside - 1
        while True:
            b, k = _next(t, g, b, k, step, x, lowest / factor * (1 + _NEAR) + _NEAR * x)
            if b < 0:
                break
            here = t.ratios[t.directory[b], 0, k]
            first_b, first_k = b, k
            if step < 0:  # ties are broken by the first server of this ratio
                b, k = _locate(t, here, np.int64(-1))
                first_b, first_k = _next(t, g, b, k, np.int64(1), here, 0.0)
            s = t.ids[t.directory[first_b], first_k]
            value = score(t, g, q, s)
            if value < lowest or (value == lowest and s < found) or found < 0:
                found, lowest = s, value
            if step > 0:
                b, k = _locate(t, np.nextafter(here, np.inf), np.int64(-1))
            else:
                k -= 1
    return found, lowest


@compiled(inner=True)
def _next(t, g, b, k, step, x, far):  # type: ignore[no-untyped-def]
    """Position (block, entry) of the first server with room from entry k of block b on, in the direction `step`.

    The ratio of the server exceeds x, in this direction, by at most `far`; (-1, -1) if there is no such server.
    """
    p = t.groups[g, PLACEMENT]
    while 0 <= b < t.n[BLOCKS]:
        d = t.directory[b]
        if sufficient(t.most, b, 1, t.demand, g):
            while 0 <= k < t.filled[d] and step * (t.ratios[d, 0, k] - x) <= far:
                if _enough(t.demand, g, t.have, d, k) and t.eligible[p, t.ids[d, k]]:
                    return b, k
                k += step
            if 0 <= k < t.filled[d]:
                break
        b += step
        k = np.int64(0) if step > 0 or b < 0 else t.filled[t.directory[b]] - 1
    return np.int64(-1), np.int64(-1)


@compiled(inner=True)
def _by_ratios(t, g):  # type: ignore[no-untyped-def]
    """Find a server, as `find` does, by bounds of the score; for all cases in which `_by_ratio` does not apply.

    Scores are sums of distances of ratios. The ratios are stored in blocks, so that most servers are skipped without a
    test of their free amounts.
    """
    ratios, aim, q, p = t.ratios, t.aim, t.groups[g, QUEUE], t.groups[g, PLACEMENT]
    of = 0 if t.demand[g, 0] > 0 else 1
    for r in range(aim.shape[1]):
        aim[0, r], aim[1, r] = t.demand[g, r], t.pool[of] / (t.pool[r] * float(t.demand[g, of]))
    begin, inside = _locate(t, aim[0, 1] / aim[0, 0], np.int64(-1))
    found, lowest = np.int64(-1), np.inf
    for step in range(1, -2, -2):
        b, k, near = begin, inside if step > 0 else inside - 1, True
        while near and 0 <= b < t.n[BLOCKS]:
            d = t.directory[b]
            if sufficient(t.most, b, 1, t.demand, g):
                while 0 <= k < t.filled[d]:
                    if of == 0:
                        bound = _apart(aim, ratios[d, 0, k], 1)
                    else:
                        bound = (1 - _NEAR) * aim[0, 1] * aim[1, 0] / ratios[d, 0, k]
                    if bound > lowest:
                        near = False
                        break
                    if of == 0:
                        for r in range(2, aim.shape[1]):
                            bound += _apart(aim, ratios[d, r - 1, k], r)
                    s = t.ids[d, k]
                    if bound <= lowest and _enough(t.demand, g, t.have, d, k) and t.eligible[p, s]:
                        value = lowest if found >= 0 and _alike(t, d, k, found) else score(t, g, q, s)
                        if value < lowest or (value == lowest and s < found) or found < 0:
                            found, lowest = s, value
                    k += step
            b += step
            k = np.int64(0) if step > 0 or b < 0 else t.filled[t.directory[b]] - 1
    return found, lowest


@compiled(inline=True)
def _apart(aim, ratio, r):  # type: ignore[no-untyped-def]
    """Lower bound of the term of resource r in the score, from its ratio of free amounts to the first resource."""
    asked = ratio * aim[0, 0]
    return (abs(asked - aim[0, r]) - _NEAR * (asked + aim[0, r])) * aim[1, r]


@compiled(inline=True)
def _enough(demand, g, have, d, k):  # type: ignore[no-untyped-def]
    """True if the server of entry k in block d has room for a task of the group."""
    for r in range(have.shape[1]):
        if demand[g, r] > have[d, r, k]:
            return False
    return True


@compiled(inline=True)
def _alike(t, d, k, s):  # type: ignore[no-untyped-def]
    """True if an entry and a server have equal free amounts, hence equal scores."""
    for r in range(t.have.shape[1]):
        if t.have[d, r, k] != t.free[s, r]:
            return False
    return True


@compiled(inline=True)
def _ratio_of(free, s, r):  # type: ignore[no-untyped-def]
    """Ratio of the free amounts of resource r and of the first resource; infinite if nothing of the first is free."""
    return free[s, r] / free[s, 0] if free[s, 0] > 0 else np.inf


@compiled(inner=True)
def _highest(t, b):  # type: ignore[no-untyped-def]
    """Recompute the largest free amounts of the b-th block."""
    d = t.directory[b]
    for r in range(t.most.shape[1]):
        most = np.int64(-1)
        for k in range(t.filled[d]):
            most = max(most, t.have[d, r, k])
        t.most[b, r] = most


@compiled(inline=True)
def _write(t, d, k, s):  # type: ignore[no-untyped-def]
    """Write server s, its free amounts and their ratios into entry k of block d."""
    t.ids[d, k] = s
    for r in range(t.most.shape[1]):
        t.have[d, r, k] = t.seen[s, r]
        if r > 0:
            t.ratios[d, r - 1, k] = _ratio_of(t.seen, s, r)


@compiled(inner=True)
def _split(t, b):  # type: ignore[no-untyped-def]
    """Split a full block. There are at most as many blocks as servers, since no block is empty."""
    directory, filled, blocks, half = t.directory, t.filled, t.n[BLOCKS], t.ids.shape[1] // 2
    d, new = directory[b], directory[blocks]
    for k in range(half, filled[d]):
        _write(t, new, k - half, t.ids[d, k])
    filled[new], filled[d] = filled[d] - half, half
    _shift_blocks(t, blocks, b + 1, -1)
    directory[b + 1] = new
    t.n[BLOCKS] = blocks + 1
    _highest(t, b)
    _highest(t, b + 1)


@compiled(inline=True)
def _shift(row, begin, end, step):  # type: ignore[no-untyped-def]
    """Replace each entry from `begin` up to `end` by the next one in the direction `step`, 1 or -1."""
    for p in range(begin, end, step):
        row[p] = row[p + step]


@compiled(inline=True)
def _shift_blocks(t, begin, end, step):  # type: ignore[no-untyped-def]
    """Apply `_shift` to blocks of the directory, with their largest free amounts."""
    _shift(t.directory, begin, end, step)
    for r in range(t.most.shape[1]):
        _shift(t.most[:, r], begin, end, step)


@compiled(inline=True)
def _shift_servers(t, d, begin, end, step):  # type: ignore[no-untyped-def]
    """Apply `_shift` to the entries of block d, with their free amounts and ratios."""
    _shift(t.ids[d], begin, end, step)
    for r in range(t.ratios.shape[1]):
        _shift(t.ratios[d, r], begin, end, step)
    for r in range(t.have.shape[1]):
        _shift(t.have[d, r], begin, end, step)


@compiled(inner=True)
def _move(t, s):  # type: ignore[no-untyped-def]
    """Reinsert server s at the position of its current ratio of free resources."""
    filled, most, seen, free = t.filled, t.most, t.seen, t.free
    same = True
    for r in range(free.shape[1]):
        same = same and seen[s, r] == free[s, r]
    if same:
        return
    b, k = _locate(t, _ratio_of(seen, s, 1), s)
    d, had_most = t.directory[b], False
    filled[d] -= 1
    _shift_servers(t, d, k, filled[d], 1)
    for r in range(free.shape[1]):
        had_most = had_most or seen[s, r] == most[b, r]
        seen[s, r] = free[s, r]
    if filled[d] == 0 and t.n[BLOCKS] > 1:
        t.n[BLOCKS] -= 1
        _shift_blocks(t, b, t.n[BLOCKS], 1)
        t.directory[t.n[BLOCKS]] = d
    elif had_most:
        _highest(t, b)
    b, k = _locate(t, _ratio_of(seen, s, 1), s)
    d = t.directory[b]
    _shift_servers(t, d, filled[d], k, -1)
    for r in range(free.shape[1]):
        most[b, r] = max(most[b, r], free[s, r])
    _write(t, d, k, s)
    filled[d] += 1
    if filled[d] == t.ids.shape[1]:
        _split(t, b)
