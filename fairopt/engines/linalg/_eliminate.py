"""Compiled loops of `structured`: what a user couples, summed over users. Lists of pairs are sorted by user."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._loops import compiled

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@compiled
def blocks(start, server, weight, vectors, extra, result):  # type: ignore[no-untyped-def]
    """Add every user's own diagonal blocks to result (servers, M, M), without a subtraction.

    The block of pair i is `weight_i a_i a_i^T (extra + sum_{j != i} weight_j)/(extra + sum_j weight_j)`.
    """
    users, size = len(start) - 1, vectors.shape[1]
    for n in range(users):
        first, last = start[n], start[n + 1]
        after = 0.0
        for k in range(first, last):
            after += weight[k]
        whole = extra[n] + after
        # Sums of the others from both sides: the difference `after - weight` would cancel.
        tail = np.zeros(last - first + 1)
        for k in range(last - 1, first - 1, -1):
            tail[k - first] = tail[k - first + 1] + weight[k]
        before = 0.0
        for k in range(first, last):
            part = weight[k] * (extra[n] + before + tail[k - first + 1]) / whole
            before += weight[k]
            i = server[k]
            for r in range(size):
                scaled = part * vectors[k, r]
                if scaled != 0.0:
                    for s in range(size):
                        result[i, r, s] += scaled * vectors[k, s]


def couple(
    start: Index,
    server: Index,
    weight: Array,
    vectors: Array,
    extra: Array,
    least: Array,
    result: NDArray[np.floating],
) -> None:
    """Subtract `weight_i weight_j a_i a_j^T / (extra + sum weight)`, i > j, from result (servers M, servers M).

    Pairs of n with a weight below `least[n]` are left out. Only rows of a user's later server, columns of its earlier
    ones, one triangle where servers are in order. Server by server, for the sake of caches.
    """
    _coupling(vectors.shape[1])(start, server, weight, vectors, extra, least, result)


@compiled
def _subtract_four(row, at, part, right):  # type: ignore[no-untyped-def]
    """row[at + s] -= part right[s]; four are loaded before one is stored, so that they become one operation."""
    c0, c1, c2, c3 = right[0], right[1], right[2], right[3]
    r0, r1, r2, r3 = row[at], row[at + 1], row[at + 2], row[at + 3]
    row[at], row[at + 1] = r0 - part * c0, r1 - part * c1
    row[at + 2], row[at + 3] = r2 - part * c2, r3 - part * c3


@lru_cache
def _coupling(size: int) -> Any:
    """`couple` for a number of resources: inner loops of a known length are nearly twice as fast.

    It encloses nothing but a number: a compiled loop enclosed in another differs from process to process, and the
    other would be compiled again in each.
    """

    @compiled
    def coupled(start, server, weight, vectors, extra, least, result):  # type: ignore[no-untyped-def]
        users, servers = len(start) - 1, result.shape[0] // size
        kept = np.zeros(users + 1, np.int64)
        for n in range(users):
            kept[n + 1] = kept[n]
            for k in range(start[n], start[n + 1]):
                if weight[k] > least[n]:
                    kept[n + 1] += 1
        total = kept[users]
        user, where, first = np.empty(total, np.int64), np.empty(total, np.int64), np.zeros(servers + 1, np.int64)
        lefts, rights = np.empty((total, size), result.dtype), np.empty((total, size), result.dtype)
        at = 0
        for n in range(users):
            whole = extra[n]
            for k in range(start[n], start[n + 1]):
                whole += weight[k]
            for k in range(start[n], start[n + 1]):
                if weight[k] > least[n]:
                    user[at], where[at] = n, server[k] * size
                    first[server[k] + 1] += 1
                    for r in range(size):
                        lefts[at, r] = weight[k] * vectors[k, r] / whole
                        rights[at, r] = weight[k] * vectors[k, r]
                    at += 1
        for i in range(servers):
            first[i + 1] += first[i]
        order, place = np.empty(total, np.int64), first.copy()
        for a in range(total):
            i = where[a] // size
            order[place[i]] = a
            place[i] += 1
        for i in range(servers):
            for o in range(first[i], first[i + 1]):
                a = order[o]
                n = user[a]
                for b in range(kept[n], a):
                    for r in range(size):
                        row, part = result[i * size + r], lefts[a, r]
                        if size == 4:
                            _subtract_four(row, where[b], part, rights[b])
                        else:
                            for s in range(size):
                                row[where[b] + s] -= part * rights[b, s]

    return coupled


@compiled
def apply(start, server, weight, vectors, extra, given, result):  # type: ignore[no-untyped-def]
    """Add to result (servers, M) what the sum over users, without the diagonal, makes of `given` (servers, M)."""
    longest = 0
    for n in range(len(start) - 1):
        longest = max(longest, start[n + 1] - start[n])
    cost, size = np.empty(longest), vectors.shape[1]
    for n in range(len(start) - 1):
        first, whole, total = start[n], extra[n], 0.0
        for k in range(first, start[n + 1]):
            i, c = server[k], 0.0
            for r in range(size):
                c += vectors[k, r] * given[i, r]
            cost[k - first] = c
            whole += weight[k]
            total += weight[k] * c
        for k in range(first, start[n + 1]):
            i, amount = server[k], weight[k] * (cost[k - first] - total / whole)
            for r in range(size):
                result[i, r] += vectors[k, r] * amount


@compiled
def spread(users, start, server, weight, vectors, scale, result):  # type: ignore[no-untyped-def]
    """result[j, server, :] = scale_n weight_k vectors[k, :] for the pairs k of user n = users[j]."""
    for j in range(len(users)):
        n = users[j]
        for k in range(start[n], start[n + 1]):
            i = server[k] * vectors.shape[1]
            for r in range(vectors.shape[1]):
                result[j, i + r] = scale[n] * weight[k] * vectors[k, r]


@compiled
def scaled(matrix, scale):  # type: ignore[no-untyped-def]
    """Multiply rows and columns of the lower triangle by `scale`."""
    for i in range(len(scale)):
        for j in range(i + 1):
            matrix[i, j] *= scale[i] * scale[j]


@compiled
def counted(start, weight, least):  # type: ignore[no-untyped-def]
    """How many pairs of each user have a weight above `least[n]`, (users,)."""
    counts = np.zeros(len(start) - 1)
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            if weight[k] > least[n]:
                counts[n] += 1
    return counts
