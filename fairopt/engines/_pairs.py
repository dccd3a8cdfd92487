"""Compiled loops of `welfare` and `central`: everything that is done once per pair (user, server).

Pairs are sorted by user; `vectors` (pairs, resources) is the part of each capacity that a unit of tasks takes.
"""

from __future__ import annotations

from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def cost(server, vectors, prices, result):  # type: ignore[no-untyped-def]
    """result[k] = vectors[k] . prices[server of k]."""
    for k in range(len(server)):
        i = server[k]
        total = 0.0
        for r in range(vectors.shape[1]):
            total += vectors[k, r] * prices[i, r]
        result[k] = total


@_compile
def used(server, vectors, tasks, result):  # type: ignore[no-untyped-def]
    """Add the part of every capacity in use, (servers, resources)."""
    for k in range(len(server)):
        i = server[k]
        for r in range(vectors.shape[1]):
            result[i, r] += vectors[k, r] * tasks[k]


@_compile
def gathered(start, server, vectors, base, weight, factor, result):  # type: ignore[no-untyped-def]
    """Add the use of `base_k + weight_k factor_n`, (servers, resources)."""
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            amount = base[k] + weight[k] * factor[n]
            i = server[k]
            for r in range(vectors.shape[1]):
                result[i, r] += vectors[k, r] * amount


@_compile
def weighted_cost(start, server, vectors, weight, prices, result):  # type: ignore[no-untyped-def]
    """result[n] = sum over pairs of weight_k vectors[k] . prices[server of k]."""
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            i = server[k]
            for r in range(vectors.shape[1]):
                total += weight[k] * vectors[k, r] * prices[i, r]
        result[n] = total


@_compile
def back(start, server, vectors, d_price, d_pay, wrong, tasks, slack, products, d_tasks, d_slack, sums):  # type: ignore[no-untyped-def]
    """Steps of slacks from the dual equation, then of tasks from the products, and their sums per user."""
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            i = server[k]
            change = wrong[k] - d_pay[n]
            for r in range(vectors.shape[1]):
                change += vectors[k, r] * d_price[i, r]
            d_slack[k] = change
            d_tasks[k] = (products[k] - tasks[k] * change) / slack[k]
            total += d_tasks[k]
        sums[n] = total


@_compile
def longest(values, steps):  # type: ignore[no-untyped-def]
    """The longest step, at most 1, that leaves no value negative."""
    result = 1.0
    for k in range(len(values)):
        if steps[k] < 0 and values[k] < -steps[k] * result:
            result = -values[k] / steps[k]
    return result
