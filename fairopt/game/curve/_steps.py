"""Compiled: one step along the curve of equilibria, on one active set or to where that changes.

What may change is numbered: pairs, rows, users (by their limit), and at last log alpha reaching a value asked for. A
member of the active set leaves where its tasks, price or excess fall to 0, another enters where its slack, what idles
or the room below its limit does.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dense import factored, solved
from ._system import (
    bordered,
    copied,
    evaluate,
    moved,
    put,
    residual,
    slack_gradient,
    total_gradient,
    use_gradient,
)
from .options import STEP

#: What `_passed` says of a step that is to be shorter, whatever changes then.
_BEFORE = -2


@compiled
def distance(g, at, v, c, target):  # type: ignore[no-untyped-def]
    """How far number c is from a change, >= 0 on the curve."""
    pairs, rows = len(g.user), len(g.host)
    if c < pairs:
        return g.size[c] * at.z[c] / v.x[g.user[c]] if at.pair_on[c] else v.slack[c]
    if c < pairs + rows:
        return at.w[c - pairs] if at.row_on[c - pairs] else v.idle[c - pairs]
    n = c - pairs - rows
    if n < len(g.limit):
        return at.xi[n] if at.limit_on[n] else 1 - v.x[n] / g.limit[n]
    return abs(target - at.theta[0])


@compiled
def gradient(g, at, v, place, c, away, row):  # type: ignore[no-untyped-def]
    """Fill `row` (unknowns + 1,) with the derivative of the distance of c; `away`: is log alpha to fall?"""
    pairs, rows = len(g.user), len(g.host)
    row[:] = 0.0
    if c < pairs:
        if at.pair_on[c]:
            row[place[c]] = g.size[c] / v.x[g.user[c]]
        else:
            slack_gradient(g, at, v, place, c, row)
    elif c < pairs + rows:
        if at.row_on[c - pairs]:
            row[place[c]] = 1.0
        else:
            use_gradient(g, place, c - pairs, row)
            row *= -1.0
    elif c < pairs + rows + len(g.limit):
        if at.limit_on[c - pairs - rows]:
            row[place[c]] = 1.0
        else:
            total_gradient(g, place, c - pairs - rows, row)
            row *= -1.0
    else:
        row[len(row) - 1] = 1.0 if away else -1.0


@compiled
def _moves(g, at, place, t, dx, level, used):  # type: ignore[no-untyped-def]
    """Fill by how much users' tasks, log levels of the rows' servers, and use of rows change along t."""
    pairs, rows = len(g.user), len(g.host)
    of_server = np.zeros(g.host.max() + 1)
    for p in range(pairs):
        if place[p] >= 0:
            dx[g.user[p]] += g.size[p] * t[place[p]]
            for r in range(g.at.shape[1]):
                if g.cost[p, r] > 0:
                    used[g.at[p, r]] += g.cost[p, r] * t[place[p]]
    for k in range(rows):
        if at.stands[k]:
            of_server[g.host[k]] = t[place[pairs + k]]
    for k in range(rows):
        level[k] = of_server[g.host[k]]


@compiled
def _rates(g, at, v, place, t, rate):  # type: ignore[no-untyped-def]
    """Fill `rate` (pairs + rows + users,) with the change of distances along t, infinite where there is none."""
    pairs, rows, alpha = len(g.user), len(g.host), np.exp(at.theta[0])
    dx, level, used = np.zeros(len(g.limit)), np.empty(rows), np.zeros(rows)
    _moves(g, at, place, t, dx, level, used)
    for p in range(pairs):
        n = g.user[p]
        if place[p] >= 0:
            rate[p] = g.size[p] * t[place[p]] / v.x[n]
            continue
        rate[p] = dx[n] / v.x[n] + v.turn[p] * t[len(t) - 1]
        if at.limit_on[n]:
            rate[p] += t[place[pairs + rows + n]]
        for r in range(g.at.shape[1]):
            k = g.at[p, r]
            if k >= 0 and at.row_on[k]:
                rate[p] += v.felt[p, r] * at.w[k] * level[k]
                rate[p] += 0.0 if at.stands[k] else v.felt[p, r] * t[place[pairs + k]] / alpha
    for k in range(rows):
        rate[pairs + k] = -used[k]
        if at.row_on[k]:
            rate[pairs + k] = np.inf if at.stands[k] else t[place[pairs + k]]
    for n in range(len(g.limit)):
        rate[pairs + rows + n] = -dx[n] / g.limit[n] if g.limit[n] < np.inf else np.inf
        if at.limit_on[n]:
            rate[pairs + rows + n] = t[place[pairs + rows + n]]


@compiled
def weights(g, at, v, place, scale):  # type: ignore[no-untyped-def]
    """Fill `scale` (unknowns + 1,): squares of the units in which the curve's length is measured."""
    few = min(1.0, 10.0 / len(scale))
    scale[:] = few
    for p in range(len(g.user)):
        if place[p] >= 0:
            scale[place[p]] = few * (g.size[p] / v.x[g.user[p]]) ** 2
    scale[len(scale) - 1] = 1.0


@compiled
def _corrected(g, at, v, place, border, across, matrix, order, c, target, aim):  # type: ignore[no-untyped-def]
    """Newton's method from `at`, in place: to the plane across `across`, or to where c changes if that is not -1.

    `matrix` is what was factored where the step began. Returns the number of corrections, -1 for a failure.
    """
    count = len(border) - 1
    rhs, step, along = np.empty(count + 1), np.empty(count + 1), np.empty(count + 1)
    last, unit = np.zeros(count + 1), across
    last[count] = 1.0
    solved(matrix, order, last, along)
    if c >= 0:
        unit = np.empty(count + 1)
        if not evaluate(g, at, v):
            return -1
        gradient(g, at, v, place, c, target < at.theta[0], unit)
    before, matrices = np.inf, 1
    for turns in range(STEP.corrections):
        if not evaluate(g, at, v):
            return -1
        worst, off = residual(g, at, v, place, rhs), 0.0
        if c >= 0:
            off = distance(g, at, v, c, target)
            if c == len(place):
                off = at.theta[0] - target if target < at.theta[0] else target - at.theta[0]
                gradient(g, at, v, place, c, target < at.theta[0], unit)
        size = max(worst, abs(off))
        if size <= aim:
            return turns
        if not size < STEP.lost or (turns > 2 and size > before and size > STEP.hopeless):
            return -1
        if turns > 0 and size > STEP.slow * before and matrices < STEP.matrices:
            matrices += 1
            matrix[:] = bordered(g, at, v, place, border)
            if not factored(matrix, order) > 0:
                return -1
            solved(matrix, order, last, along)
        before = size
        solved(matrix, order, rhs, step)
        per = unit @ along
        if per == 0:
            return -1
        change = (-off - unit @ step) / per
        step += change * along
        for a in range(count + 1):
            if not np.isfinite(step[a]):
                return -1
        moved(g, at, place, step, 1.0)
    return -1


@compiled
def tangent(g, at, v, place, border, matrix, order, t, scale):  # type: ignore[no-untyped-def]
    """Fill t (unknowns + 1,) with the tangent of length 1 on the positive side of the border; is the matrix regular?"""
    count = len(border) - 1
    matrix[:] = bordered(g, at, v, place, border)
    if not factored(matrix, order) > 0:
        return False
    last = np.zeros(count + 1)
    last[count] = 1.0
    solved(matrix, order, last, t)
    weights(g, at, v, place, scale)
    length = np.sqrt((scale * t * t).sum())
    if not (length > 0 and np.isfinite(length)):
        return False
    t /= length
    return True


@compiled
def _aimed(g, at, v, place, t, length, target, first):  # type: ignore[no-untyped-def]
    """What changes first along t within `length` (-1: nothing), and where; fills distances, infinite for none."""
    whole, land, h = len(place), -1, length
    rate = np.empty(whole)
    _rates(g, at, v, place, t, rate)
    for c in range(whole):
        first[c] = max(distance(g, at, v, c, target), 0.0) if rate[c] < np.inf else np.inf
        if rate[c] < 0 and first[c] < -rate[c] * h:
            land, h = c, first[c] / -rate[c]
    left, pace = target - at.theta[0], t[len(t) - 1]
    if left * pace > 0 and abs(left) < abs(pace) * h:
        land, h = whole, left / pace
    return land, h


@compiled
def _passed(g, start, at, v, land, target, first):  # type: ignore[no-untyped-def]
    """What has changed on the way besides `land` (-1: nothing, -2: unknown), and after about which part of it."""
    worst, part = -1, 1.0
    for c in range(len(first)):
        if c != land and first[c] < np.inf:
            now = distance(g, at, v, c, target)
            if now == -np.inf:
                # The last price of a pair has gone to 0, where its cost has no logarithm: it enters before that.
                if part > STEP.nearly:
                    worst, part = _BEFORE, STEP.nearly
            elif now < -STEP.violated and first[c] / (first[c] - now) < part:
                worst, part = c, first[c] / (first[c] - now)
    before, after = start.theta[0] - target, at.theta[0] - target
    if worst == -1 and land != len(first) and before * after < 0 and abs(after) > STEP.reached:
        worst, part = len(first), abs(before) / abs(after - before)
    return worst, part


@compiled
def advanced(g, at, v, place, border, matrix, order, t, scale, length, shortest, target):  # type: ignore[no-untyped-def]
    """One step of at most `length` along t, in place: what changes at its end, or -1; corrections; its length.

    Corrections are -1 where no step of at least `shortest` succeeds. `target` may be NaN.
    """
    aim, first = STEP.exact * max(1.0, np.exp(at.theta[0]) / 10), np.empty(len(place))
    land, h = _aimed(g, at, v, place, t, length, target, first)
    start, across = copied(at), scale * t
    fresh = True
    for _ in range(STEP.attempts):
        if not fresh:
            evaluate(g, start, v)
            matrix[:] = bordered(g, start, v, place, border)
            factored(matrix, order)
        put(at, start)
        moved(g, at, place, t, h)
        turns = _corrected(g, at, v, place, border, across, matrix, order, land, target, aim)
        if land >= 0 and abs(at.theta[0] - start.theta[0]) > STEP.far * length:
            turns = -1  # Newton's method has gone to another place where it changes
        if turns < 0:
            h, land = STEP.shorter * h, -1
            if h < shortest:
                break
        else:
            worst, part = _passed(g, start, at, v, land, target, first)
            if worst == -1:
                return land, turns, h
            land, h = max(worst, -1), h * part
        fresh = False
    put(at, start)
    return -1, -1, h
