"""Last digits: Newton's method on the active set, prices in money."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .judge import backward_errors
from .system import Stack

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def refined(q: Stack, z: Array, log_v: Array, xi: Array | None, pairs: Mask, rows: Mask, held: Mask | None, aim: float) -> tuple[Array, Array, Array]:
    """Of one problem (arrays end with an axis of length 1): the best error, fractions and log prices of rows.

    `pairs`, `rows` and `held` (limits) are what is active: equations of pairs are met exactly, rows and limits full.
    Prices step in money: what a pair pays is linear in it, where levels would take alpha steps.
    """
    p, r = np.flatnonzero(pairs), np.flatnonzero(rows)
    users, servers, _ = z.shape
    user, server = p // servers, p % servers
    l = np.zeros(0, np.intp) if held is None else np.flatnonzero(held)
    power, ratio = float(q.power[0]), float(q.ratio[0])
    z, log_v = np.where(pairs, z, 0.0), np.where(rows, log_v, -np.inf)
    xi = None if xi is None else np.where(held, xi, 0.0)
    size = len(p) + len(r) + len(l)
    best = np.inf, z, q.power * log_v
    np_, nr = len(p), len(p) + len(r)
    same = user[:, None] == user[None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(8):
            x, slack, share = q.slacks(z, log_v, xi)
            part = (q.size * z / x[:, None]).ravel()[p]
            m = np.zeros((size, size))
            m[:np_, :np_] = ratio * part * same
            m[:np_, np_:nr] = _of_rows(share, r, user, server, servers)
            m[np_:nr, :np_] = _of_rows(q.use, r, user, server, servers).T * z.ravel()[p]
            rhs = [-slack.ravel()[p], (1 - q.used(z)).ravel()[r]]
            if len(l):
                m[:np_, nr:] = user[:, None] == l
                m[nr:, :np_] = m[:np_, nr:].T * (q.share_of_limit * z).ravel()[p]
                rhs.append((1 - q.of_limits(z)).ravel()[l])
            step = _least(m, np.concatenate(rhs))
            if step is None or not np.isfinite(step).all():
                break
            a, b = np.maximum(step[:np_], -0.9), step[np_:nr]
            z, log_v = z.copy(), log_v.copy()
            z.ravel()[p] *= 1 + a
            log_v.ravel()[r] += np.where(power * b > -0.9, np.log1p(np.maximum(power * b, -0.9)) / power, b)
            if len(l):
                xi = xi.copy()
                xi.ravel()[l] += step[nr:]
            error = float(backward_errors(q, z, q.power * log_v, aim)[0])
            if error < best[0]:
                best = error, z, q.power * log_v
            if best[0] <= aim or np.abs(step).max(initial=0.0) < 1e-15:
                break
    return best


def _of_rows(table: Array, rows: Array, user: Array, server: Array, servers: int) -> Array:
    """(pairs, rows) of a table (R, N, K, 1)."""
    resource, host = rows // servers, rows % servers
    return np.where(server[:, None] == host, table[resource, user[:, None], server[:, None], 0], 0.0)


def _least(m: Array, rhs: Array) -> Array | None:
    """The solution, the least one where a pivot is next to none."""
    scale = 1 / np.maximum(np.abs(m).max(axis=1), 1e-300)
    m, rhs = m * scale[:, None], rhs * scale
    factors, order, failed = lapack.dgetrf(m)
    pivots = np.abs(np.diag(factors))
    if failed == 0 and pivots.min(initial=np.inf) > 1e-7 * pivots.max(initial=0.0):
        return lapack.dgetrs(factors, order, rhs)[0]
    try:
        return np.linalg.lstsq(m, rhs, rcond=1e-11)[0]
    except np.linalg.LinAlgError:
        return None
