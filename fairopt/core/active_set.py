r"""Refinement of a small problem by Newton's method on a fixed active set, dense.

On the active pairs, rows and limits the complementarity conditions of `system` are equations,

.. math:: s_{nk} = 0, \qquad \sum_n D_{nkr} z_{nk} = 1, \qquad \sum_k \tau_{nk} z_{nk} = 1,

in log fractions, prices `v^A`, and prices xi of limits.
"""

from __future__ import annotations

import numpy as np

from ..base.libraries import lapack
from ..model._arrays import Array, Index, Mask
from .factors import TINY
from .judge import backward_errors
from .system import OfLimits, Stack

#: Unknowns up to which the dense matrix is factored.
_LARGEST = 300
#: Newton steps at most; relative pivots below the second, or singular values below the third, count as zero.
_STEPS, _SINGULAR, _RANK = 8, 1e-7, 1e-11


def refined(
    q: Stack, z: Array, log_v: Array, xi: OfLimits, pairs: Mask, rows: Mask, binding: OfLimits, aim: float
) -> tuple[Array, Array, Array]:
    """Refine one problem: fractions (N, K, 1), log prices of whole capacities (R, K, 1) and their error (1,).

    The masks `pairs`, `rows` and `binding` are the active pairs, rows and limits; inactive ones get no tasks and no
    price. Prices are updated by `log1p` of their relative change, since the cost of a pair is linear in prices `v^A`,
    while Newton's method in levels v would move by 1/A a step.
    """
    p, r = np.flatnonzero(pairs), np.flatnonzero(rows)
    limits = np.zeros(0, np.intp) if binding is None else np.flatnonzero(binding)
    servers = z.shape[1]
    user, server = p // servers, p % servers
    pair_end, row_end, unknowns = len(p), len(p) + len(r), len(p) + len(r) + len(limits)
    z, log_v = np.where(pairs, z, 0.0), np.where(rows, log_v, -np.inf)
    xi = None if xi is None else np.where(binding, xi, 0.0)
    best, error = (z, q.power * log_v), np.full(1, np.inf)
    if not 0 < unknowns <= _LARGEST:  # larger dense systems take longer than the engines for large problems
        return *best, error
    same_user, same_limit = user[:, None] == user, user[:, None] == limits
    for _ in range(_STEPS):
        x, slack, share = q.slacks(z, log_v, xi)
        fraction = z.ravel()[p]
        m = np.zeros((unknowns, unknowns))
        m[:pair_end, :pair_end] = q.ratio * q.size.ravel()[p] * fraction / x[user, 0] * same_user
        m[:pair_end, pair_end:row_end] = _row_block(share, r, user, server)
        m[pair_end:row_end, :pair_end] = _row_block(q.use, r, user, server).T * fraction
        rhs = [-slack.ravel()[p], (1 - q.used(z)).ravel()[r]]
        if xi is not None:
            m[:pair_end, row_end:] = same_limit
            m[row_end:, :pair_end] = same_limit.T * q.share_of_limit.ravel()[p] * fraction
            rhs.append((1 - q.of_limits(z)).ravel()[limits])
        step = least_squares(m, np.concatenate(rhs))
        if step is None:
            break
        z, log_v = z.copy(), log_v.copy()
        z.ravel()[p] *= 1 + np.maximum(step[:pair_end], -0.9)
        price_change = float(q.power[0]) * step[pair_end:row_end]
        log_v.ravel()[r] += np.log1p(np.maximum(price_change, -0.99)) / q.power
        if xi is not None:
            xi = xi.copy()
            xi.ravel()[limits] += step[row_end:]
        candidate = backward_errors(q, z, q.power * log_v, early=True)
        if candidate[0] < error[0]:
            best, error = (z, q.power * log_v), candidate
        if error[0] <= aim:
            break
    return *best, error


def _row_block(table: Array, rows: Index, user: Index, server: Index) -> Array:
    """Block (pairs, rows) of the matrix from an array (R, N, K, 1)."""
    resource, host = np.divmod(rows, table.shape[2])
    return np.where(server[:, None] == host, table[resource, user[:, None], server[:, None], 0], 0.0)


def least_squares(m: Array, rhs: Array) -> Array | None:
    """Solve a linear system, in the least-norm sense if it is singular; None if the solution is not finite."""
    scale = 1 / np.maximum(np.abs(m).max(axis=1), TINY)
    m, rhs = m * scale[:, None], rhs * scale
    if not np.isfinite(m).all() or not np.isfinite(rhs).all():
        return None
    factors, order, _ = lapack.dgetrf(m)
    pivots = np.abs(np.diag(factors))
    if pivots.min() > _SINGULAR * pivots.max():
        solution = lapack.dgetrs(factors, order, rhs)[0]
    else:
        work = int(lapack.dgelsy_lwork(*m.shape, 1, _RANK)[0])
        solution = lapack.dgelsy(m, rhs, np.zeros((len(m), 1), np.int32), _RANK, work)[1][: len(m)]
    return solution if np.isfinite(solution).all() else None
