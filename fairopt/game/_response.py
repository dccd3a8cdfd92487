"""Compiled: the exact best response of one server, and a round of them. Users in units of their largest gamma.

alpha finite: unknown are level prices `q_r = log v_r`. A user asks for `X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)`
tasks in all, less what it has elsewhere; prices make use equal capacity, or are zero. Newton on q, whose Jacobian
does not depend on the scale of alpha; where a step does not help, each price in turn is solved for by bisection
(the dual is convex and each use falls in its price, so that this always makes way).
alpha = infinity: progressive filling, at most one round per resource.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian):  # type: ignore[no-untyped-def]
    """Fill tasks, `excess_r = use_r - 1` and its derivatives in q."""
    count, size = use.shape
    parts, scaled = np.empty(size), np.empty(size)
    top = q.max()
    for r in range(size):
        scaled[r] = np.exp(alpha * (q[r] - top)) if q[r] > -np.inf else 0.0
    excess[:] = -1.0
    jacobian[:, :] = 0.0
    for n in range(count):
        total = 0.0
        for r in range(size):
            parts[r] = use[n, r] * scaled[r]
            total += parts[r]
        if total > 1e-200:
            norm = top + np.log(total) / alpha
        else:  # only resources that are next to free, or free
            most = -np.inf
            for r in range(size):
                if use[n, r] > 0 and q[r] > -np.inf:
                    most = max(most, np.log(use[n, r]) + alpha * q[r])
            total = 0.0
            for r in range(size):
                positive = use[n, r] > 0 and q[r] > -np.inf
                parts[r] = np.exp(np.log(use[n, r]) + alpha * q[r] - most) if positive else 0.0
                total += parts[r]
            norm = most / alpha + (np.log(total) / alpha if total > 0 else 0.0)
        wanted = np.exp(min(log_gain[n] - norm, 600.0)) if norm > -np.inf else np.inf
        tasks[n] = min(max(wanted - elsewhere[n], 0.0), room[n])
        for r in range(size):
            excess[r] += per_task[n, r] * tasks[n]
        if 0 < tasks[n] < room[n]:
            for r in range(size):
                for s in range(size):
                    jacobian[r, s] -= per_task[n, r] * wanted * parts[s] / total


@_compile
def _wrong(excess, q):  # type: ignore[no-untyped-def]
    worst = 0.0
    for r in range(len(q)):
        worst = max(worst, excess[r] if q[r] == -np.inf else abs(excess[r]))
    return worst


@_compile
def _one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian):  # type: ignore[no-untyped-def]
    """Set q_r so that resource r is used up, or free (-infinity) if it is not even then."""
    old = q[r]
    q[r] = -np.inf
    _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    if excess[r] <= 0:
        return
    middle = old if old > -np.inf else 0.0
    low, high, width = -np.inf, np.inf, 0.25
    for _ in range(300):
        q[r] = middle
        _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
        if abs(excess[r]) < 1e-14:
            return
        if excess[r] > 0:
            low = middle
        else:
            high = middle
        if low == -np.inf:
            middle = high - width
            width *= 2
        elif high == np.inf:
            middle = low + width
            width *= 2
        else:
            newton = middle - excess[r] / jacobian[r, r] if jacobian[r, r] < 0 else np.inf
            middle = newton if low < newton < high else (low + high) / 2
            if high - low < 1e-15 * max(1.0, abs(high)):
                return


@_compile
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Exact best response for finite alpha: fills `tasks` (users here,) and `q` (resources,), log level prices.

    `q` comes in as a first guess. Returns how far from exact, relative to capacity.
    """
    count, size = use.shape
    excess, trial = np.empty(size), np.empty(size)
    jacobian = np.empty((size, size))
    used = np.zeros(size, np.bool_)
    for n in range(count):
        for r in range(size):
            used[r] |= use[n, r] > 0
    for r in range(size):
        if not used[r]:
            q[r] = -np.inf
        elif not q[r] > -np.inf or q[r] == np.inf:
            q[r] = 0.0
    # A level at which the fullest resource is just full: Newton starts where somebody runs something.
    low, high = -np.inf, np.inf
    shift, width = 0.0, 1.0
    for _ in range(60):
        for r in range(size):
            trial[r] = q[r] + shift
        _excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, excess, jacobian)
        most = excess.max()
        if abs(most) < 0.3:
            break
        if most > 0:
            low = shift
        else:
            high = shift
        if low == -np.inf:
            shift = high - width
            width *= 2
        elif high == np.inf:
            shift = low + width
            width *= 2
        else:
            shift = (low + high) / 2
        if width > 1e4:  # everybody has all the tasks there are
            break
    q[:] = trial
    _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    wrong = _wrong(excess, q)
    index = np.empty(size, np.int64)
    for turn in range(60):
        if wrong < 1e-13:
            break
        moved = False
        before = excess.copy()
        for r in range(size):
            if not used[r]:
                continue
            if q[r] == -np.inf and before[r] > 1e-13:
                _one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
                moved = True
            elif q[r] > -np.inf and before[r] < -1e-13 and (turn > 1 or before[r] < -0.1):
                # Not used up: could it be free?
                old = q[r]
                q[r] = -np.inf
                _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
                if excess[r] > 0 or not q.max() > -np.inf:
                    q[r] = old
                moved = True
        if moved:
            _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            wrong = _wrong(excess, q)
        free = 0
        for r in range(size):
            if q[r] > -np.inf:
                index[free] = r
                free += 1
        small, rhs = np.zeros((free, free)), np.empty(free)
        for a in range(free):
            rhs[a] = -excess[index[a]]
            for b in range(free):
                small[a, b] = jacobian[index[a], index[b]]
            small[a, a] -= 1e-13
        step = np.linalg.solve(small, rhs)
        longest = np.abs(step).max() if free > 0 else 0.0
        t = min(1.0, 1.0 / longest) if longest > 0 and np.isfinite(longest) else 0.0
        better = False
        for _ in range(5):
            if t == 0.0:
                break
            trial[:] = q
            for a in range(free):
                trial[index[a]] = q[index[a]] + t * step[a]
            _excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, excess, jacobian)
            now = _wrong(excess, trial)
            if now < (1 - 0.1 * t) * wrong:
                better = now < 0.7 * wrong
                q[:] = trial
                wrong = now
                break
            t *= 0.4
        if not better:
            for r in range(size):
                if used[r]:
                    _one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            now = _wrong(excess, q)
            if now > 0.9 * wrong and now < 1e-10:
                break
            wrong = now
    _excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    over = 1 + max(excess.max(), 0.0)
    tasks /= over
    return wrong


@_compile
def fill(gain, per_task, use, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Exact best response for alpha = infinity: fills `tasks` and `q`, minus the log of the level that fills each."""
    count, size = use.shape
    frozen = np.zeros(count, np.bool_)
    left = np.ones(size)
    q[:] = -np.inf
    tasks[:] = 0.0
    start, stop = elsewhere / gain, (elsewhere + room) / gain
    for _ in range(size + 1):
        # Events at which the rate of use changes: users come in at `start` and have enough at `stop`.
        level = np.inf
        full = -1
        for r in range(size):
            events, change = np.empty(2 * count), np.empty(2 * count)
            number = 0
            for n in range(count):
                if not frozen[n] and per_task[n, r] > 0 and room[n] > 0:
                    events[number], change[number] = start[n], gain[n] * per_task[n, r]
                    number += 1
                    if stop[n] < np.inf:
                        events[number], change[number] = stop[n], -gain[n] * per_task[n, r]
                        number += 1
            if number == 0:
                continue
            order = np.argsort(events[:number])
            used, rate, at = 0.0, 0.0, events[order[0]]
            found = np.inf
            for k in order:
                if rate > 0 and used + rate * (events[k] - at) >= left[r]:
                    found = at + (left[r] - used) / rate
                    break
                used += rate * (events[k] - at)
                at = events[k]
                rate += change[k]
            if found == np.inf and rate > 1e-14 * np.abs(change[:number]).max():
                found = at + (left[r] - used) / rate
            if found < level:
                level, full = found, r
        if full < 0:
            for n in range(count):
                if not frozen[n]:
                    tasks[n] = room[n]
            break
        q[full] = -np.log(level)
        for n in range(count):
            if not frozen[n] and per_task[n, full] > 0:
                frozen[n] = True
                tasks[n] = min(max(level * gain[n] - elsewhere[n], 0.0), room[n])
                for r in range(size):
                    left[r] = max(left[r] - per_task[n, r] * tasks[n], 0.0)
        if frozen.all():
            break
    return 0.0
