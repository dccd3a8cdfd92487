"""Residual of the optimality conditions of one server's problem, in tasks.

0 < alpha < infinity, as certificates have it: at prices lambda user n would have the share `w / norm`, with
`norm^alpha = sum_r D lambda`. By how much that exceeds what it has, up to its limit, is owed to it; where it is less,
its tasks here count by how much dearer they are, times their part of all its tasks; and what idles at a price counts
by the largest part of that price in anybody's. alpha = 0: the linear program's gap, relative to its bound. alpha =
infinity: the relative rise that the server owes to somebody (`certificates.bottleneck`). Under a utility of one's own
alpha counts as 1: errors are those of prices.
"""

from __future__ import annotations

import numpy as np

from ...certificates import bottleneck
from ...model._arrays import Array
from .server_program import ServerProgram


def residual(program: ServerProgram, elsewhere: Array, fraction: Array, log_price: Array) -> float:
    """The largest violation; `elsewhere` in tasks, `fraction` (users here,), log prices of whole capacities (rows)."""
    has, room = elsewhere / program.gamma, program.room(elsewhere)
    use = program.use.toarray()
    over = max(float((use @ fraction).max(initial=0.0)) - 1, float((fraction - room).max(initial=0.0)))
    if np.isinf(program.alpha):
        share = has + fraction
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = bottleneck.rises(
                use.T.copy(), np.ones(len(use)), fraction, share / program.weight, share, has + room
            )
        return max(over, float(rises.max(initial=0.0)))
    if program.alpha == 0:
        prices = np.exp(log_price)
        return max(over, _missing(fraction, room, use.T @ prices, float(prices.sum())))
    with np.errstate(all="ignore"):
        return max(over, _misplaced(program, has, fraction, room, use, log_price))


def _missing(fraction: Array, room: Array, cost: Array, value: float) -> float:
    """The linear program's gap, relative: a fraction is worth 1 to everybody, and capacity `value` in all."""
    bound = value + float((np.maximum(1 - cost, 0.0) * np.minimum(room, 1.0)).sum())
    return (bound - float(fraction.sum())) / max(bound, np.finfo(float).tiny)


def _misplaced(program: ServerProgram, has: Array, fraction: Array, room: Array, use: Array, log_price: Array) -> float:
    alpha, share = program.alpha, has + fraction
    paid = np.log(use) + log_price[:, None]  # (rows, users)
    cost = np.logaddexp.reduce(paid, axis=0)
    marginal = program.log_worth(share)
    off = (marginal - cost) / alpha
    under_allocation = np.minimum(np.expm1(np.minimum(off, 700.0)), (room - fraction) / share)
    here = -fraction / share * np.expm1(off)
    part = np.exp(np.minimum(paid - np.maximum(cost, marginal), 0.0)).max(axis=1)
    idle_priced = np.maximum(1 - use @ fraction, 0.0) * part
    values = np.concatenate([np.where(off > 0, under_allocation, np.where(fraction > 0, here, 0.0)), idle_priced])
    return float(values.max(initial=0.0)) if not np.isnan(values).any() else np.inf
