"""Compiled: the exact best response of one server for finite alpha. Users in units of their largest gamma.

Unknown are level prices `q_r = log v_r`. A user asks for `X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)` tasks in all,
less what it has elsewhere; prices make use equal capacity, or are zero. Newton's steps for the dual, which is convex in
v^alpha: a common one of all prices, along which tasks in all are linear in 1/v, and on top of it one of each, linear in
a power of v and within bounds, as users come in where prices fall; bounds shrink where a step went too far. Where that
does not help, and now and then, each price in turn, by bisection.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dual import Asked, Server, ask, one_price, solve

#: Residuals of responses, relative to capacities, beside what rounding leaves of the users' sums.
_EXACT, _ROUNDED = 1e-13, 2e-15
#: By how much a price, the power alpha of v, may fall at first if alpha is small; a log level price by 1.
_REACH = 0.02
#: A step is good if at its end the dual rises by at most this part of how it fell at first, and use is no flood.
_TURN, _MORE = 0.8, 100.0
#: Prices of less than this part in everybody's may become free at once; others move linearly in v^2 at most.
_SMALL, _POWER = 0.1, 2.0


@compiled
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks, accuracy=0.0):  # type: ignore[no-untyped-def]
    """Compute a best response: fill in `tasks` (users here,) and `q` (resources,), log level prices, from a guess.

    Returns how far from exact, relative to capacity, where no more than an accuracy is asked for.
    """
    count, size = use.shape
    q[:] = np.where((use.sum(axis=0) > 0) & (q < np.inf), q, -np.inf)
    asked = Asked(tasks, np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size))
    dear, unit = np.full(count, np.nan), q.max()
    server = Server(alpha, log_gain, per_task, use, elsewhere, room, unit, dear, accuracy)
    residual, reach = ask(server, q, asked), np.full(size, max(1.0, _REACH / alpha))
    for k in range(1, 300):
        better = improve(server, q, asked, residual, reach)
        if better < -1 or (better < 0 and residual < 1e-10):
            break
        if better < 0 or k % 20 == 0:  # each price in turn
            for r in range(size):
                one_price(server, r, q, asked)
            better, reach[:] = ask(server, q, asked), max(1.0, _REACH / alpha)
        residual = better
    tasks /= 1 + max(asked.excess.max(), 0.0)
    return residual


@compiled
def improve(server, q, asked, residual, reach):  # type: ignore[no-untyped-def]
    """Take a step from prices q with demand `asked`, within a trust region of radius `reach`, which it updates.

    Returns the residual, -1 if there is nothing to gain, -2 if it is small enough.
    """
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
    none, far, t = q == -np.inf, reach.max(), 1.0
    best = (weight * excess).sum() / (weight * whole).sum()  # of 1/v; infinite where nobody asks, or all have enough
    common = max(min(-np.log1p(-best), far), -far) if best < 1 else far
    minor = none | (-np.diag(jacobian) < _SMALL * whole)  # on an average
    if (minor & ~none).any():
        minor = none | (largest(server, weight) < _SMALL)
    power = np.where(minor, alpha, min(alpha, _POWER))
    step, bound, free = np.zeros(size), np.zeros(size, np.bool_), none & (excess <= exact)
    for _ in range(10):
        low = np.where(none, 0.0, np.where(minor, -1.0, np.expm1(-power * reach)) / power)
        high, after = np.expm1(power * reach) / power, excess + whole * np.expm1(min(-common, 500.0))
        bounded(after, jacobian, free, low, high, step, bound)
        for r in range(size):
            known, part, least = (top, 0.0, 0.0) if none[r] else (old[r], 1.0, 1e-12)
            ratio = part + t * power[r] * step[r]
            q[r] = known + np.log(ratio) / power[r] + t * common if ratio > least else -np.inf
        now, highest = ask(server, q, asked), max(top, q.max())
        moved = np.exp(alpha * (q - highest)) - np.exp(alpha * (old - highest))
        begun, ended = -(moved * excess).sum(), -(moved * asked.excess).sum()
        if (begun < 0 and ended <= -_TURN * begun and now < _MORE * (1 + residual)) or now < 0.5 * residual:
            reach *= np.where(bound | (abs(common) == far), 2.0, 1.0)
            return now
        came = (step < 0) & (excess < 0)  # users came in
        reach *= np.where(came, 0.3, 1.0)
        t *= 0.5
    q[:] = old
    ask(server, q, asked)
    return -1.0


@compiled
def bounded(excess, jacobian, free, low, high, step, bound):  # type: ignore[no-untyped-def]
    """Fill in the Newton step within bounds, and which prices are `bound`.

    `excess` is that after the common step.
    """
    step[:], bound[:] = 0.0, False
    for _ in range(len(step) + 1):
        found, part, worst = newton(excess, jacobian, free | bound, step), 1.0, -1
        for r in range(len(step)):
            end = min(max(found[r], low[r]), high[r])
            if end != found[r] and (end - step[r]) / (found[r] - step[r]) < part:
                part, worst = (end - step[r]) / (found[r] - step[r]), r
        step += part * (found - step)
        if worst < 0:
            break
        bound[worst], step[worst] = True, high[worst] if found[worst] > high[worst] else low[worst]


@compiled
def newton(excess, jacobian, held, step):  # type: ignore[no-untyped-def]
    """Newton step to zero excess demand; some prices are held at given steps."""
    matrix, found = jacobian.copy(), -excess
    for r in range(len(step)):
        matrix[r, r] += 1e-10 * matrix[r, r] - 1e-13
        if held[r]:
            matrix[r, :], matrix[r, r], found[r] = 0.0, 1.0, step[r]
    return np.where(held, step, solve(matrix, found))


@compiled
def largest(server, weight):  # type: ignore[no-untyped-def]
    """Largest share of each resource in a user's cost, (resources,)."""
    found = np.zeros(len(weight))
    for n in range(len(server.use)):
        paid = (server.use[n] * weight).sum()
        for r in range(len(weight)):
            found[r] = max(found[r], server.use[n, r] * weight[r] / paid if paid > 0 else 0.0)
    return found
