"""Compiled: a server's prices where plain Newton does not find them: smoothed, then set by set; see `_response`."""

from __future__ import annotations

import numpy as np
from numba import njit

from ._dual import fill_excess, how_wrong, solve

_compile = njit(cache=True, error_model="numpy", nogil=True)


@_compile
def smoothed(alpha, log_gain, per_task, use, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Improve q by `idle_r part_r = mu`, mu to 0, `part_r = (v_r / v_max)^min(alpha, 4)`: smooth all the way."""
    size = len(q)
    excess, now, part, trial = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    jacobian, after = np.empty((size, size)), np.empty((size, size))
    power = min(alpha, 4.0)
    used = np.zeros(size, np.bool_)
    for n in range(len(use)):
        for r in range(size):
            used[r] |= use[n, r] > 0
    top = q.max()
    for r in range(size):
        if used[r]:
            q[r] = max(q[r], top - 3.0 / power)
    mu = 0.1
    for _ in range(300):
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian, mu)
        top = q.max()
        wrong = 0.0
        for r in range(size):
            part[r] = np.exp(power * (q[r] - top)) if used[r] else 1.0
            excess[r] = excess[r] + mu / part[r] if used[r] else 0.0
            wrong = max(wrong, abs(excess[r]) * part[r] / (part[r] + mu))
            jacobian[r, r] -= power * mu / part[r] + 1e-14
            if not used[r]:
                jacobian[r, :] = 0.0
                jacobian[r, r] = -1.0
        if mu < 1e-15 and wrong < 1e-13:
            break
        if not np.isfinite(jacobian.sum() + excess.sum()):
            break
        step = solve(jacobian, -excess)
        longest = np.abs(step).max()
        t = min(1.0, 3.0 / power / longest) if longest > 0 else 1.0
        for _ in range(8):
            for r in range(size):
                trial[r] = q[r] + t * step[r] if used[r] else -np.inf
            fill_excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, now, after, mu)
            best = trial.max()
            least = 0.0
            for r in range(size):
                if used[r]:
                    share = np.exp(power * (trial[r] - best))
                    least = max(least, abs(now[r] + mu / share) * share / (share + mu))
            if least < (1 - 0.1 * t) * wrong or wrong < 1e-14:
                break
            t *= 0.5
        q[:] = trial
        if t > 0.5 and mu > 1e-16 and least < 0.1 * mu**0.5:
            mu *= 0.1
    fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    for r in range(size):
        if used[r] and excess[r] < -1e-10 and np.exp(power * (q[r] - q.max())) < 1e-5:
            q[r] = -np.inf


@_compile
def set_by_set(alpha, log_gain, per_task, use, elsewhere, room, used, q, tasks):  # type: ignore[no-untyped-def]
    """Try every set of resources that could be free, with Newton on the others; the best q met."""
    size = len(q)
    excess, trial, at = np.empty(size), np.empty(size), np.empty(size)
    jacobian = np.empty((size, size))
    best = np.inf
    kept = q.copy()
    for mask in range(1, 1 << size):
        fits = True
        for r in range(size):
            priced = (mask >> r) & 1 == 1
            fits &= used[r] or not priced
            at[r] = (kept[r] if kept[r] > -np.inf else kept.max()) if priced else -np.inf
        if not fits:
            continue
        for _ in range(80):
            fill_excess(alpha, log_gain, per_task, use, elsewhere, room, at, tasks, excess, jacobian)
            wrong = 0.0
            for r in range(size):
                if at[r] == -np.inf:
                    jacobian[r, :] = 0.0
                    jacobian[:, r] = 0.0
                    jacobian[r, r] = -1.0
                else:
                    wrong = max(wrong, abs(excess[r]))
                    jacobian[r, r] -= 1e-12
            if wrong < 1e-13 or not np.isfinite(jacobian.sum() + excess.sum()):
                break
            step = solve(jacobian, np.where(at > -np.inf, -excess, 0.0))
            longest = np.abs(step).max()
            t = min(1.0, max(1.0, 1.0 / alpha) / longest) if longest > 0 and np.isfinite(longest) else 0.0
            moved = False
            for _ in range(12):
                trial[:] = at + t * step
                fill_excess(alpha, log_gain, per_task, use, elsewhere, room, trial, tasks, excess, jacobian)
                now = 0.0
                for r in range(size):
                    if at[r] > -np.inf:
                        now = max(now, abs(excess[r]))
                if now < wrong:
                    at[:] = trial
                    moved = True
                    break
                t *= 0.5
            if not moved:
                break
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, at, tasks, excess, jacobian)
        now = how_wrong(excess, at)
        if now < best:
            best = now
            q[:] = at
        if best < 1e-11:
            break
    return best
