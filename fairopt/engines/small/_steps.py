"""Compiled: one step of the interior point: Mehrotra's predictor and corrector, and a search along it.

Steps are relative and the system is not squared, so that its entries are about 1 and ties, pairs with more tasks than
prices determine, cost no digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ._conditions import slacks, totals
from ._newton import direction, factors
from .options import STEP


class State(NamedTuple):
    """Where a run is: fractions, slacks, prices `(v/unit)^power`, what idles."""

    z: np.ndarray
    s: np.ndarray
    m: np.ndarray
    w: np.ndarray
    unit: np.ndarray
    power: float


@compiled
def prices(at):  # type: ignore[no-untyped-def]
    """Level prices v, (rows,)."""
    return at.unit * at.m ** (1 / at.power)


@compiled
def begin(q, c, most):  # type: ignore[no-untyped-def]
    """Servers shared evenly and limits not reached; prices at which nobody buys more, in a power <= `most`."""
    pairs, limits = len(c.user), c.at.shape[1] - 1
    crowd, x = np.zeros(len(q.capacity)), np.zeros(len(q.demand))
    for p in range(pairs):
        crowd[c.server[p]] += 1
    z = STEP.use / crowd[c.server]
    totals(c, z, x)
    full = np.zeros(c.rows)
    for p in range(pairs):
        if c.at[p, limits] >= 0:
            full[c.at[p, limits]] += c.use[p, limits] * z[p]
    for p in range(pairs):
        if c.at[p, limits] >= 0 and full[c.at[p, limits]] > STEP.use:
            z[p] *= STEP.use / full[c.at[p, limits]]
    totals(c, z, x)
    unit, w = np.zeros(c.rows), np.ones(c.rows)
    for p in range(pairs):
        for r in range(limits + 1):
            if c.use[p, r] > 0:
                k = c.at[p, r]
                unit[k] = max(unit[k], np.exp(c.gain[p] - c.ratio * np.log(x[c.user[p]])))
                w[k] -= c.use[p, r] * z[p]
    share, s = np.empty(c.at.shape), np.empty(pairs)
    slacks(c, z, STEP.dear * unit, x, share, s)
    power = min(c.power, most)
    return State(z, np.maximum(s, STEP.slack), np.full(c.rows, STEP.dear**power), w, unit, power)


@compiled
def _residual(c, at, target, x, share, slack):  # type: ignore[no-untyped-def]
    """Norm of what is wrong with slacks and of how far products are from the target, and the worst slack."""
    slacks(c, at.z, prices(at), x, share, slack)
    total, worst = 0.0, 0.0
    for p in range(len(at.z)):
        off = abs(slack[p] - at.s[p]) * c.size[p] * at.z[p] / x[c.user[p]]
        total += off**2 + (at.z[p] * at.s[p] - target) ** 2
        worst = max(worst, off)
    for k in range(c.rows):
        total += (at.m[k] * at.w[k] - target) ** 2
    return np.sqrt(total), worst


@compiled
def _newton(c, at, target, slack, known, second, step):  # type: ignore[no-untyped-def]
    """Fill `step` (relative in z and m, absolute in s and w) to products `target` less `second`; its longest length.

    `step` and `second` are (pairs + rows, 2) and (pairs + rows,).
    """
    pairs = len(at.z)
    rhs = np.empty(pairs + c.rows)
    for p in range(pairs):
        rhs[p] = -slack[p] + (target - second[p]) / at.z[p]
    for k in range(c.rows):
        rhs[pairs + k] = 1 - (target - second[pairs + k]) / at.m[k]
    for p in range(pairs):
        for r in range(c.at.shape[1]):
            if c.use[p, r] > 0:
                rhs[pairs + c.at[p, r]] -= c.use[p, r] * at.z[p]
    direction(c, known, rhs[:pairs], rhs[pairs:], step[:pairs, 0], step[pairs:, 0])
    low = 1e-300
    for p in range(pairs):
        step[p, 1] = (target - second[p]) / at.z[p] - at.s[p] * (1 + step[p, 0])
        low = max(low, -step[p, 0], -step[p, 1] / at.s[p])
    for k in range(c.rows):
        j = pairs + k
        step[j, 1] = (target - second[j]) / at.m[k] - at.w[k] * (1 + step[j, 0])
        low = max(low, -step[j, 0], -step[j, 1] / at.w[k])
    return 1 / low


@compiled
def _moved(c, at, step, t):  # type: ignore[no-untyped-def]
    """The state after a step of length t."""
    pairs = len(at.z)
    z, s = at.z * (1 + t * step[:pairs, 0]), at.s + t * step[:pairs, 1]
    m, w = at.m * (1 + t * step[pairs:, 0]), at.w + t * step[pairs:, 1]
    return State(z, s, m, w, at.unit, at.power)


@compiled
def mean(at):  # type: ignore[no-untyped-def]
    """The average product."""
    return ((at.z * at.s).sum() + (at.m * at.w).sum()) / (len(at.z) + len(at.m))


@compiled
def stepped(c, at, mu, tuning, x, share, slack):  # type: ignore[no-untyped-def]
    """The state after one predictor, corrector and search, and the length of the step."""
    pairs, size = len(at.z), len(at.z) + c.rows
    worst = _residual(c, at, 0.0, x, share, slack)[1]
    step, second = np.empty((size, 2)), np.zeros(size)
    share /= at.power  # what logs of prices of tasks change by with relative changes of m
    known = factors(c, at.z, at.s, at.w, x, share)
    if not known.sound:
        return at, 0.0
    t = min(1.0, _newton(c, at, 0.0, slack, known, second, step))
    after = mean(_moved(c, at, step, t))
    part = max((after / mu) ** 3, STEP.short * (1 - t) ** 3, STEP.least_target)
    target = max(min(part, STEP.most_target) * mu, STEP.least)
    if mu > tuning.residual:
        target = max(target, min(STEP.residual * worst, mu))
    for p in range(pairs):
        second[p] = at.z[p] * step[p, 0] * step[p, 1]
    for k in range(c.rows):
        second[pairs + k] = at.m[k] * step[pairs + k, 0] * step[pairs + k, 1]
    inside = max(tuning.inside, 1 - np.sqrt(STEP.near * mu))
    t = min(1.0, inside * _newton(c, at, target, slack, known, second, step))
    for p in range(pairs):
        change = 0.0
        for r in range(c.at.shape[1]):
            if c.use[p, r] > 0:
                change += share[p, r] * step[pairs + c.at[p, r], 0]
        t = min(t, tuning.bound / max(abs(change), 1e-300))
    moved = _moved(c, at, step, t)
    if c.power > tuning.powers:
        most = (1 + tuning.worse) * _residual(c, at, target, x, share, slack)[0] + STEP.rounding
        for _ in range(STEP.halvings):
            if _residual(c, moved, target, x, share, slack)[0] <= most:
                break
            t *= 0.5
            moved = _moved(c, at, step, t)
    return moved, t
