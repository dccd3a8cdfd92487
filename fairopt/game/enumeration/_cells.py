"""Compiled: depth-first product of faces over servers, pruned by counting and by linear programs in prices.

Counting: the pairs of a connected component ask for ties, one for each server of a user but the first; ties are
homogeneous linear equations in prices `lambda c`, so that a component with as many as rows has no prices in general.
Linear programs: users prefer the servers they are on, which is linear in prices too:

    cost_ni / exp(alpha gain_ni) = cost_nj / exp(alpha gain_nj)  (n on i and j),   <=  (n on i, not on j),

cost_ni = sum_r D_nir lambda_ir c_ir. Two servers at a time are tabulated; from three on all at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import bundle, compiled
from ._faces import highest


@bundle
class Game(NamedTuple):
    """Servers in the order in which they are gone through."""

    alpha: float
    use: np.ndarray  # (servers, users, resources), D
    gain: np.ndarray  # (servers, users), log phi gamma, -inf where not usable; users in units of their largest gamma
    size: np.ndarray  # (servers, users), gamma in these units
    middle: np.ndarray  # (servers,), what log prices are measured from
    reach: np.ndarray  # (servers,), users of this and of later servers, as bits
    strict: bool  # are prices of a cell compared with rounding?
    first: np.ndarray  # (servers + 1,), faces of each server
    support: np.ndarray  # (faces,), users, as bits
    rows: np.ndarray  # (faces,), priced resources, as bits
    table: np.ndarray  # two faces: 0 not known, 1 they go together, -1 they do not
    place: np.ndarray  # (servers, servers), where pairs of faces of these begin


@compiled
def bits(mask):  # type: ignore[no-untyped-def]
    """How many."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@compiled
def components(g, chosen, depth, label):  # type: ignore[no-untyped-def]
    """Fill the component of each of the first `depth` servers; how many there are."""
    for i in range(depth):
        label[i] = i
    changed = True
    while changed:
        changed = False
        for i in range(depth):
            for j in range(i):
                if label[i] != label[j] and g.support[chosen[i]] & g.support[chosen[j]]:
                    low, high = min(label[i], label[j]), max(label[i], label[j])
                    for k in range(depth):
                        if label[k] == high:
                            label[k] = low
                    changed = True
    count = 0
    for i in range(depth):
        if label[i] == i:
            for k in range(i, depth):
                if label[k] == i:
                    label[k] = -1 - count
            count += 1
    for i in range(depth):
        label[i] = -1 - label[i]
    return count


@compiled
def _counted(g, chosen, depth, label):  # type: ignore[no-untyped-def]
    """Has every component fewer ties than rows?"""
    count = components(g, chosen, depth, label)
    for c in range(count):
        pairs, rows, users = 0, 0, 0
        for i in range(depth):
            if label[i] == c:
                pairs += bits(g.support[chosen[i]])
                rows += bits(g.rows[chosen[i]])
                users |= g.support[chosen[i]]
        if pairs - bits(users) >= rows:
            return False
    return True


@compiled
def _cost(g, n, i, face, first, sign, row):  # type: ignore[no-untyped-def]
    """Add `sign cost_ni / exp(alpha (gain - middle))` to a row of coefficients; log scale in the caller's hands."""
    k = first
    for r in range(g.use.shape[2]):
        if g.rows[face] >> r & 1:
            row[k] += sign * g.use[i, n, r]
            k += 1


@compiled
def priced(g, servers, chosen, strict, prices):  # type: ignore[no-untyped-def]
    """Are there prices (positive if `strict`) at which users prefer to be where they are? Fills `prices` (rows,)."""
    count, users, total = len(servers), g.use.shape[1], 0
    begin = np.empty(count, np.int64)
    for a in range(count):
        begin[a] = total
        total += bits(g.rows[chosen[a]])
    table, level = np.zeros((2 * users * count + total, total)), np.zeros(2 * users * count + total)
    k = 0
    for n in range(users):
        home = -1
        for a in range(count):
            if g.support[chosen[a]] >> n & 1:
                home = a
                break
        if home < 0:
            continue
        for a in range(count):
            i, j = servers[home], servers[a]
            if a == home or g.gain[j, n] == -np.inf:
                continue
            apart = g.alpha * ((g.gain[j, n] - g.middle[j]) - (g.gain[i, n] - g.middle[i]))
            _cost(g, n, i, chosen[home], begin[home], np.exp(min(apart, 0.0)), table[k])
            _cost(g, n, j, chosen[a], begin[a], -np.exp(min(-apart, 0.0)), table[k])
            table[k] /= np.abs(table[k]).max()
            k += 1
            if g.support[chosen[a]] >> n & 1:
                table[k] = -table[k - 1]
                k += 1
    if strict:
        for r in range(total):
            table[k, r], level[k] = -1.0, 1.0
            k += 1
    else:
        table[k], level[k] = -1.0, 1.0
        k += 1
    found = highest(table[:k], level[:k], prices[:total])
    return found > 1e-10 or found == -1.0


@compiled
def _together(g, a, i, b, j, prices):  # type: ignore[no-untyped-def]
    """Do face a of server i and face b of server j go together? Looked up, or found once."""
    at = g.place[i, j] + (a - g.first[i]) * (g.first[j + 1] - g.first[j]) + b - g.first[j]
    if g.table[at] == 0:
        fits = priced(g, np.array([i, j]), np.array([a, b]), g.strict, prices)
        g.table[at] = 1 if fits else -1
    return g.table[at] > 0


@compiled
def _fits(g, chosen, depth, label, prices):  # type: ignore[no-untyped-def]
    """May the face of the last of `depth` servers stay?"""
    j, face = depth - 1, chosen[depth - 1]
    for i in range(j):
        at = g.place[i, j] + (chosen[i] - g.first[i]) * (g.first[j + 1] - g.first[j]) + face - g.first[j]
        if g.table[at] < 0:
            return False
    if not _counted(g, chosen, depth, label):
        return False
    for i in range(j):
        if not _together(g, chosen[i], i, face, j, prices):
            return False
    return depth <= 2 or priced(g, np.arange(depth), chosen[:depth], g.strict, prices)


@compiled
def cells(g, at, everybody, most, found, start, work):  # type: ignore[no-untyped-def]
    """Fill faces of servers (cells, servers) that go together, going on from where `at` (servers,) stands; how many.

    `start` (cells, servers, resources) are prices in the cell, 0 for none. `work` is the number of nodes looked at,
    which ends a call at `most`, and the server to go on with, -1 at the end.
    """
    servers, count = len(g.first) - 1, 0
    label, prices = np.empty(servers, np.int64), np.empty(servers * g.use.shape[2])
    covered, every = np.zeros(servers + 1, np.int64), np.arange(servers)
    depth = work[1]
    for i in range(depth):
        covered[i + 1] = covered[i] | g.support[at[i]]
    while True:
        if at[depth] == g.first[depth + 1]:
            if depth == 0:
                work[1] = -1
                return count
            at[depth] = g.first[depth]
            depth -= 1
            at[depth] += 1
            continue
        face = at[depth]
        covered[depth + 1] = covered[depth] | g.support[face]
        later = g.reach[depth + 1] if depth + 1 < servers else 0
        work[0] += 1
        fits = (covered[depth + 1] | later) == everybody and _fits(g, at, depth + 1, label, prices)
        if not fits:
            at[depth] += 1
        elif depth + 1 < servers:
            depth += 1
            at[depth] = g.first[depth]
        else:
            if priced(g, every, at, True, prices) or (not g.strict and priced(g, every, at, False, prices)):
                k = 0
                for i in range(servers):
                    for r in range(g.use.shape[2]):
                        start[count, i, r] = 0.0
                        if g.rows[at[i]] >> r & 1:
                            start[count, i, r] = prices[k]
                            k += 1
                found[count] = at
                count += 1
            at[depth] += 1
        if count == len(found) or work[0] >= most:
            work[1] = depth
            return count
