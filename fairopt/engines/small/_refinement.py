"""Compiled: the last digits of an interior point: Newton's method on the pairs and rows that are left.

Pairs with a smaller part than slack lose their tasks, rows that idle more than they are worth their price. Of the steps
that solve the rest the shortest in relative changes is taken, so that ties do not matter.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._backward import backward_error
from ._conditions import allocation, jacobian, log_prices, slacks
from ._dense import factored, solved
from ._scaled import infeasibility
from .options import REFINEMENT


@compiled
def _left(c, z, s, v, w, unit, x, place):  # type: ignore[no-untyped-def]
    """Fill `place` (pairs + rows,) with numbers of what stays; what does not is 0 from now on. How many stay."""
    count = 0
    for p in range(len(z)):
        if c.size[p] * z[p] / x[c.user[p]] > s[p]:
            place[p] = count
            count += 1
        else:
            z[p] = 0.0
    for k in range(c.rows):
        if v[k] / unit[k] > w[k]:
            place[len(z) + k] = count
            count += 1
        else:
            v[k] = 0.0
    return count


@compiled
def _moved(c, place, matrix, slack, z, v):  # type: ignore[no-untyped-def]
    """One step of z and v in place; False where it leads out of the positive numbers, or would take too long."""
    pairs, rhs = len(z), np.zeros(len(matrix))
    for k in range(c.rows):
        if place[pairs + k] >= 0:
            rhs[place[pairs + k]] = 1.0
    for p in range(pairs):
        if place[p] < 0:
            continue
        rhs[place[p]] = -slack[p]
        for r in range(c.at.shape[1]):
            if c.use[p, r] > 0 and place[pairs + c.at[p, r]] >= 0:
                rhs[place[pairs + c.at[p, r]]] -= c.use[p, r] * z[p]
    if not np.isfinite(rhs).all() or not np.isfinite(matrix).all():
        return False
    step, order, whole = np.empty(len(rhs)), np.empty(len(rhs), np.int64), matrix.copy()
    if factored(matrix, order) > REFINEMENT.no_ties:
        solved(matrix, order, rhs, step)
    elif len(rhs) <= REFINEMENT.dense:
        step[:] = np.linalg.lstsq(whole, rhs, REFINEMENT.tie)[0]
    else:
        return False
    for a in range(len(step)):
        if not step[a] > -REFINEMENT.fall or not np.isfinite(step[a]):
            return False
    for p in range(pairs):
        z[p] *= 1 + step[place[p]] if place[p] >= 0 else 1.0
    for k in range(c.rows):
        v[k] *= 1 + step[place[pairs + k]] if place[pairs + k] >= 0 else 1.0
    return True


@compiled
def active_set_refined(q, c, z, s, v, w, unit, tol, tasks, log_rows):  # type: ignore[no-untyped-def]
    """Fill tasks and log prices with the best that was found from a point, and return its certificate.

    Slacks s and idle parts w say who stays; `unit` is that of prices. One to three steps do (`docs/certificates.md`).
    """
    pairs = len(z)
    z, v = z.copy(), v.copy()
    x, share, slack = np.zeros(len(q.demand)), np.empty(c.at.shape), np.empty(pairs)
    slacks(c, z, v, x, share, slack)
    place = np.full(pairs + c.rows, -1)
    count = _left(c, z, s, v, w, unit, x, place)
    matrix, best = np.empty((count, count)), np.inf
    found, prices = np.empty(tasks.shape), np.empty(log_rows.shape)
    for step in range(REFINEMENT.steps):
        slacks(c, z, v, x, share, slack)
        allocation(q, c, z, found)
        log_prices(c, v, prices)
        error = max(backward_error(q, found, prices), infeasibility(q, found))
        if error < best:
            best, tasks[:], log_rows[:] = error, found, prices
        elif step > 1:
            break
        if best <= REFINEMENT.sufficient * tol:
            break
        jacobian(c, z, x, share, place, matrix)
        if not _moved(c, place, matrix, slack, z, v):
            break
    return best
