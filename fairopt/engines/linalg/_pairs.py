"""Compiled loops of interior points: everything that is done once per pair (user, server).

Pairs are sorted by user; `vectors` (pairs, resources) is the part of each capacity that a unit of tasks takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._loops import compiled


@compiled
def cost(server, vectors, prices, result):  # type: ignore[no-untyped-def]
    """result[k] = vectors[k] . prices[server of k]."""
    for k in range(len(server)):
        i = server[k]
        total = 0.0
        for r in range(vectors.shape[1]):
            total += vectors[k, r] * prices[i, r]
        result[k] = total


@compiled
def used(server, vectors, tasks, result):  # type: ignore[no-untyped-def]
    """Add the part of every capacity in use, (servers, resources)."""
    for k in range(len(server)):
        i = server[k]
        for r in range(vectors.shape[1]):
            result[i, r] += vectors[k, r] * tasks[k]


@compiled
def gathered(start, server, vectors, weight, factor, result):  # type: ignore[no-untyped-def]
    """Add the use of `weight_k factor_n`, (servers, resources)."""
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            amount = weight[k] * factor[n]
            i = server[k]
            for r in range(vectors.shape[1]):
                result[i, r] += vectors[k, r] * amount


@compiled
def pushed(start, server, vectors, weight, slack, products, residual, requested, whole, sums, free, result):  # type: ignore[no-untyped-def]
    """What products and errors of pairs ask for, `base = products/slack - weight residual`: its sums per user, what is
    then left of `requested` per unit of `whole` (`free`), and the use of `base + weight free`, added to result."""
    kept = np.empty(np.max(start[1:] - start[:-1]))
    for n in range(len(start) - 1):
        first = start[n]
        total = 0.0
        for k in range(first, start[n + 1]):
            kept[k - first] = products[k] / slack[k] - weight[k] * residual[k]
            total += kept[k - first]
        sums[n] = total
        free[n] = (requested[n] - total) / whole[n]
        for k in range(first, start[n + 1]):
            amount = kept[k - first] + weight[k] * free[n]
            i = server[k]
            for r in range(vectors.shape[1]):
                result[i, r] += vectors[k, r] * amount


@compiled
def weighted_cost(start, server, vectors, weight, prices, result):  # type: ignore[no-untyped-def]
    """result[n] = sum over pairs of weight_k vectors[k] . prices[server of k]."""
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            i = server[k]
            cost = 0.0
            for r in range(vectors.shape[1]):
                cost += vectors[k, r] * prices[i, r]
            total += weight[k] * cost
        result[n] = total


@compiled
def back(start, server, vectors, d_price, d_user_price, residual, tasks, slack, products, d_tasks, d_slack, sums, use):  # type: ignore[no-untyped-def]
    """Steps of slacks from the dual equation, then of tasks from the products; their sums per user, and their use."""
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            i = server[k]
            change = residual[k] - d_user_price[n]
            for r in range(vectors.shape[1]):
                change += vectors[k, r] * d_price[i, r]
            d_slack[k] = change
            step = (products[k] - tasks[k] * change) / slack[k]
            d_tasks[k] = step
            total += step
            for r in range(vectors.shape[1]):
                use[i, r] += vectors[k, r] * step
        sums[n] = total


@compiled
def beyond(tasks, slack, d_tasks, d_slack, far, low, high, result):  # type: ignore[no-untyped-def]
    """What would bring products after a step `far` back to between low and high, taking away at most high."""
    for k in range(len(tasks)):
        product = (tasks[k] + far * d_tasks[k]) * (slack[k] + far * d_slack[k])
        result[k] = max(min(max(product, low), high) - product, -high)


@compiled(fastmath={"nnan", "nsz"})
def fastest(values, steps):  # type: ignore[no-untyped-def]
    """The largest rate, steps over values, at which a value falls; 0 if none does."""
    result = 0.0
    for k in range(len(values)):
        rate = -steps[k] / values[k]
        result = rate if rate > result else result
    return result


def longest(values: NDArray[np.float64], steps: NDArray[np.float64]) -> float:
    """The longest step, at most 1, that leaves no value negative."""
    return 1 / max(float(fastest(values, steps)), 1.0)
