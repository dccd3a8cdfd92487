"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.active_set import refined as refine
from ...core.judge import infeasibility
from ...core.system import stacked
from ...model.problem import Problem
from ._system import Game, Place

Array = NDArray[np.float64]

#: A crossing of which the error is above this is tried to be made better without pairs that have less than this part of
#: the user's tasks: only the change of the data has given them any.
_FINE, _TIED = 1e-11, 1e-6


def refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing."""
    stack, polytope = stacked([problem], np.array([alpha])), problem.polytope
    whole, log_v = np.zeros(stack.gamma.shape), np.full(stack.rows.shape, -np.inf)
    whole[g.user, g.server, 0] = at.z
    on = at.row_on & (at.w > 0)
    log_price = alpha * at.level[on] + np.log(at.w[on])
    log_v[polytope.row_resource[on], polytope.row_server[on], 0] = log_price / stack.power
    level, binding = None, None
    if stack.limited is not None:
        level, binding = (stack.ratio * at.xi)[:, None], (at.xi > 0)[:, None] & stack.limited
    part = stack.size * whole / stack.user_tasks(whole)[:, None]
    best, tasks, log_rows = np.inf, np.empty(0), np.empty(0)
    for least in (0.0, _TIED):
        if best <= _FINE:
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found, rows, error = refine(stack, whole, log_v, level, part > least, log_v > -np.inf, binding, 1e-14)
        error = np.maximum(error, infeasibility(stack, found))
        if not len(tasks) or error[0] < best:
            best, tasks, log_rows = float(error[0]), stack.tasks(found)[0], rows[..., 0].T
    return best, tasks, log_rows
