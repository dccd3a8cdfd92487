"""Compiled loops over pairs of max-min: what is cheapest, and which pairs to add.

Pairs are sorted by user: those of n are `start[n]` to `start[n + 1]`.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled


@compiled
def cheapest(start, server, use, prices, result):  # type: ignore[no-untyped-def]
    """result[n] = the least cost of a pair of user n."""
    for n in range(len(start) - 1):
        least = np.inf
        for k in range(start[n], start[n + 1]):
            total = 0.0
            for r in range(use.shape[1]):
                total += use[k, r] * prices[server[k], r]
            least = min(least, total)
        result[n] = least


@compiled
def inside(server, use, load, amount, result):  # type: ignore[no-untyped-def]
    """result[k] = amount[k], less where a resource that the pair uses is loaded by more than 1."""
    for k in range(len(server)):
        most = 1.0
        for r in range(use.shape[1]):
            if use[k, r] > 0.0:
                most = max(most, load[server[k], r])
        result[k] = amount[k] / most


@compiled
def enter(start, server, use, prices, most_cost, most, active):  # type: ignore[no-untyped-def]
    """Mark up to `most` pairs per user that cost less than `most_cost[n]`, the cheapest first; how many in all."""
    found = 0
    best, where = np.empty(most), np.empty(most, np.int64)
    for n in range(len(start) - 1):
        count = 0
        for k in range(start[n], start[n + 1]):
            if active[k]:
                continue
            total = 0.0
            for r in range(use.shape[1]):
                total += use[k, r] * prices[server[k], r]
            if total < most_cost[n] and (count < most or total < best[most - 1]):
                count = min(count + 1, most)
                at = count - 1
                while at > 0 and best[at - 1] > total:
                    best[at], where[at] = best[at - 1], where[at - 1]
                    at -= 1
                best[at], where[at] = total, k
        for j in range(count):
            active[where[j]] = True
        found += count
    return found
