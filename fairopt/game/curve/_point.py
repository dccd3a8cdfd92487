"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...certificates.backward import backward_error
from ...core.active_set import refined as refine
from ...core.system import stacked
from ...model._arrays import Array
from ...model.problem import Problem
from ._steps import corrected
from ._system import Active, Game, Place

#: A crossing of which the error is above this is tried to be made better, then without pairs that have less than this
#: part of the user's tasks: only the change of the data has given them any.
_FINE, _TIED = 1e-11, 1e-6


def refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at
    tasks, log_rows = polytope.allocation(polytope.inside(np.maximum(there.z, 0.0))), there.log_prices(alpha)
    best = backward_error(polytope, rule, tasks, log_rows).error, tasks, polytope.by_server(log_rows, unused=-np.inf)
    stack = stacked([problem], np.array([alpha]))
    whole, log_v = np.zeros(stack.gamma.shape), np.full(stack.rows.shape, -np.inf)
    whole[polytope.users[g.user], g.server, 0] = at.z
    log_v[polytope.row_resource, polytope.row_server, 0] = at.log_prices(alpha) / stack.power
    level, binding = None, None
    if stack.limited is not None:
        level = np.zeros((len(whole), 1))
        level[polytope.users, 0] = stack.ratio * at.xi
        binding = (level > 0) & stack.limited
    part = stack.size * whole / np.maximum(stack.user_tasks(whole), 1e-300)[:, None]
    for least in (0.0, _TIED):
        if best[0] <= _FINE:
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found, rows, _ = refine(stack, whole, log_v, level, part > least, log_v > -np.inf, binding, 1e-14)
        tasks, log_rows = stack.tasks(found)[0], rows[polytope.row_resource, polytope.row_server, 0]
        now = backward_error(polytope, rule, tasks, log_rows).error
        best = min(best, (now, tasks, rows[..., 0].T), key=lambda one: one[0])
    return best
