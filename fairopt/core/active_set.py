r"""Dense Jacobians of the optimality conditions on active sets, for a stack of problems, and refinement by them.

On the active pairs, rows and limits the complementarity conditions of `system` are equations,

.. math:: s_{nk} = 0, \qquad \sum_n D_{nkr} z_{nk} = 1, \qquad \sum_k \tau_{nk} z_{nk} = 1,

with unknowns tasks relative to the user's tasks, log prices :math:`\log v^A`, and prices xi of limits.
"""

from __future__ import annotations

import numpy as np

from ..base.libraries import lapack
from ..model._arrays import Array, Index, Mask
from .accuracy import ACCURATE, CORRECTIONS, SINGLE_ROUNDING
from .factors import TINY
from .judge import backward_errors
from .refinement import DENSE
from .system import OfLimits, Stack

#: Largest relative decrease in a step of tasks (`_MOST_DECREASE`), and of prices v^A (`_MOST_PRICE_DECREASE`).
_MOST_DECREASE, _MOST_PRICE_DECREASE = 0.9, 0.99
#: Relative size below which pivots (`_SINGULAR`) and singular values (`_RANK`) count as zero.
_SINGULAR, _RANK = SINGLE_ROUNDING, ACCURATE


class ActiveSet:
    """Active pairs (N, K, B), rows (R, K, B) and limits (N, B) of a stack, as lists of indices for each problem.

    Attributes
    ----------
    user, server : (B, pairs)
    resource, host : (B, rows)
    limited : (B, limits), users whose limit binds
    is_pair, is_row, is_limit : masks of the same shapes, False for padding at the ends of shorter lists
    """

    def __init__(self, pairs: Mask, rows: Mask, limits: OfLimits = None) -> None:
        limits = np.zeros((len(pairs), pairs.shape[-1]), dtype=bool) if limits is None else limits
        (self.user, self.server), self.is_pair = _numbered(pairs)
        (self.resource, self.host), self.is_row = _numbered(rows)
        (self.limited, _), self.is_limit = _numbered(limits[:, None])

    @property
    def valid(self) -> Mask:
        """Mask (B, unknowns) of the unknowns: pairs, rows and limits in this order, False for padding."""
        return np.concatenate([self.is_pair, self.is_row, self.is_limit], axis=1)

    def jacobian(self, q: Stack, x: Array, share: Array, slope: Array) -> Array:
        r"""Derivatives (B, unknowns, unknowns) of slacks of pairs, and of the use of rows and limits.

        With relative changes :math:`t_{nk} = dx_{nk} / x_n` of tasks, changes b of prices of rows, and changes of xi,

        .. math::
            ds_{nk} = slope \sum_j t_{nj} + \sum_r share_{nkr} b_{kr} + d\xi_n, \qquad
            \sum_n D_{nkr} dz_{nk}, \qquad \sum_k \tau_{nk} dz_{nk}, \qquad dz_{nk} = \frac{x_n}{size_{nk}} t_{nk}

        Parameters
        ----------
        x : (N, B), user tasks
        share : (R, N, K, B), derivatives of log costs in the prices of rows, which defines the unit of prices
        slope : (B,), derivative of a slack in log x

        Returns
        -------
        Array
            Rows and columns in the order of `valid`; zero for padding.
        """
        problem, server, user = np.arange(len(self.user))[:, None], self.server, self.user
        pairs, rows = user.shape[1], self.host.shape[1]
        matrix = np.zeros((len(user), *2 * (pairs + rows + self.limited.shape[1],)))
        by_pair, priced, bound = np.split(matrix, (pairs, pairs + rows), axis=1)
        whole = np.zeros(user.shape)
        np.divide(x[user, problem], q.size[user, server, problem], out=whole, where=self.is_pair)
        whole = whole[:, None]
        same = user[:, :, None] == user[:, None]
        by_pair[:, :, :pairs] = np.where(self._both(self.is_pair, same), slope[:, None, None], 0.0)
        at = self.resource[:, None], user[:, :, None], server[:, :, None], problem[:, None]
        here = self._both(self.is_row, server[:, :, None] == self.host[:, None])
        by_pair[:, :, pairs : pairs + rows] = np.where(here, share[at], 0.0)
        priced[:, :, :pairs] = np.where(here, q.use[at], 0.0).swapaxes(1, 2) * whole
        if self.limited.shape[1]:
            own = self._both(self.is_limit, user[:, :, None] == self.limited[:, None])
            by_pair[:, :, pairs + rows :] = own
            bound[:, :, :pairs] = own.swapaxes(1, 2) * q.share_of_limit[user, server, problem][:, None] * whole
        return matrix

    def _both(self, valid: Mask, related: Mask) -> Mask:
        """Mask (B, pairs, others) of related pairs and others, without padding."""
        return np.asarray(related & self.is_pair[:, :, None] & valid[:, None])


def _numbered(active: Mask) -> tuple[tuple[Index, Index], Mask]:
    """Both indices (B, most) of the active entries of every problem, padded, and the mask of valid indices."""
    flat = active.reshape(-1, active.shape[-1]).T
    order = np.argsort(~flat, axis=1, kind="stable")[:, : int(flat.sum(axis=1).max(initial=0))]
    return np.divmod(order, active.shape[1]), np.take_along_axis(flat, order, axis=1)


def refined(
    q: Stack, z: Array, log_v: Array, xi: OfLimits, pairs: Mask, rows: Mask, binding: OfLimits, aim: float
) -> tuple[Array, Array, Array]:
    """Refine the solution of one problem: fractions (N, K, 1), log prices of whole capacities (R, K, 1), error (1,).

    The masks `pairs`, `rows` and `binding` are the active pairs, rows and limits; inactive pairs get no tasks, inactive
    rows and limits the price zero. Log prices change by `log1p` of the relative change of :math:`v^A`, in which the
    cost of a pair is linear; Newton's method in levels v would remove only the part 1/A of an error in each step.
    At most `CORRECTIONS` steps are taken, until the error is at most `aim`, and the iterate of least error is returned.
    Without an active constraint, or with more than `DENSE` unknowns, the solution is unchanged except for the masks,
    and the error is infinite.
    """
    active = ActiveSet(pairs, rows, binding)
    of_pairs, of_rows = (active.user[0], active.server[0]), (active.resource[0], active.host[0])
    limits = active.limited[0]
    pair_end, row_end, unknowns = (*np.cumsum([len(of_pairs[0]), len(of_rows[0])]), active.valid.size)
    z, log_v = np.where(pairs, z, 0.0), np.where(rows, log_v, -np.inf)
    xi = None if xi is None else np.where(binding, xi, 0.0)
    best, error = (z, q.power * log_v), np.full(1, np.inf)
    if not 0 < unknowns <= DENSE:  # larger dense systems take longer than the engines for large problems
        return *best, error
    for _ in range(CORRECTIONS):
        x, slack, share = q.slacks(z, log_v, xi)
        m = active.jacobian(q, x, share, q.ratio)[0]
        m[:, :pair_end] *= (q.size * z / x[:, None])[of_pairs][:, 0]  # relative changes of tasks of pairs
        rhs = [-slack[of_pairs], (1 - q.used(z))[of_rows]]
        if xi is not None:
            rhs.append((1 - q.of_limits(z))[limits])
        step = least_squares(m, np.concatenate(rhs)[:, 0])
        if step is None:
            break
        z, log_v = z.copy(), log_v.copy()
        z[of_pairs] *= 1 + np.maximum(step[:pair_end, None], -_MOST_DECREASE)
        price_change = float(q.power[0]) * step[pair_end:row_end, None]
        log_v[of_rows] += np.log1p(np.maximum(price_change, -_MOST_PRICE_DECREASE)) / q.power
        if xi is not None:
            xi = xi.copy()
            xi[limits] += step[row_end:, None]
        candidate = backward_errors(q, z, q.power * log_v, early=True)
        if candidate[0] < error[0]:
            best, error = (z, q.power * log_v), candidate
        if error[0] <= aim:
            break
    return *best, error


def least_squares(m: Array, rhs: Array) -> Array | None:
    """Solution (n,) of a square system m (n, n), of least norm if it is singular; None if a number is not finite.

    Rows are scaled to largest entries of one. LU factors are used unless a pivot is negligible. Such systems occur
    where tasks of pairs or prices are not unique; they are solved by a QR factorisation with column pivoting.
    """
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
