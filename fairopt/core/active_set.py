"""Last digits: Newton's method on the pairs, rows and limits that are active, with prices in money."""

from __future__ import annotations

import numpy as np

from ..base.libraries import lapack
from ..model._arrays import Array, Index, Mask
from .judge import backward_errors
from .system import OfLimits, Stack


def refined(
    q: Stack, z: Array, log_v: Array, xi: OfLimits, pairs: Mask, rows: Mask, binding: OfLimits, aim: float
) -> tuple[Array, Array, Array]:
    """Refine one problem: fractions (N, K, 1), log prices of whole capacities (R, K, 1) and their error (1,).

    `pairs`, `rows` and `binding` say which pairs, rows and limits are active: the others have no tasks and no price.
    What a pair pays is linear in money, where prices in levels would take alpha steps.
    """
    p, r = np.flatnonzero(pairs), np.flatnonzero(rows)
    limits = np.zeros(0, np.intp) if binding is None else np.flatnonzero(binding)
    servers = z.shape[1]
    user, server = p // servers, p % servers
    first, second, size = len(p), len(p) + len(r), len(p) + len(r) + len(limits)
    z, log_v = np.where(pairs, z, 0.0), np.where(rows, log_v, -np.inf)
    xi = None if xi is None else np.where(binding, xi, 0.0)
    best, error = (z, q.power * log_v), np.full(1, np.inf)
    if not 0 < size <= 300:  # dense algebra of more takes longer than engines for large problems
        return *best, error
    same_user, same_limit = user[:, None] == user, user[:, None] == limits
    for _ in range(8):
        x, slack, share = q.slacks(z, log_v, xi)
        own = z.ravel()[p]
        m = np.zeros((size, size))
        m[:first, :first] = q.ratio * q.size.ravel()[p] * own / x[user, 0] * same_user
        m[:first, first:second] = _of_rows(share, r, user, server)
        m[first:second, :first] = _of_rows(q.use, r, user, server).T * own
        rhs = [-slack.ravel()[p], (1 - q.used(z)).ravel()[r]]
        if xi is not None:
            m[:first, second:] = same_limit
            m[second:, :first] = same_limit.T * q.share_of_limit.ravel()[p] * own
            rhs.append((1 - q.of_limits(z)).ravel()[limits])
        step = least(m, np.concatenate(rhs))
        if step is None:
            break
        z, log_v = z.copy(), log_v.copy()
        z.ravel()[p] *= 1 + np.maximum(step[:first], -0.9)
        money = float(q.power[0]) * step[first:second]
        log_v.ravel()[r] += np.log1p(np.maximum(money, -0.99)) / q.power
        if xi is not None:
            xi = xi.copy()
            xi.ravel()[limits] += step[second:]
        now = backward_errors(q, z, q.power * log_v, on_the_way=True)
        if now[0] < error[0]:
            best, error = (z, q.power * log_v), now
        if error[0] <= aim:
            break
    return *best, error


def _of_rows(table: Array, rows: Index, user: Index, server: Index) -> Array:
    """(pairs, rows) of a table (R, N, K, 1)."""
    resource, host = np.divmod(rows, table.shape[2])
    return np.where(server[:, None] == host, table[resource, user[:, None], server[:, None], 0], 0.0)


def least(m: Array, rhs: Array) -> Array | None:
    """Solve a linear system, by least squares where it is singular; None if the solution is not finite."""
    scale = 1 / np.maximum(np.abs(m).max(axis=1), 1e-300)
    m, rhs = m * scale[:, None], rhs * scale
    if not np.isfinite(m).all() or not np.isfinite(rhs).all():
        return None
    factors, order, _ = lapack.dgetrf(m)
    pivots = np.abs(np.diag(factors))
    if pivots.min() > 1e-7 * pivots.max():
        found = lapack.dgetrs(factors, order, rhs)[0]
    else:
        work = int(lapack.dgelsy_lwork(*m.shape, 1, 1e-11)[0])
        found = lapack.dgelsy(m, rhs, np.zeros((len(m), 1), np.int32), 1e-11, work)[1][: len(m)]
    return found if np.isfinite(found).all() else None
