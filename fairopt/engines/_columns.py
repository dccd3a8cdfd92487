"""Compiled loops over pairs of `level_interior`: prices of pairs, sums over users and servers, which pairs to take in.

Pairs are sorted by user: those of n are `start[n]` to `start[n + 1]`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def costs(server, use, prices, result):  # type: ignore[no-untyped-def]
    """result[k] = sum_r use[k, r] prices[server_k, r]."""
    for k in range(len(server)):
        total = 0.0
        for r in range(use.shape[1]):
            total += use[k, r] * prices[server[k], r]
        result[k] = total


@_compile
def used(server, use, amount, result):  # type: ignore[no-untyped-def]
    """result[i, r] += sum over the pairs k of server i of use[k, r] amount[k]."""
    for k in range(len(server)):
        for r in range(use.shape[1]):
            result[server[k], r] += use[k, r] * amount[k]


@_compile
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


@_compile
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


@_compile
def right_hand(start, server, use, ratio, whole, ry, z, dual, rv, p, short, own, c0, rhs):  # type: ignore[no-untyped-def]
    """What is left of Newton's equations for prices when users are eliminated.

    own = ry/z - ratio dual,  c0 = rv/p - short - sum_i own,  rhs[i, r] += use (own + ratio c0/whole).
    """
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            own[k] = ry[k] / z[k] - ratio[k] * dual[k]
            total += own[k]
        c0[n] = rv[n] / p[n] - short[n] - total
        part = c0[n] / whole[n]
        for k in range(start[n], start[n + 1]):
            amount = own[k] + ratio[k] * part
            for r in range(use.shape[1]):
                rhs[server[k], r] += use[k, r] * amount


@_compile
def recover(start, server, use, ratio, whole, ry, z, dual, base, d_prices, dp, dz, dy):  # type: ignore[no-untyped-def]
    """Steps of users and pairs from those of prices; `base` is what a user's worth moves by besides.

    The slack comes from the dual equation, never from complementarity, where a small one would be lost.
    """
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            cost = 0.0
            for r in range(use.shape[1]):
                cost += use[k, r] * d_prices[server[k], r]
            dz[k] = cost
            total += ratio[k] * cost
        dp[n] = (total + base[n]) / whole[n]
        for k in range(start[n], start[n + 1]):
            dz[k] += dual[k] - dp[n]
            dy[k] = ry[k] / z[k] - ratio[k] * dz[k]
