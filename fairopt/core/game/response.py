"""Compiled: the exact best response of one server. Users in units of their largest gamma.

At alpha = infinity: progressive filling. For finite alpha unknown are level prices `q_r = log v_r`. A user asks for
`X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)` tasks in all, less what it has elsewhere; prices make use equal
capacity, or are zero. Newton's steps for the dual, which is convex in v^alpha: a common one of all prices, along which
tasks in all are linear in 1/v, and on top of it one of each, linear in a power of v and within bounds, which shrink
where a step went too far. Where that does not help, and now and then, each price in turn, by bisection, ever more
often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array

#: Residuals of responses, relative to capacities, beside what rounding leaves of the users' sums.
_EXACT, _ROUNDED = 1e-13, 2e-15
#: By how much a price, the power alpha of v, may fall at first if alpha is small; a log level price by 1.
_REACH = 0.02
#: A step is good if at its end the dual rises by at most this part of how it fell at first, and use is no flood.
_TURN, _MORE = 0.8, 100.0
#: Prices move linearly in v^2 at most.
_POWER = 2.0


class Server(NamedTuple):
    """Problem of one server at finite alpha: arrays of its users, `per_task` and `use` of (users, resources).

    Who has to pay more than `dear`, in units of `e^(alpha unit)`, asks for nothing; it is nan of those who were served
    at all prices so far.
    """

    alpha: float
    log_gain: Array
    per_task: Array
    use: Array
    elsewhere: Array
    room: Array
    unit: float
    dear: Array


class Asked(NamedTuple):
    """Demand at prices: tasks, excess demand of resources, and its derivatives.

    Excess, how much more than its capacity a resource is asked for, is minus the derivative of the dual. Derivatives
    are in log level prices, of free resources in their price over alpha, the largest one being 1. `parts` and `scaled`,
    (resources,), are room for `ask`, which makes no array: what is written into it would have the references of its
    arrays counted for every user, which takes as long as all the rest. One bundle with `Server` compiles longer.
    """

    tasks: Array
    excess: Array
    jacobian: Array
    parts: Array
    scaled: Array


@compiled(inline=True)
def price_parts(alpha, use, n, scaled, q, usual, parts):  # type: ignore[no-untyped-def]
    """Fill in terms of user n's cost, `sum_r use_r e^(alpha q_r)`; the sum, and the log of its unit.

    `scaled` is `e^(alpha q - usual)`; the log is `usual` but for those who pay next to nothing, the sum 0 for who pays
    nothing at all.
    """
    size, total, unit = use.shape[1], 0.0, usual
    for r in range(size):
        parts[r] = use[n, r] * scaled[r]
        total += parts[r]
    if not total > 1e-200:  # only resources that are next to free, or free
        unit, total = -np.inf, 0.0
        for r in range(size):
            parts[r] = np.log(use[n, r]) + alpha * q[r]
            unit = max(unit, parts[r])
        for r in range(size):
            parts[r] = np.exp(parts[r] - unit) if unit > -np.inf else 0.0
            total += parts[r]
    return total, unit


@compiled(borrows=True)
def ask(server, q, asked):  # type: ignore[no-untyped-def]
    """Fill in `asked` at log level prices q; the residual, relative to capacities."""
    alpha, log_gain, per_task, use, elsewhere, room, unit, dear = server
    tasks, excess, jacobian, parts, scaled = asked
    count, size = use.shape
    top = -np.inf
    for r in range(size):
        top = max(top, q[r])
    for r in range(size):
        scaled[r] = np.exp(alpha * (q[r] - top)) if q[r] > -np.inf else 0.0
    usual, factor = alpha * top, np.exp(alpha * (top - unit)) if alpha * (top - unit) < 600 else 0.0
    excess[:] = -1.0
    jacobian[:, :] = 0.0
    for n in range(count):
        total, log_unit = price_parts(alpha, use, n, scaled, q, usual, parts)
        if tasks[n] == 0 and np.isnan(dear[n]):
            least = np.exp(alpha * (log_gain[n] - np.log(elsewhere[n]) - unit))
            dear[n] = least if least > 1e-290 else np.inf  # smaller ones have few digits
        tasks[n] = 0.0
        if log_unit == usual and total * factor > dear[n]:
            continue
        # Finite where nothing is to be paid: it is multiplied by 0 elsewhere.
        wanted = np.exp(min(log_gain[n] - (np.log(total) + log_unit) / alpha, 600.0)) if total > 0 else np.exp(600.0)
        tasks[n] = min(max(wanted - elsewhere[n], 0.0), room[n])
        if tasks[n] > 0:
            for r in range(size):
                excess[r] += per_task[n, r] * tasks[n]
        if 0 < tasks[n] < room[n] and total > 0:
            for s in range(size):
                rate = wanted * (parts[s] if q[s] > -np.inf else use[n, s]) / total
                for r in range(size):
                    jacobian[r, s] -= per_task[n, r] * rate
    worst = 0.0
    for r in range(size):
        worst = max(worst, excess[r] if q[r] == -np.inf else abs(excess[r]))
    return worst


@compiled(borrows=True)
def one_price(server, r, q, asked):  # type: ignore[no-untyped-def]
    """Solve for q_r at which resource r is used up, to a tenth of its excess; -infinity if it idles when free."""
    middle, enough = q[r] if q[r] > -np.inf else 0.0, max(1e-14, 0.1 * abs(asked.excess[r]))
    q[r] = -np.inf
    ask(server, q, asked)
    if asked.excess[r] <= 0:
        return
    low, high, width = -np.inf, np.inf, 0.25
    for _ in range(300):
        q[r] = middle
        ask(server, q, asked)
        if abs(asked.excess[r]) < enough or high - low < 1e-15 * max(1.0, abs(high)):
            return
        if asked.excess[r] > 0:
            low = middle
        else:
            high = middle
        if low > -np.inf and high < np.inf:
            newton = middle - asked.excess[r] / asked.jacobian[r, r]
            middle = newton if low < newton < high else (low + high) / 2
        else:
            middle = high - width if low == -np.inf else low + width
        width *= 2


@compiled
def solve(matrix, rhs):  # type: ignore[no-untyped-def]
    """Solve a small linear system by elimination, into `rhs`; undetermined unknowns of a singular matrix are 0.

    Matrices are semidefinite but for the units of columns, which asks for no pivoting.
    """
    size = len(rhs)
    for k in range(size):
        pivot = matrix[k, k]
        rhs[k] = rhs[k] / pivot if abs(pivot) > 1e-300 else 0.0
        for j in range(k + 1, size):
            matrix[k, j] = matrix[k, j] / pivot if abs(pivot) > 1e-300 else 0.0
        for i in range(size):
            if i != k:
                factor = matrix[i, k]
                rhs[i] -= factor * rhs[k]
                for j in range(k + 1, size):
                    matrix[i, j] -= factor * matrix[k, j]


@compiled
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, accuracy):  # type: ignore[no-untyped-def]
    """Compute a best response: fill in `tasks` (users here,) and `q` (resources,), log level prices, from a guess.

    Returns how far from exact, relative to capacity, where no more than an accuracy is asked for.
    """
    count, size = use.shape
    for r in range(size):
        if not (use[:, r].sum() > 0 and q[r] < np.inf):
            q[r] = -np.inf
    asked = Asked(tasks, np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size))
    server = Server(alpha, log_gain, per_task, use, elsewhere, room, q.max(), np.full(count, np.nan))
    residual, reach = ask(server, q, asked), np.full(size, max(1.0, _REACH / alpha))
    for k in range(1, 300):
        better = improve(server, q, asked, residual, reach, accuracy)
        if better < -1 or (better < 0 and residual < 1e-10):
            break
        if better < 0 or k % 20 == 0:  # each price in turn
            for r in range(size * (1 + k // 20)):
                one_price(server, r % size, q, asked)
            better, reach[:] = ask(server, q, asked), max(1.0, _REACH / alpha)
        residual = better
    tasks /= 1 + max(asked.excess.max(), 0.0)
    return residual


@compiled
def improve(server, q, asked, residual, reach, accuracy):  # type: ignore[no-untyped-def]
    """Take a step from prices q with demand `asked`, within a trust region of radius `reach`, which it updates.

    Returns the residual, -1 if there is nothing to gain, -2 if it is small enough.
    """
    alpha, size, top = server.alpha, len(q), q.max()
    old, excess, jacobian, weight = q.copy(), asked.excess.copy(), asked.jacobian.copy(), np.exp(alpha * (q - top))
    power, step, whole = np.full(size, alpha), np.zeros(size), np.zeros(size)
    for r in range(size):  # by how much use falls as all prices rise: what users here have in all
        if q[r] > -np.inf:
            whole -= jacobian[:, r]
            power[r] = min(alpha, _POWER)
    # A user's tasks here are a difference, as exact as its tasks in all.
    exact = max(_EXACT + _ROUNDED * whole.max(), accuracy)
    if residual < exact:
        return -2.0
    none, far, t = q == -np.inf, reach.max(), 1.0
    best = (weight * excess).sum() / (weight * whole).sum()  # of 1/v; infinite where nobody asks, or all have enough
    common = max(min(-np.log1p(-best), far), -far) if best < 1 else far
    bound, free = np.zeros(size, np.bool_), none & (excess <= exact)
    for _ in range(10):
        after = excess + whole * np.expm1(min(-common, 500.0))
        bounded(after, jacobian, free, power, reach, step, bound)
        for r in range(size):
            known, held, least = (top, 0.0, 0.0) if none[r] else (old[r], 1.0, 1e-12)
            ratio = held + t * power[r] * step[r]
            q[r] = known + np.log(ratio) / power[r] + t * common if ratio > least else -np.inf
        now, highest = ask(server, q, asked), max(top, q.max())
        moved = np.exp(alpha * (q - highest)) - np.exp(alpha * (old - highest))
        begun, ended = -(moved * excess).sum(), -(moved * asked.excess).sum()
        good = (begun < 0 and ended <= -_TURN * begun and now < _MORE * (1 + residual)) or now < 0.5 * residual
        for r in range(size):
            if good and (bound[r] or abs(common) == far):
                reach[r] *= 2.0
            elif not good and step[r] < 0 and excess[r] < 0:  # users came in
                reach[r] *= 0.3
        if good:
            return now
        t *= 0.5
    for r in range(size):
        q[r] = old[r]
    ask(server, q, asked)
    return -1.0


@compiled
def bounded(excess, jacobian, free, power, reach, step, bound):  # type: ignore[no-untyped-def]
    """Fill in the Newton step within bounds, and which prices are `bound`: they fall to nothing, or rise by `reach`.

    `excess` is that after the common step.
    """
    step[:], bound[:] = 0.0, False
    for _ in range(len(step) + 1):
        matrix, found, held, part, worst, edge = jacobian.copy(), -excess, free | bound, 1.0, -1, 0.0
        for r in range(len(step)):
            matrix[r, r] += 1e-10 * matrix[r, r] - 1e-13
            if held[r]:
                matrix[r, :], matrix[r, r], found[r] = 0.0, 1.0, step[r]
        solve(matrix, found)
        for r in range(len(step)):
            if held[r]:
                found[r] = step[r]
            end = min(max(found[r], -1 / power[r]), np.expm1(power[r] * reach[r]) / power[r])
            if end != found[r] and (end - step[r]) / (found[r] - step[r]) < part:
                part, worst, edge = (end - step[r]) / (found[r] - step[r]), r, end
        step += part * (found - step)
        if worst < 0:
            break
        bound[worst], step[worst] = True, edge


@compiled(borrows=True)
def settle(order, events, k, left):  # type: ignore[no-untyped-def]
    """Move entry k of a heap, the first `left` of `order`, down until no event below it is earlier."""
    moved = order[k]
    while 2 * k + 1 < left:
        below = 2 * k + 1
        if below + 1 < left and events[order[below + 1]] < events[order[below]]:
            below += 1
        if events[moved] <= events[order[below]]:
            break
        order[k], k = order[below], below
    order[k] = moved


@compiled
def fill(gain, per_task, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Raise a common level until every user has enough or meets a full resource; fills `tasks` and `q`.

    User n has `level gain[n]` tasks in all, `elsewhere[n]` of them elsewhere and at most `room[n]` here, and uses
    `per_task[n, r]` of a whole capacity for each. `q[r]` is minus the log of the level at which r is full, or -inf.
    Events in a heap, and once over the users for every resource that fills up: O(N (M + log N)).
    """
    count, size = per_task.shape
    frozen = room <= 0
    used, rate, most = np.zeros(size), np.zeros(size), np.zeros(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    # Events at which the rate of use changes: users come in where they have no more elsewhere, and have enough later.
    events, order = np.empty(2 * count), np.empty(2 * count, np.int64)
    for n in range(count):
        events[n], events[count + n] = elsewhere[n] / gain[n], (elsewhere[n] + room[n]) / gain[n]
    at, free, left = 0.0, count - frozen.sum(), 0
    for k in range(2 * count):
        if events[k] < np.inf:
            order[left] = k
            left += 1
    for k in range(left // 2 - 1, -1, -1):
        settle(order, events, k, left)
    while free > 0:
        level, full = events[order[0]] if left > 0 else np.inf, -1
        for r in range(size):
            if rate[r] > 1e-14 * most[r] and q[r] == -np.inf:
                found = at + max(1 - used[r], 0.0) / rate[r]
                if found < level:
                    level, full = found, r
        if level == np.inf:
            break
        used += rate * (level - at)
        at = level
        if full < 0:
            left -= 1
            k, order[0] = order[0], order[left]
            settle(order, events, 0, left)
            for r in range(0 if frozen[k % count] else size):
                change = gain[k % count] * per_task[k % count, r]
                rate[r] += change if k < count else -change
                most[r] = max(most[r], change)
            continue
        q[full] = -np.log(level)
        rate[:] = 0.0
        for n in range(count):
            if not frozen[n] and per_task[n, full] > 0:
                frozen[n] = True
                free -= 1
                tasks[n] = min(max(level * gain[n] - elsewhere[n], 0.0), room[n])
            if not frozen[n] and events[n] <= level < events[count + n]:
                for r in range(size):
                    rate[r] += gain[n] * per_task[n, r]
    for n in range(count):
        if not frozen[n]:
            tasks[n] = room[n]
