r"""Fair levels of column programs: lexicographic max-min by linear programs, and Newton refinement at finite alpha.

A column program has the limits :math:`A x \le 1` and the levels :math:`G x` of users, with amounts x of columns. It is
solved by column generation: from a restricted program, with prices y of its limits and values p of its levels, columns
whose value :math:`G^T p` exceeds their cost :math:`A^T y` are added until there is no such column. All pairs of
thousands of jobs can therefore be columns. The columns in use at one level of max-min remain in the first program of
the next level, so that all programs are small.

Each level of max-min is the largest common level of the users that are not yet bound, while bound users keep their
levels. By complementary slackness users whose level has a positive value are bound in every optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...base.libraries import sp
from ...model._arrays import Array, Index, Mask, ratio
from ...model.columns import ColumnProgram
from ...model.linear import minimise
from ..accuracy import ACCURATE, CONVERGED, CORRECTIONS, NEGLIGIBLE, VISIBLE


class Found(NamedTuple):
    """Amounts (columns,), prices (sets, rows) and values of levels (sets, users), with a set for each max-min level."""

    x: Array
    prices: Array
    values: Array


#: Relative loss up to which columns with amount 0 remain in the next program (`_NEAR`), and largest number of unknowns
#: of dense equations (`_DENSE`).
_NEAR, _DENSE = 0.1, 2_000

Solver = Callable[[ColumnProgram], Found | None]


def generated(program: ColumnProgram, active: Index, solve: Solver) -> tuple[Found, Index] | None:
    """Solve a program by column generation from the columns `active`; None if a restricted program fails.

    Also returns the indices of the columns with which the next program starts.
    """
    while (found := solve(program.restricted(active))) is not None:
        value = found.values[0] @ program.gain
        profit = ratio(value - found.prices[0] @ program.limits, value, -np.inf)
        added = np.setdiff1d(np.flatnonzero(profit > CONVERGED), active)
        if not len(added):
            x = np.zeros(len(value))
            x[active] = found.x
            return found._replace(x=x), active[(found.x > 0) | (profit[active] > -_NEAR)]
        added = added[np.argsort(-profit[added], kind="stable")]
        active = np.union1d(active, added[: sum(program.limits.shape[:1] + program.gain.shape[:1])])
    return None


def leximin(program: ColumnProgram) -> Found | None:
    """Lexicographic max-min, with prices and values of every level; None if a linear program fails."""
    limits, gain = program.limits, program.gain
    active = np.unique(gain.multiply(program.most).tocsr().argmax(axis=1).A1)
    level, by = np.full(gain.shape[0], np.nan), np.full(gain.shape[0], -1)  # level of a user, and the set that binds it
    sets: list[tuple[Array, Array]] = []
    unit = float((gain @ np.bincount(active, program.most[active], gain.shape[1])).min()) / len(level)
    while (free := by < 0).any():
        answer = generated(program, active, partial(_risen, unit=np.where(free, unit, level), free=free))
        if answer is None:
            return None
        (x, (y,), (p,)), active = answer
        # The value of a level relative to the cost of its columns: zero for users that are not bound.
        paid = ratio(p * (gain @ x), gain.sign() @ ((y @ limits) * x)) * free
        bound = paid > min(VISIBLE, paid.max())
        bound |= paid == paid.max() if not bound.any() else False
        unit = float((gain @ x)[bound].min()) / max(1.0, float((limits @ x).max()))
        level[bound], by[bound] = unit, len(sets)
        sets.append((y, p))
    prices, values = (np.array(each) for each in zip(*sets, strict=True))
    return _exact(program, Found(x, prices, values), level, by)


def _risen(part: ColumnProgram, unit: Array, free: Mask) -> Found | None:
    """Solve for the largest common level of `free` users, in `unit` (users,); other users keep the level `unit`.

    Returns None if the linear program fails.
    """
    rows, columns = part.limits.shape
    gain = sp.diags(1 / unit) @ part.gain
    size = sp.diags(np.sqrt(part.most / gain.max(axis=0).toarray()[0]))
    table = sp.bmat([[part.limits @ size, None], [-gain @ size, sp.csr_matrix(free[:, None] * 1.0)]], format="csr")
    # Kept levels are reduced slightly, as they are attained only to the tolerance of earlier programs.
    right = np.append(np.ones(rows), np.where(free, 0.0, NEGLIGIBLE - 1))
    found = minimise(np.append(np.zeros(columns), -1.0), table, right, method="highs-ipm")
    if found is None:
        return None
    prices, values = np.split(found.prices, [rows])
    return Found(size @ np.maximum(found.x[:-1], 0.0), prices[None], (values / unit)[None])


def _exact(program: ColumnProgram, found: Found, level: Array, by: Index) -> Found:
    """Change amounts, relatively least, such that all users that are bound by the same price set have the same level.

    Unknowns of the least-squares problem are relative changes of amounts, and one level for each price set. Columns
    whose cost exceeds their value at the prices of a level are left out. `found` is returned unchanged if more than
    `_DENSE` columns remain, or if a coefficient is not finite.
    """
    x, prices, values = found
    full = (prices > 0).any(axis=0) & (program.limits @ x > 1 - VISIBLE)
    cost = prices @ program.limits
    runs = np.flatnonzero((x > 0) & (cost - values @ program.gain <= NEGLIGIBLE * cost).all(axis=0))
    if len(runs) > _DENSE:
        return found
    share = sp.diags(1 / level) @ program.gain[:, runs]
    table = np.vstack([program.limits[:, runs].toarray()[full], share.toarray()])
    sets = np.vstack([np.zeros((full.sum(), len(prices))), -np.eye(len(prices))[by]])
    if not np.isfinite(table).all():
        return found
    change = np.linalg.lstsq(np.hstack([table * x[runs], sets]), 1 - table @ x[runs], CONVERGED)[0][: len(runs)]
    exact = np.zeros_like(x)
    exact[runs] = x[runs] * np.maximum(1 + change, 0.0)
    return found._replace(x=exact)


def refined(program: ColumnProgram, found: Found, alpha: float) -> Found:
    r"""Refine amounts at finite alpha by Newton steps on the conditions of columns k in use and binding rows r.

    .. math:: \sum_n m_n G_{nk} = \sum_r y_r A_{rk}, \quad (A x)_r = 1, \qquad m_n = w_n (G x)_n^{-\alpha}

    with weights w. Equations may be dependent, as amounts need not be unique: steps have the least norm. Columns and
    rows whose amount or price becomes negative are left out, and the remaining equations are solved again. `found` is
    returned unchanged if there are no equations or more than `_DENSE` unknowns.
    """
    (x, (y,), (m,)), limits, gain = found, program.limits, program.gain
    runs = np.flatnonzero(x * ((1 / (gain @ x)) @ gain) > 1 - ratio(m @ gain, y @ limits))
    row = np.flatnonzero(y / y.sum() > 1 - limits @ x)
    while 0 < len(runs) + len(row) <= _DENSE:
        z, price = x[runs], y[row]
        a, g = limits[row][:, runs].toarray(), gain[:, runs].toarray()
        for _ in range(CORRECTIONS):
            m = program.weight * (g @ z) ** -alpha
            value = m @ g
            right = np.append(1 - price @ a / value, 1 - a @ z)
            top = np.hstack([(g.T * (alpha * m / (g @ z))) @ g, a.T]) / value[:, None]
            table = np.vstack([top, np.hstack([a, np.zeros((len(row),) * 2)])])
            if not (np.isfinite(table).all() and np.isfinite(right).all()):  # LAPACK requires finite entries
                break
            step = 1 + np.linalg.lstsq(table * np.append(z, price), right, CONVERGED)[0]
            z, price = z * step[: len(runs)], price * step[len(runs) :]
            if np.abs(right).max() < ACCURATE or not (g @ z > 0).all():
                break
        x, y = np.zeros_like(x), np.zeros_like(y)
        x[runs], y[row] = np.maximum(z, 0.0), np.maximum(price, 0.0)
        if (z >= 0).all() and (price >= 0).all():
            break
        runs, row = runs[z > 0], row[price > 0]
    return Found(x, y[None], m[None])
