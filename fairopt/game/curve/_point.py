"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._loops import compiled
from ...engines.small._conditions import conditions
from ...engines.small._refinement import active_set_refined
from ...engines.small._scaled import Cell, cell
from ._begin import begun
from ._follow import ARRIVED, follow, memory_of
from ._system import Game
from .options import OPTIONS, CurveOptions

Array = NDArray[np.float64]
Data = Sequence[Array]

#: A slack or idle part that nothing active has, and one that nothing inactive has.
_IN, _OUT = -1.0, 1e9


@compiled
def _signs(q, c, g, z, log_price, xi, s, w, v):  # type: ignore[no-untyped-def]
    """Fill what is active, in the slacks s and idle parts w, and prices v."""
    resources, x = q.capacity.shape[1], np.zeros(len(g.limit))
    for p in range(len(z)):
        x[g.user[p]] += g.size[p] * z[p]
        if z[p] > 0:
            s[p] = _IN
        for r in range(resources):
            k = g.at[p, r]
            if k >= 0 and log_price[k] > -np.inf:
                v[c.at[p, r]], w[c.at[p, r]] = np.exp(log_price[k] / c.power), _IN
    for p in range(len(z)):
        k, n = c.at[p, resources], g.user[p]
        if k >= 0 and xi[n] > 0 and c.cost[p, resources] == 1.0:
            # The price of a limit is what users would pay less what they have to.
            log_worth = c.power * c.gain[p] - q.alpha * np.log(x[n]) + np.log(-np.expm1(-q.alpha * xi[n]))
            v[k], w[k] = np.exp(log_worth / c.power), _IN


# Not compiled: they run once a point, and compiling them takes longer than it would ever save.


def refined(
    q: Cell,
    g: Game,
    z: Array,
    log_price: Array,
    xi: Array,
    tol: float,
    tasks: Array,
    log_rows: Array,
    options: CurveOptions = OPTIONS,
) -> float:
    """Fill tasks and log prices of whole capacities from a crossing, by Newton's method; the certificate.

    `log_price` (rows,) is minus infinity for rows that are not active.
    """
    c = conditions(q)
    s, w = np.full(len(z), _OUT), np.full(c.rows, _OUT)
    v, unit = np.zeros(c.rows), np.ones(c.rows)
    _signs(q, c, g, z, log_price, xi, s, w, v)
    error = float(active_set_refined(q, c, z, s, v, w, unit, tol, tasks, log_rows))
    if error > options.fine:  # ties: tasks that only the change of the data has made positive
        total = np.bincount(g.user, g.size * z, len(g.limit))
        s = np.where(g.size * z > options.tied * total[g.user], _IN, _OUT)
        found, rows = np.empty(tasks.shape), np.empty(log_rows.shape)
        other = float(active_set_refined(q, c, z, s, v, w, unit, tol, found, rows))
        if other < error:
            error, tasks[:], log_rows[:] = other, found, rows
    return error


def first(
    alpha: float, near: float, data: Data, tol: float, most: int, control: Array, tasks: Array, log_rows: Array
) -> tuple[float, float, int]:
    """The first crossing of alpha on the curve, from `near` on the way from 1: fills tasks and log prices.

    Returns the certificate (infinite where the curve does not arrive), the index and the steps. `most` bounds the steps
    of the curve, `tol` is the error at which its beginning ends.
    """
    tasks[:], log_rows[:] = 0.0, -np.inf
    g, at, sound = begun(cell_of(near, data), tol, OPTIONS.begin_steps)
    if not sound:
        return np.inf, 0.0, 0
    pairs, rows, users = len(g.user), len(g.host), len(g.limit)
    z, log_price, xi = np.zeros((1, pairs)), np.zeros((1, rows)), np.zeros((1, users))
    x, theta, index = np.zeros((1, users)), np.zeros(1), np.zeros(1)
    ended, found, _, steps = follow(
        g, at, np.array([np.log(alpha)]), alpha > 1, most, control, memory_of(at, control), np.zeros(users),
        z, log_price, xi, x, theta, index, np.zeros((0, 2, users)), np.zeros(0),
    )  # fmt: skip
    if ended != ARRIVED or found == 0:
        return np.inf, 0.0, steps
    error = refined(cell_of(alpha, data), g, z[0], log_price[0], xi[0], tol, tasks, log_rows)
    return error, float(index[0]), steps


def cell_of(alpha: float, data: Data) -> Cell:
    """The cell of a problem's arrays (`engines.small.stack.Stacked`, one of them) at an alpha."""
    capacity, demand, eligible, share, weight, limit = data
    found: Cell = cell(float(alpha), True, capacity, demand, eligible, limit, weight, share)
    return found
