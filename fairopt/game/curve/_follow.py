"""Compiled: the curve of equilibria in tasks, prices and log alpha, from near alpha = 1 through folds.

On one active set it is smooth and followed by its length (Keller 1977); where a pair, row or limit enters or leaves it
turns, in the direction in which that one grows (Allgower and Georg, "Numerical Continuation Methods", 1990, chapter 12).
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._steps import advanced, gradient, tangent
from ._system import copied, evaluate, gauged, numbered, put, values_of

#: How a run ended.
ARRIVED, NO_START, STUCK, SPENT, SINGULAR = 0, 1, 2, 3, 4
#: A tangent whose part along log alpha is below this goes neither up nor down; values of log alpha are the same.
_LEVEL, _SAME = 1e-9, 1e-11


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
def sign_of(matrix, order, held):  # type: ignore[no-untyped-def]
    """The sign of the determinant of a factored matrix, times that of (-1)^held, rows and limits."""
    sign, seen = 1.0 if held % 2 == 0 else -1.0, np.zeros(len(order), np.bool_)
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
    """The number of the unknown, tasks or log alpha, that changes most along the tangent."""
    most, at = abs(t[len(t) - 1]), len(t) - 1
    for p in range(pairs):
        if place[p] >= 0 and abs(t[place[p]]) * np.sqrt(scale[place[p]]) > most:
            most, at = abs(t[place[p]]) * np.sqrt(scale[place[p]]), place[p]
    return at


@compiled
def _next(targets, theta, up):  # type: ignore[no-untyped-def]
    """The nearest of sorted targets above or below, NaN for none."""
    found = np.nan
    for k in range(len(targets)):
        if up and targets[k] > theta + _SAME:
            return targets[k]
        if not up and targets[k] < theta - _SAME:
            found = targets[k]
    return found


@compiled
def memory_of(at, control):  # type: ignore[no-untyped-def]
    """What a run that has not begun knows, for `follow` to go on with and to fill."""
    return np.array([control[0], -1.0, 1.0, -1.0, at.theta[0], np.nan, 0.0])


@compiled
def follow(  # type: ignore[no-untyped-def]
    g, at, targets, up, most, control, memory, before, z, log_price, xi, x, theta, index, jumps, jump_theta
):  # type: ignore[no-untyped-def]
    """Follow the curve until log alpha reaches the last of the sorted `targets` (the first if not `up`).

    `control` = (first, longest, shortest length of a step, the length to which a fold is met), `most` steps. Filled are
    at every crossing of a target z (records, pairs), log prices of rows, xi and tasks of users, log alpha and index; and
    at jumps, where log alpha comes back to its largest value so far, tasks before and after (jumps, 2, users) and log
    alpha. `memory` and `before` (users,) let another call go on. Returned are how it ended, crossings, jumps and steps.
    """
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    v, place = values_of(g), np.empty(pairs + rows + users, np.int64)
    length, records, jumped = memory[0], 0, 0
    event, way, main, forward = int(memory[1]), memory[2], int(memory[3]), 1.0 if up else -1.0
    end = targets[len(targets) - 1] if up else targets[0]
    reach, fold, gone = memory[4], memory[5], int(memory[6])
    back, back_main, back_way, back_up = copied(at), -1, 1.0, False
    for steps in range(most):
        gauged(g, at)
        if not evaluate(g, at, v):
            return SINGULAR, records, jumped, steps
        count = numbered(g, at, place)
        border, t, scale = np.zeros(count + 1), np.empty(count + 1), np.empty(count + 1)
        matrix, order = np.empty((count + 1, count + 1)), np.empty(count + 1, np.int64)
        if event >= 0:
            gradient(g, at, v, place, event, False, border)
        elif main >= 0 and place[main] >= 0:
            border[place[main]] = way
        else:
            border[count] = way if gone + steps > 0 else forward
        if not tangent(g, at, v, place, border, matrix, order, t, scale):
            return SINGULAR, records, jumped, steps
        rises = forward * t[count] > _LEVEL
        if back_up and not rises and event < 0 and length > control[3]:
            # A fold between here and the point before: nearer to it.
            put(at, back)
            length, main, way, back_up = 0.3 * length, back_main, back_way, True
            continue
        if not rises and not fold == fold and forward * (at.theta[0] - reach) > -_SAME:
            fold, before[:] = at.theta[0], v.x
        if rises and fold == fold and forward * (at.theta[0] - fold) >= -_SAME:
            apart = 0.0
            for n in range(users):
                apart = max(apart, abs(np.log(v.x[n] / before[n])))
            if apart > 1e-6 and jumped < len(jumps):
                jumps[jumped, 0], jumps[jumped, 1], jump_theta[jumped] = before, v.x, fold
                jumped += 1
            fold = np.nan
        reach = forward * max(forward * reach, forward * at.theta[0])
        target = _next(targets, at.theta[0], t[count] > 0) if abs(t[count]) > _LEVEL else np.nan
        if rises and fold == fold and not forward * (target - fold) < 0:
            target = fold
        put(back, at)
        back_main, back_way, back_up = main, way, rises and event < 0
        c = _main(t, place, pairs, scale)
        now_main, now_way = -1, 1.0 if t[c] > 0 else -1.0
        if c < count:
            for p in range(pairs):
                if place[p] == c:
                    now_main = p
        land, turns, done = advanced(
            g, at, v, place, border, matrix, order, t, scale, length, control[2], target
        )
        if turns < 0:
            return STUCK, records, jumped, steps
        if land < 0 and done < length:
            length = done
        length = min(length * (2.0 if turns <= 4 else 1.4 if turns <= 6 else 1.0 if turns <= 8 else 0.5), control[1])
        event, main, way = -1, now_main, now_way
        if land == len(place):
            at.theta[0] = target
            asked = False
            for k in range(len(targets)):
                asked |= targets[k] == target
            if asked:
                evaluate(g, at, v)
                found = matrix.copy()
                if records < len(z):
                    z[records], xi[records], x[records], theta[records] = at.z, at.xi, v.x, target
                    for k in range(rows):
                        on = at.row_on[k] and at.w[k] > 0
                        log_price[records, k] = np.exp(target) * at.level[k] + np.log(at.w[k]) if on else -np.inf
                    border[:] = 0.0
                    border[count] = 1.0
                    tangent(g, at, v, place, border, found, order, t, scale)
                    index[records] = sign_of(found, order, at.row_on.sum() + at.limit_on.sum())
                    records += 1
                if target == end:
                    memory[:] = np.array([length, event, way, main, reach, fold, gone + steps + 1])
                    return ARRIVED, records, jumped, steps + 1
        elif land >= 0:
            changed(g, at, land)
            event = land
            back_up = False
    memory[:] = np.array([length, event, way, main, reach, fold, gone + most])
    return SPENT, records, jumped, most
