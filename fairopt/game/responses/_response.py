"""Compiled: the exact best response of one server for finite alpha. Users in units of their largest gamma.

Unknown are level prices `q_r = log v_r`. A user asks for `X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)` tasks in all,
less what it has elsewhere; prices make use equal capacity, or are zero. Newton's steps for the dual, which is convex in
v^alpha: a common one of all prices, along which tasks in all are linear in 1/v, and on top of it one of each, linear in
v^alpha and within bounds, as users come in where prices fall; bounds shrink where a step went too far. Where that does
not help, and now and then, each price in turn, by bisection.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dual import Asked, Server, ask, one_price, solve

#: Residuals of responses, relative to capacities, beside what rounding leaves of the users' sums.
_EXACT, _ROUNDED = 1e-13, 2e-15
#: By how much a log level price, or its power alpha, falls at first; bounds of the common step, in parts of 1/v.
_REACH, _PART, _DOWN, _UP = 1.1, 0.02, -4.0, 0.8
#: A step is good if at its end the dual rises by at most this part of how it fell at first, and use is no flood.
_TURN, _MORE = 0.8, 100.0
#: Prices of less than this part in everybody's may become free at once.
_SMALL = 0.1
#: Trials that bring bounds closer where users came in; those that follow shorten the step, too.
_TRIALS = 4


@compiled
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, accuracy=0.0):  # type: ignore[no-untyped-def]
    """Fill `tasks` (users here,) and `q` (resources,), log level prices; both come in as a first guess.

    Returns how far from exact, relative to capacity, where no more than an accuracy is asked for.
    """
    count, size = use.shape
    used = use.sum(axis=0) > 0
    q[:] = np.where(used & (q < np.inf), q, -np.inf)
    asked = Asked(tasks, np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size))
    dear, unit = np.full(count, np.nan), q.max()
    server = Server(alpha, log_gain, per_task, use, elsewhere, room, unit, dear, accuracy)
    residual, reach = ask(server, q, asked), np.full(size, max(_REACH, _PART / alpha))
    for k in range(1, 300):
        better = improve(server, q, asked, residual, reach)
        if better < -1 or (better < 0 and residual < 1e-10):
            break
        if better < 0 or k % 20 == 0:  # each price in turn
            for r in range(size):
                if used[r]:
                    one_price(server, r, q, asked)
            better, reach[:] = ask(server, q, asked), max(_REACH, _PART / alpha)
        residual = better
    tasks /= 1 + max(asked.excess.max(), 0.0)
    return residual


@compiled
def improve(server, q, asked, residual, reach):  # type: ignore[no-untyped-def]
    """A step from prices q, of which `asked` is; returns the residual, or -1 where there is nothing to gain."""
    alpha, size, top = server.alpha, len(q), q.max()
    old, excess, jacobian, weight = q.copy(), asked.excess.copy(), asked.jacobian.copy(), np.exp(alpha * (q - top))
    whole = np.zeros(size)  # by how much use falls as all prices rise: what users here have in all
    for r in range(size):
        if q[r] > -np.inf:
            whole -= jacobian[:, r]
    # A user's tasks here are a difference, as exact as its tasks in all.
    exact = max(_EXACT + _ROUNDED * whole.max(), server.accuracy)
    if residual < exact:
        return -2.0
    over, slope = (weight * excess).sum(), (weight * whole).sum()
    if not slope > 0:
        return -1.0
    common, t = max(min(over / slope, _UP), _DOWN), 1.0
    step, bound, free = np.zeros(size), np.zeros(size, np.bool_), (q == -np.inf) & (excess <= exact)
    for trial in range(1 if residual < 1e-10 else 10):
        if -0.5 < over / weight.sum() < 1:
            bounded(server, old, weight, excess - whole * common, jacobian, free, reach, step, bound)
        shift = -np.log1p(-t * common)
        for r in range(size):
            known, part, least = (top, 0.0, 0.0) if old[r] == -np.inf else (old[r], 1.0, 1e-12)
            ratio = part + t * alpha * step[r]
            q[r] = known + np.log(ratio) / alpha + shift if ratio > least else -np.inf
        now, highest = ask(server, q, asked), max(top, q.max())
        moved = np.exp(alpha * (q - highest)) - np.exp(alpha * (old - highest))
        before, after = -(moved * excess).sum(), -(moved * asked.excess).sum()
        if (before < 0 and after <= -_TURN * before and now < _MORE * (1 + residual)) or now < 0.5 * residual:
            reach *= np.where(bound, 2.0, 1.0)
            return now
        came = (step < 0) & (excess < 0) & ~(asked.excess <= 0)  # users came in
        reach *= np.where(came, 0.3, 1.0)
        t *= 0.3 if trial >= _TRIALS or not came.any() else 1.0
    q[:] = old
    ask(server, q, asked)
    return -1.0


@compiled
def bounded(server, q, weight, excess, jacobian, free, reach, step, bound):  # type: ignore[no-untyped-def]
    """Fill `step`, Newton's of each price, linear in `e^(alpha q)`, and whether it is bound by the reach of its log.

    What meets a bound on the way stays there. `excess` is that after the common step.
    """
    alpha, size = server.alpha, len(q)
    low, high = np.expm1(-alpha * reach) / alpha, np.expm1(2 * alpha * reach) / alpha
    step[:], bound[:] = 0.0, False
    found = newton(excess, jacobian, free, step)
    for r in range(size):
        if q[r] == -np.inf:
            low[r] = 0.0
        elif found[r] < low[r] and reach[r] >= _REACH and small(server, weight, r):
            low[r] = -1 / alpha
    for _ in range(size + 1):
        part, worst = 1.0, -1
        for r in range(size):
            end = min(max(found[r], low[r]), high[r])
            if end != found[r] and (end - step[r]) / (found[r] - step[r]) < part:
                part, worst = (end - step[r]) / (found[r] - step[r]), r
        step += part * (found - step)
        if worst < 0:
            break
        bound[worst], step[worst] = True, high[worst] if found[worst] > high[worst] else low[worst]
        found = newton(excess, jacobian, free | bound, step)


@compiled
def newton(excess, jacobian, held, step):  # type: ignore[no-untyped-def]
    """The step at which nothing is left of the excess; some prices are held at a step that is known."""
    matrix, found = jacobian.copy(), -excess
    for r in range(len(step)):
        matrix[r, r] += 1e-10 * matrix[r, r] - 1e-13
        if held[r]:
            matrix[r, :], matrix[r, r], found[r] = 0.0, 1.0, step[r]
    return np.where(held, step, solve(matrix, found))


@compiled
def small(server, weight, r):  # type: ignore[no-untyped-def]
    """Whether a resource has a small part in the price of everybody, so that it may become free at once."""
    paid = server.use * weight
    return not ((paid[:, r] > 0) & (paid[:, r] >= _SMALL * paid.sum(axis=1))).any()
