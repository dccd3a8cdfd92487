"""Certificates of columns, by arithmetic from amounts and prices: lexicographic rise, and backward error."""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array, ratio
from ..model.columns import ColumnProgram
from .backward import COARSE, LEVELS
from .leximin import least_rises


def rises(program: ColumnProgram, x: Array, prices: Array, values: Array) -> Array:
    r"""Bounds on the relative increase of each user's level at no loss to users at or below it, (users,).

    Let :math:`y \ge 0` be prices of rows and :math:`p \ge 0` values of levels. Every feasible x' satisfies

    .. math:: \sum_n p_n (\ell'_n - \ell_n) \le y \cdot (1 - A x) + \sum_k x_k (c_k - v_k)^+
        + \sum_k (X_k - x_k) (v_k - c_k)^+,

    with the cost :math:`c = A^T y` and the value :math:`v = G^T p` of a unit of each column, and the largest amount
    :math:`X_k` of column k. Let the right-hand side be g, and let users be in the order of their levels. If the levels
    of users up to m do not decrease, the relative increase of :math:`\ell_n` is at most
    :math:`(g + \sum_{j > m} p_j \ell_j) / (p_n \ell_n)`. The bound is the least over all sets of prices and values and
    all m, of the larger of this number and :math:`\ell_m / \ell_n - 1`. If the level of some user is 0, the bound is
    infinite for such users, and 0, without a proof, for all others.

    Parameters
    ----------
    program : ColumnProgram
    x : (columns,)
        Amounts.
    prices : (sets, rows)
        Sets of prices y.
    values : (sets, users)
        Sets of values p.
    """
    limits, gain = program.limits, program.gain
    level, best = gain @ x, np.full(gain.shape[0], np.inf)
    if not (level > 0).all():
        return np.asarray(np.where(level > 0, 0.0, np.inf))
    idle, most, order = np.maximum(1 - limits @ x, 0.0), program.most, np.argsort(level, kind="stable")
    for y, p in zip(np.maximum(prices, 0.0), np.maximum(values, 0.0), strict=True):
        above = limits.T @ y - gain.T @ p
        gap = y @ idle + np.where(above > 0, x * above, (most - x) * -above).sum()
        paid = (p * level)[order]
        others = np.cumsum(paid[::-1])[::-1] - paid
        best[order] = np.fmin(best[order], least_rises(level[order], gap + others, paid))
    return best


def backward_error(program: ColumnProgram, x: Array, alpha: float, prices: Array) -> tuple[float, Array]:
    r"""Relative change of the data that makes amounts optimal at finite alpha, and errors of users, (users,).

    With marginal utilities :math:`m_n = w_n \ell_n^{-\alpha}` and prices y of rows, amounts x are optimal if

    .. math:: v_k = \sum_n m_n G_{nk} \le c_k = \sum_r y_r A_{rk}, \quad \text{with equality where } x_k > 0,
        \qquad y_r > 0 \Rightarrow (A x)_r = 1.

    If :math:`c_k` differs from :math:`v_k`, the coefficients of column k are changed by the relative amount
    :math:`|\log (v_k / c_k)|`, and capacities with them. A column whose cost exceeds its value may instead be dropped,
    which reduces the levels of its users and the use of its rows. Idle capacity of rows with a price is removed. All
    errors are infinite if the level of some user is 0, or a price is not finite.

    Parameters
    ----------
    program : ColumnProgram
    x : (columns,)
        Amounts.
    prices : (rows,)
        Prices y in an arbitrary unit.
    """
    limits, gain = program.limits, program.gain
    level, best = gain @ x, np.full(gain.shape[0], np.inf)
    if not (level > 0).all() or not np.isfinite(prices).all():
        return np.inf, best
    log = np.log(program.weight) - alpha * np.log(level)
    value = np.exp(log - log.max()) @ gain
    unit = ratio(value @ x, np.maximum(prices, 0.0) @ (limits @ x))
    idle, error, touched = np.maximum(1 - limits @ x, 0.0), np.inf, abs(gain).sign()
    for tau in (*LEVELS, *COARSE):
        live = (idle <= tau) & (prices > 0)
        y = np.where(live, prices * unit, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(value > 0, np.log(value / (y @ limits)), 0.0)
        dropped = x * (off < -tau)
        off = np.where(dropped > 0, 0.0, np.where(x > 0, np.abs(off), np.maximum(off, 0.0)))
        lost = gain @ dropped / level
        found = max(off.max(), lost.max(), np.where(live, limits @ dropped + idle, 0.0).max())
        if found < error:
            error, best = float(found), np.maximum(lost, (touched.multiply(off)).max(axis=1).toarray()[:, 0])
        if error <= tau:
            break
    return error, best
