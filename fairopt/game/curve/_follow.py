"""Compiled: the curve of equilibria in tasks, prices and log alpha, from near alpha = 1 through folds.

On one active set it is smooth and followed by its length (Keller 1977). Where a pair, row or limit enters or leaves, it
turns in the direction in which that one grows (Allgower and Georg, "Numerical Continuation Methods", 1990, chapter 12).
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dense import factored
from ._gauge import gauged
from ._steps import advanced, gradient, tangent
from ._system import bordered, copied, evaluate, numbered, put, values_of
from .options import RUN

#: How a run ended.
ARRIVED, NO_START, STUCK, SPENT, SINGULAR = 0, 1, 2, 3, 4


@compiled
def changed(g, at, c):  # type: ignore[no-untyped-def]
    """What is at its end leaves the active set or enters it."""
    pairs, rows = len(g.user), len(g.host)
    if c < pairs:
        at.pair_on[c] = not at.pair_on[c]
        at.z[c] = 0.0
    elif c < pairs + rows:
        at.row_on[c - pairs] = not at.row_on[c - pairs]
        at.w[c - pairs] = 0.0
        at.stands[c - pairs] = False
    else:
        n = c - pairs - rows
        at.limit_on[n] = not at.limit_on[n]
        at.xi[n] = 0.0


@compiled
def sign_of(matrix, order, fixed):  # type: ignore[no-untyped-def]
    """The sign of the determinant of a factored matrix, times that of (-1)^held, rows and limits."""
    sign, seen = 1.0 if fixed % 2 == 0 else -1.0, np.zeros(len(order), np.bool_)
    for k in range(len(order)):
        if matrix[k, k] < 0:
            sign = -sign
        if not seen[k]:
            j, cycle = k, 0
            while not seen[j]:
                seen[j] = True
                j = order[j]
                cycle += 1
            if cycle % 2 == 0:
                sign = -sign
    return sign


@compiled
def _main(t, place, pairs, scale):  # type: ignore[no-untyped-def]
    """The pair whose tasks change most along the tangent, or -1 for log alpha, and which way."""
    last = len(t) - 1
    most, at, way = abs(t[last]), -1, t[last]
    for p in range(pairs):
        if place[p] >= 0 and abs(t[place[p]]) * np.sqrt(scale[place[p]]) > most:
            most, at, way = abs(t[place[p]]) * np.sqrt(scale[place[p]]), p, t[place[p]]
    return at, 1.0 if way > 0 else -1.0


@compiled
def _next(targets, theta, up):  # type: ignore[no-untyped-def]
    """The nearest of sorted targets above or below, NaN for none."""
    found = np.nan
    for k in range(len(targets)):
        if up and targets[k] > theta + RUN.same:
            return targets[k]
        if not up and targets[k] < theta - RUN.same:
            found = targets[k]
    return found


@compiled
def memory_of(at, control):  # type: ignore[no-untyped-def]
    """What a run that has not begun knows, for `follow` to go on with and to fill."""
    return np.array([control[0], -1.0, 1.0, -1.0, at.theta[0], np.nan, 0.0])


@compiled
def _bordered_by(g, at, v, place, event, main, way, border):  # type: ignore[no-untyped-def]
    """Fill the border: what entered or left last, or the unknown that changed most, goes on as it did."""
    border[:] = 0.0
    if event >= 0:
        gradient(g, at, v, place, event, False, border)
    elif main >= 0 and place[main] >= 0:
        border[place[main]] = way
    else:
        border[len(border) - 1] = way


@compiled
def _apart(one, other):  # type: ignore[no-untyped-def]
    """The largest difference of logarithms."""
    return np.abs(np.log(one / other)).max()


@compiled
def _asked(targets, theta):  # type: ignore[no-untyped-def]
    """Is it one of the targets?"""
    for one in targets:  # noqa: SIM110 (compiled)
        if one == theta:
            return True
    return False


@compiled
def _recorded(g, at, v, place, matrix, order, k, z, log_price, xi, x, theta, index):  # type: ignore[no-untyped-def]
    """Write down a crossing as number k."""
    evaluate(g, at, v)
    z[k], xi[k], x[k], theta[k] = at.z, at.xi, v.x, at.theta[0]
    for j in range(len(g.host)):
        on = at.row_on[j] and at.w[j] > 0
        log_price[k, j] = np.exp(at.theta[0]) * at.level[j] + np.log(at.w[j]) if on else -np.inf
    border = np.zeros(len(matrix))
    border[len(matrix) - 1] = 1.0
    matrix[:] = bordered(g, at, v, place, border)
    factored(matrix, order)
    index[k] = sign_of(matrix, order, at.row_on.sum() + at.limit_on.sum())


@compiled
def _met(at, v, rises, forward, reach, fold, before, jumped, jumps, jump_theta):  # type: ignore[no-untyped-def]
    """Log alpha of the fold that the curve is in (NaN: none), and how many jumps there are: one more where it ends."""
    if not rises and fold != fold and forward * (at.theta[0] - reach) > -RUN.same:
        before[:] = v.x
        return at.theta[0], jumped
    if rises and forward * (at.theta[0] - fold) >= -RUN.same:
        if _apart(v.x, before) > RUN.jump and jumped < len(jumps):
            jumps[jumped, 0], jumps[jumped, 1], jump_theta[jumped] = before, v.x, fold
            jumped += 1
        return np.nan, jumped
    return fold, jumped


@compiled
def _longer(length, turns, longest):  # type: ignore[no-untyped-def]
    """The next length after a step that took so many corrections."""
    for corrections, factor in RUN.growth:
        if turns <= corrections:
            return min(length * factor, longest)
    return min(length / 2, longest)


@compiled
def follow(  # type: ignore[no-untyped-def]
    g, at, targets, up, most, control, memory, before, z, log_price, xi, x, theta, index, jumps, jump_theta
):
    """Follow the curve until log alpha reaches the last of the sorted `targets` (the first if not `up`).

    `control` = (first, longest, shortest length of a step, the length to which a fold is met), `most` steps. Filled are
    at every crossing of a target z (records, pairs), log prices of rows, xi and tasks of users, log alpha and index;
    at jumps, where log alpha comes back to its largest value so far, tasks before and after (jumps, 2, users) and log
    alpha. `memory` and `before` (users,) let another call go on. Returned are how it ended, crossings, jumps and steps.
    """
    v, place = values_of(g), np.empty(len(g.user) + len(g.host) + len(g.limit), np.int64)
    length, records, jumped, forward = memory[0], 0, 0, 1.0 if up else -1.0
    event, way, main, reach, fold = int(memory[1]), memory[2], int(memory[3]), memory[4], memory[5]
    way = way if memory[6] > 0 else forward
    end = targets[len(targets) - 1] if up else targets[0]
    back, back_main, back_way, back_up = copied(at), -1, 1.0, False
    for steps in range(most):
        gauged(g, at)
        count = numbered(g, at, place)
        border, t, scale = np.empty(count + 1), np.empty(count + 1), np.empty(count + 1)
        matrix, order = np.empty((count + 1, count + 1)), np.empty(count + 1, np.int64)
        if not evaluate(g, at, v):
            return SINGULAR, records, jumped, steps
        _bordered_by(g, at, v, place, event, main, way, border)
        if not tangent(g, at, v, place, border, matrix, order, t, scale):
            return SINGULAR, records, jumped, steps
        rises = forward * t[count] > RUN.level
        if back_up and not rises and event < 0 and length > control[3]:
            # A fold lies between here and the point before: nearer to it.
            put(at, back)
            length, main, way = RUN.back * length, back_main, back_way
            continue
        fold, jumped = _met(at, v, rises, forward, reach, fold, before, jumped, jumps, jump_theta)
        reach = max(reach, at.theta[0]) if up else min(reach, at.theta[0])
        target = _next(targets, at.theta[0], t[count] > 0) if abs(t[count]) > RUN.level else np.nan
        if rises and fold == fold and not forward * (target - fold) < 0:
            target = fold
        put(back, at)
        back_main, back_way, back_up = main, way, rises and event < 0
        main, way = _main(t, place, len(g.user), scale)
        land, turns, done = advanced(g, at, v, place, border, matrix, order, t, scale, length, control[2], target)
        if turns < 0:
            return STUCK, records, jumped, steps
        length = _longer(done if land < 0 else length, turns, control[1])
        event = -1
        if land == len(place):
            at.theta[0] = target
            if _asked(targets, target) and records < len(z):
                _recorded(g, at, v, place, matrix, order, records, z, log_price, xi, x, theta, index)
                records += 1
            if target == end:
                memory[:] = np.array([length, event, way, main, reach, fold, 1.0])
                return ARRIVED, records, jumped, steps + 1
        elif land >= 0:
            changed(g, at, land)
            event, back_up = land, False
    memory[:] = np.array([length, event, way, main, reach, fold, 1.0])
    return SPENT, records, jumped, most
