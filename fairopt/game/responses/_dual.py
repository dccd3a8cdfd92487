"""Compiled: the dual of one server's problem for finite alpha; see `_response`."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from .options import DUAL


@compiled
def price_shares(alpha, use, scaled, q, top, shares):  # type: ignore[no-untyped-def]
    """Fill a user's shares of the price `(sum_r use_r e^(alpha q_r))^(1/alpha)`, whose log is returned.

    `scaled` is `e^(alpha (q - top))`. Nothing to be paid: shares and the log are 0.
    """
    size, total = len(use), 0.0
    for r in range(size):
        shares[r] = use[r] * scaled[r]
        total += shares[r]
    most = alpha * top
    if not total > 1e-200:  # only resources that are next to free, or free
        most, total = -np.inf, 0.0
        for r in range(size):
            if use[r] > 0 and q[r] > -np.inf:
                most = max(most, np.log(use[r]) + alpha * q[r])
        for r in range(size):
            paid = use[r] > 0 and q[r] > -np.inf
            shares[r] = np.exp(np.log(use[r]) + alpha * q[r] - most) if paid else 0.0
            total += shares[r]
        if total == 0:
            return -np.inf
    for r in range(size):
        shares[r] /= total
    return (most + np.log(total)) / alpha


@compiled
def fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian):  # type: ignore[no-untyped-def]
    """Fill tasks, `excess_r = use_r - 1` and its derivatives in q."""
    count, size = use.shape
    shares = np.empty(size)
    top = q.max()
    scaled = np.zeros(size)
    for r in range(size):
        if q[r] > -np.inf:
            scaled[r] = np.exp(alpha * (q[r] - top))
    excess[:] = -1.0
    jacobian[:, :] = 0.0
    for n in range(count):
        # Finite where nothing is to be paid: it is multiplied by 0 elsewhere.
        wanted = np.exp(min(log_gain[n] - price_shares(alpha, use[n], scaled, q, top, shares), 600.0))
        tasks[n] = min(max(wanted - elsewhere[n], 0.0), room[n])
        for r in range(size):
            excess[r] += per_task[n, r] * tasks[n]
        if 0 < tasks[n] < room[n]:
            for r in range(size):
                for s in range(size):
                    jacobian[r, s] -= per_task[n, r] * wanted * shares[s]


@compiled
def residual_norm(excess, q):  # type: ignore[no-untyped-def]
    worst = 0.0
    for r in range(len(q)):
        worst = max(worst, excess[r] if q[r] == -np.inf else abs(excess[r]))
    return worst


@compiled
def one_price(r, alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian):  # type: ignore[no-untyped-def]
    """Set q_r so that resource r is used up, or free (-infinity) if it is not even then."""
    old = q[r]
    q[r] = -np.inf
    fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    if excess[r] <= 0:
        return
    middle = old if old > -np.inf else 0.0
    low, high, width = -np.inf, np.inf, DUAL.width
    for _ in range(DUAL.values):
        q[r] = middle
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
        if abs(excess[r]) < DUAL.excess:
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
            if high - low < DUAL.narrow * max(1.0, abs(high)):
                return


@compiled
def along(alpha, log_gain, per_task, use, elsewhere, room, q, step, tasks, excess, jacobian):  # type: ignore[no-untyped-def]
    """Go along Newton's direction in prices `e^(alpha q)` to where the dual, which is convex in them, is least.

    `step` is the direction in q. Users that come in and leave on the way are corners of its slope, `-excess` times the
    direction: Newton's step may jump over them to and fro, its line cannot. It ends at the latest where the first
    price is 0, and the resource free. Leaves q and what belongs to it.
    """
    size = len(q)
    old = q.copy()
    top = q.max()
    weight = np.zeros(size)
    longest = np.inf
    before = 0.0
    fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
    for r in range(size):
        if q[r] > -np.inf and step[r] != 0.0:
            weight[r] = np.exp(alpha * (q[r] - top)) * step[r]
            before -= weight[r] * excess[r]
            if step[r] < 0:
                longest = min(longest, -1 / (alpha * step[r]))
    if not before < 0:
        return
    low, high, at_low, at_high = 0.0, np.inf, before, 0.0
    t = min(1.0, longest)
    for _ in range(DUAL.tries):
        for r in range(size):
            if weight[r] != 0.0:
                left = t * alpha * step[r]
                q[r] = old[r] + np.log1p(left) / alpha if left > -1 + 1e-12 else -np.inf
        fill_excess(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, excess, jacobian)
        slope = 0.0
        for r in range(size):
            if weight[r] != 0.0:
                slope -= weight[r] * excess[r]
        if abs(slope) < DUAL.flat * abs(before) or (slope < 0 and t >= longest):
            return
        if slope < 0:
            low, at_low = t, slope
        else:  # or not a number: somebody would have no price to pay at all
            high, at_high = t, slope
        if high == np.inf:
            t = min(DUAL.longer * t, longest)
        elif np.isfinite(at_high):
            t = low + (high - low) * min(max(at_low / (at_low - at_high), DUAL.inside), 1 - DUAL.inside)
        else:
            t = low + (high - low) * (1 - DUAL.inside)


@compiled
def solve(matrix, rhs):  # type: ignore[no-untyped-def]
    """A small linear system, by elimination; what a singular matrix leaves open is 0. Overwrites its arguments."""
    size = len(rhs)
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if not abs(matrix[best, k]) > 1e-300:
            continue
        if best != k:
            for j in range(size):
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            rhs[k], rhs[best] = rhs[best], rhs[k]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k, size):
                    matrix[i, j] -= factor * matrix[k, j]
                rhs[i] -= factor * rhs[k]
    for k in range(size - 1, -1, -1):
        value = rhs[k]
        for j in range(k + 1, size):
            value -= matrix[k, j] * rhs[j]
        rhs[k] = value / matrix[k, k] if abs(matrix[k, k]) > 1e-300 else 0.0
    return rhs
