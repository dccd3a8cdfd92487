"""Compiled loops of `structured`: what a user couples, summed over users. Lists of pairs are sorted by user."""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def blocks(start, server, weight, left, right, extra, result):  # type: ignore[no-untyped-def]
    """Add every user's own diagonal blocks to result (servers, M, M), without a subtraction.

    The block of pair i is `weight_i left_i right_i^T (extra + sum_{j != i} weight_j)/(extra + sum_j weight_j)`.
    """
    users, size = len(start) - 1, left.shape[1]
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
                scaled = part * left[k, r]
                if scaled != 0.0:
                    for s in range(size):
                        result[i, r, s] += scaled * right[k, s]


@_compile
def couple(start, server, weight, left, right, extra, least, half, result):  # type: ignore[no-untyped-def]
    """Subtract `weight_i weight_j left_i right_j^T / (extra + sum weight)`, i != j, from result (servers M, servers M).

    Pairs with a weight below `least` of the user's `extra` are left out. `half`: only rows of a user's later server,
    columns of its earlier ones, one triangle where servers are in order.
    """
    users, size = len(start) - 1, left.shape[1]
    for n in range(users):
        first, last = start[n], start[n + 1]
        whole = extra[n]
        for k in range(first, last):
            whole += weight[k]
        kept = np.empty(last - first, np.int64)
        count = 0
        for k in range(first, last):
            if weight[k] > least * extra[n]:
                kept[count] = k
                count += 1
        for a in range(count):
            k = kept[a]
            for r in range(size):
                scaled = weight[k] * left[k, r] / whole
                if scaled != 0.0:
                    row = server[k] * size + r
                    for b in range(a if half else count):
                        if b != a:
                            j = kept[b]
                            factor = scaled * weight[j]
                            column = server[j] * size
                            for s in range(size):
                                result[row, column + s] -= factor * right[j, s]


@_compile
def spread(start, server, weight, vectors, scale, result):  # type: ignore[no-untyped-def]
    """result[n, server, :] = scale_n weight_k vectors[k, :] for the pairs k of user n."""
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            i = server[k] * vectors.shape[1]
            for r in range(vectors.shape[1]):
                result[n, i + r] = scale[n] * weight[k] * vectors[k, r]


@_compile
def counted(start, weight, extra, least):  # type: ignore[no-untyped-def]
    """Sum over users of the square of how many of their pairs have a weight above `least` of the user's `extra`."""
    total = 0.0
    for n in range(len(start) - 1):
        count = 0
        for k in range(start[n], start[n + 1]):
            if weight[k] > least * extra[n]:
                count += 1
        total += float(count) * count
    return total
