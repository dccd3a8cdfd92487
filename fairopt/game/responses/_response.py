"""Compiled: the exact best response of one server for finite alpha. Users in units of their largest gamma.

Unknown are level prices `q_r = log v_r`. A user asks for `X_n = phi gamma / (sum_r D v^alpha)^(1/alpha)` tasks in all,
less what it has elsewhere; prices make use equal capacity, or are zero. Newton on q, whose Jacobian does not depend on
the scale of alpha; where its step does not help, as it jumps over users that come in, a search along it (the dual is
convex in v^alpha), and now and then each price in turn, by bisection.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._dual import Asked, Server, along, ask, between, one_price, solve

#: Residuals of responses, relative to capacities, beside what rounding leaves of the users' sums.
_EXACT, _ROUNDED = 1e-13, 2e-15


@compiled
def respond(alpha, log_gain, per_task, use, elsewhere, room, q, tasks):  # type: ignore[no-untyped-def]
    """Fill `tasks` (users here,) and `q` (resources,), log level prices, which come in as a first guess.

    Returns how far from exact, relative to capacity.
    """
    size = use.shape[1]
    server = Server(alpha, log_gain, per_task, use, elsewhere, room)
    asked = Asked(tasks, np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size))
    residual, failures = begin(server, q, asked), 0
    for _ in range(60):
        exact = rounded(server, asked)
        if residual < exact:
            break
        if priced(server, exact, q, asked):
            residual = ask(server, q, asked)
        step = newton(q, asked)
        now = shortened(server, step, residual, q, asked)
        if now >= 0.7 * residual:
            failures += 1
            along(server, step, q, asked)
            now = ask(server, q, asked)
            if failures % 4 == 0:
                last = now
                for r in range(size):
                    if q[r] > -np.inf or asked.excess[r] > 0:
                        one_price(server, r, q, asked)
                now = ask(server, q, asked)
                if 0.9 * last < now < 1e-10:
                    residual = now
                    break
        residual = now
    tasks /= 1 + max(asked.excess.max(), 0.0)
    return residual


@compiled
def rounded(server, asked):  # type: ignore[no-untyped-def]
    """The residual that is as good as none: a user's tasks here are a difference, as exact as its tasks in all."""
    count, size = server.use.shape
    most = 0.0
    for r in range(size):
        whole = 0.0
        for n in range(count):
            if asked.tasks[n] > 0:
                whole += server.per_task[n, r] * (server.elsewhere[n] + asked.tasks[n])
        most = max(most, whole)
    return _EXACT + _ROUNDED * most


@compiled
def begin(server, q, asked):  # type: ignore[no-untyped-def]
    """Make a guess one that has a finite price of some resource and nearly fills the fullest one; its residual."""
    # A resource that was free last time is likely to be free now; without any price there is nothing to go by.
    (count, size), known = server.use.shape, False
    used = np.zeros(size, np.bool_)
    for n in range(count):
        for r in range(size):
            used[r] |= server.use[n, r] > 0
    for r in range(size):
        if not used[r]:
            q[r] = -np.inf
        known |= np.isfinite(q[r])
    if known:
        ask(server, q, asked)
        known = asked.excess.sum() < 1e100  # who has no price to pay asks for all there is
    for r in range(size):
        if used[r] and (not known or np.isnan(q[r]) or q[r] == np.inf):
            q[r] = 0.0
    first, low, high, shift, width, residual = q.copy(), -np.inf, np.inf, 0.0, 1.0, np.inf
    for _ in range(60):
        for r in range(size):
            q[r] = first[r] + shift
        residual = ask(server, q, asked)
        most = asked.excess.max()
        if abs(most) < 0.3:
            break
        if most > 0:
            low = shift
        else:
            high = shift
        r = asked.excess.argmax()
        bend = -asked.jacobian[r].sum()
        newton = shift + np.log1p(most) * (1 + most) / bend if bend > 0 else np.inf
        if max(low, shift - 5) < newton < min(high, shift + 5):
            shift = newton
        else:
            shift, width = between(low, high, width), 2 * width
        if width > 1e4 and (low == -np.inf or high == np.inf):  # everybody has all the tasks there are
            break
    return residual


@compiled
def priced(server, exact, q, asked):  # type: ignore[no-untyped-def]
    """Give a price to what is overused without one; whether anything was, after which `asked` is not that of `q`."""
    before, any_was = asked.excess.copy(), False
    for r in range(len(q)):
        if q[r] == -np.inf and before[r] > exact:
            one_price(server, r, q, asked)
            any_was = True
    return any_was


@compiled
def newton(q, asked):  # type: ignore[no-untyped-def]
    """The step of log prices, 0 of those that are free."""
    matrix, step = asked.jacobian.copy(), -asked.excess
    for r in range(len(q)):
        matrix[r, r] -= 1e-13
        if q[r] == -np.inf:
            matrix[r, :], matrix[:, r], matrix[r, r], step[r] = 0.0, 0.0, 1.0, 0.0
    if not np.isfinite(matrix.sum() + step.sum()):
        return np.zeros(len(q))
    step = solve(matrix, step)
    return step if np.isfinite(step.sum()) else np.zeros(len(q))


@compiled
def shortened(server, step, residual, q, asked):  # type: ignore[no-untyped-def]
    """Take a step, of at most 1 and shorter until the residual falls; the residual."""
    longest, old = np.abs(step).max(), q.copy()
    t = min(1.0, 1 / longest) if longest > 0 else 0.0
    for _ in range(5):
        for r in range(len(q)):
            q[r] = old[r] + t * step[r]
        now = ask(server, q, asked)
        if now < (1 - 0.1 * t) * residual:
            return now
        t *= 0.4
    q[:] = old
    return residual
