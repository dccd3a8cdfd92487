"""Compiled loops of `screening`: over all pairs, whose costs are products of needs and prices."""

from __future__ import annotations

from ..._loops import compiled


@compiled
def near(start, server, need, ask, user_price, aside, far, marked):  # type: ignore[no-untyped-def]
    """Mark the pairs aside that cost less than `pay_n + far_n`."""
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            if aside[k]:
                z = -user_price[n]
                for r in range(need.shape[1]):
                    z += need[n, r] * ask[server[k], r]
                marked[k] = marked[k] or z < far[n]


@compiled
def fastest(start, server, need, ask, d_ask, user_price, d_user_price, aside, soon, called):  # type: ignore[no-untyped-def]
    """The largest rate at which the slack of a pair aside falls, relative to itself; 0 if none does.

    `called[k]` is set where it is above `soon`.
    """
    result = 0.0
    for n in range(len(start) - 1):
        for k in range(start[n], start[n + 1]):
            if aside[k]:
                z, d_z = -user_price[n], -d_user_price[n]
                for r in range(need.shape[1]):
                    z += need[n, r] * ask[server[k], r]
                    d_z += need[n, r] * d_ask[server[k], r]
                called[k] = -d_z > soon * z
                if -d_z > result * z:
                    result = -d_z / z
    return result
