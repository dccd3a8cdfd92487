"""Small linear programs of one shape, all at once, by the simplex method from a feasible basis."""

from __future__ import annotations

import numpy as np

from ...model._arrays import Array

#: Entries below this are rounding.
_TINY = 1e-9


def highest(rows: Array, level: Array, enough: float = np.inf) -> tuple[Array, Array]:
    """The largest t (programs,) with `rows @ y + level t <= 0, .., 0, 1`, `y >= 0`; and y (programs, unknowns).

    t is -1 where the method fails, and may be less than the largest where it is more than `enough`. A basic variable is
    `table[i, -1] - sum_j table[i, j] free_j`; variables are numbered, columns first, then slacks of rows. Of ties the
    largest pivot leaves, after many steps without gain the first variable (Bland).
    """
    programs, count, size = rows.shape
    best, point = np.full(programs, -1.0), np.zeros((programs, size))
    table = np.concatenate([rows, level[..., None], np.zeros((programs, count, 1))], axis=2)
    table[:, -1, -1] = 1.0
    basic = np.tile(np.arange(size + 1, size + 1 + count), (programs, 1))
    free = np.tile(np.arange(size + 1), (programs, 1))
    which, still = np.arange(programs), np.zeros(programs, np.intp)
    enter, top = np.full(programs, size), np.full(programs, -1)  # t enters first, and its row stays
    for _ in range(50 * (size + count)):
        k = np.arange(len(which))
        bland = still[:, None] > size + count
        column = table[k, :, enter]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(column > _TINY, table[:, :, -1] / column, np.inf)
        least = ratio.min(axis=1)
        out = np.where(ratio <= least[:, None] + 1e-13, np.where(bland, basic, -column), np.inf).argmin(axis=1)
        top = np.where(top < 0, out, top)
        fails = (least == np.inf) | ((out == top) & (free[k, enter] != size))
        before, at = table[k, top, -1], table[k, out, enter][:, None]
        row = table[k, out] / at
        table -= column[..., None] * row[:, None]
        table[k, :, enter], table[k, out] = -column / at, row
        table[k, out, enter] = 1 / at[:, 0]
        basic[k, out], free[k, enter] = free[k, enter], basic[k, out]
        table[:, :, -1] = np.maximum(table[:, :, -1], 0.0)
        cost = table[k, top, :-1]
        t = table[k, top, -1]
        still = np.where(t <= before, still + 1, 0)
        ends = ~fails & ((cost.min(axis=1) >= -_TINY) | (t > enough))
        best[which[ends]] = t[ends]
        program, i = np.nonzero(ends[:, None] & (basic < size))
        point[which[program], basic[program, i]] = table[program, i, -1]
        stay = ~fails & ~ends
        if not stay.any():
            break
        if not stay.all():
            table, basic, free, which, still, top, cost = (
                one[stay] for one in (table, basic, free, which, still, top, cost)
            )
        bland = still[:, None] > size + count
        enter = np.where(cost < -_TINY, np.where(bland, free, cost), np.inf).argmin(axis=1)
    return best, point
