"""Compiled: the exact best response of one server, and a round of them. Users in units of their largest gamma.

alpha finite: unknown are level prices `q_r = log v_r`. A user asks for `X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)`
tasks in all, less what it has elsewhere; prices make use equal capacity, or are zero. Newton on q, whose Jacobian
does not depend on the scale of alpha; where its step does not help, as it jumps over users that come in, a search
along it (the dual is convex in v^alpha), and now and then each price in turn, by bisection.
alpha = infinity: progressive filling, at most one round per resource.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dual import along, fill_excess, one_price, residual_norm, solve
from .options import RESPONSE


@compiled
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
    # A resource that was free last time is likely to be free now; without any price there is nothing to go by.
    known = False
    for r in range(size):
        known |= used[r] and np.isfinite(q[r])
    if known:
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
        known = np.isfinite(excess.sum())
    for r in range(size):
        if not used[r]:
            q[r] = -np.inf
        elif not known or np.isnan(q[r]) or q[r] == np.inf:
            q[r] = 0.0
    # A level at which the fullest resource is just full: Newton starts where somebody runs something.
    low, high = -np.inf, np.inf
    shift, width = 0.0, 1.0
    for _ in range(RESPONSE.levels):
        for r in range(size):
            trial[r] = q[r] + shift
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, excess, jacobian)
        most = excess.max()
        if abs(most) < RESPONSE.near:
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
        if width > RESPONSE.widest:  # everybody has all the tasks there are
            break
    q[:] = trial
    fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    residual = residual_norm(excess, q)
    index = np.empty(size, np.int64)
    failures = 0
    for turn in range(RESPONSE.steps):
        if residual < RESPONSE.exact:
            break
        moved = False
        before = excess.copy()
        for r in range(size):
            if not used[r]:
                continue
            if q[r] == -np.inf and before[r] > RESPONSE.exact:
                one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
                moved = True
            elif q[r] > -np.inf and before[r] < -(RESPONSE.exact if turn >= RESPONSE.first_free else RESPONSE.idle):
                # Not used up: could it be free?
                old = q[r]
                q[r] = -np.inf
                fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
                if excess[r] > 0 or not q.max() > -np.inf:
                    q[r] = old
                moved = True
        if moved:
            fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            residual = residual_norm(excess, q)
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
            small[a, a] -= RESPONSE.regular
        step = np.zeros(free)
        if free > 0 and np.isfinite(small.sum() + rhs.sum()):
            step = solve(small, rhs)
        longest = np.abs(step).max() if free > 0 else 0.0
        t = min(1.0, RESPONSE.stride / longest) if longest > 0 and np.isfinite(longest) else 0.0
        better = False
        for _ in range(RESPONSE.halvings):
            if t == 0.0:
                break
            trial[:] = q
            for a in range(free):
                trial[index[a]] = q[index[a]] + t * step[a]
            fill_excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, excess, jacobian)
            now = residual_norm(excess, trial)
            if now < (1 - RESPONSE.descent * t) * residual:
                better = now < RESPONSE.good * residual
                q[:] = trial
                residual = now
                break
            t *= RESPONSE.shorter
        if not better and free > 0 and np.isfinite(step.sum()):
            failures += 1
            trial[:] = 0.0
            for a in range(free):
                trial[index[a]] = step[a]
            along(alpha, log_gain, per_task, use, elsewhere, room, q, trial, tasks, excess, jacobian)
            residual = residual_norm(excess, q)
        if not better and failures % RESPONSE.each == 0:
            for r in range(size):
                if used[r]:
                    one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
            now = residual_norm(excess, q)
            if now > RESPONSE.stalled * residual and now < RESPONSE.fine:
                break
            residual = now
    fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    over = 1 + max(excess.max(), 0.0)
    tasks /= over
    return residual
