"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.active_set import refined as refine
from ...core.judge import infeasibility
from ._begin import stack_of
from ._scaled import Cell, cell
from ._system import Game
from .options import OPTIONS, CurveOptions

Array = NDArray[np.float64]
Data = Sequence[Array]


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
    stack, (server, resource) = stack_of(q), np.nonzero(q.row)
    whole, log_v = np.zeros((*q.gamma.shape, 1)), np.full((*q.row.T.shape, 1), -np.inf)
    whole[g.user, g.server, 0] = z
    log_v[resource, server, 0] = log_price / stack.power
    level, binding = None, None
    if stack.limited is not None:
        level, binding = (stack.ratio * xi)[:, None], (xi > 0)[:, None] & stack.limited
    part, best = stack.size * whole / stack.user_tasks(whole)[:, None], np.inf
    for least in (0.0, options.tied):  # ties: tasks that only the change of the data has made positive
        if best <= options.fine:
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found, rows, error = refine(stack, whole, log_v, level, part > least, log_v > -np.inf, binding, 0.01 * tol)
        error = np.maximum(error, infeasibility(stack, found))
        if error[0] < best:
            best, tasks[:], log_rows[:] = float(error[0]), stack.tasks(found)[0], rows[..., 0].T
    return best


def cell_of(alpha: float, data: Data) -> Cell:
    """The cell of a problem's arrays (`stack.Stacked`, one of them) at an alpha."""
    capacity, demand, eligible, share, weight, limit = data
    found: Cell = cell(float(alpha), True, capacity, demand, eligible, limit, weight, share)
    return found
