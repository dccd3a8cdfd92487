"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from ...certificates.backward import backward_error
from ...core.settled import settled
from ...errors import SolverError
from ...model._arrays import Array
from ...model.problem import Problem
from ._steps import corrected
from ._system import Active, Game, Place

#: A crossing of which the error is above this is solved again: only the change of the data has given some pairs tasks.
_FINE = 1e-11


def refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at

    def judged(z: Array, log_rows: Array) -> tuple[float, Array, Array]:
        tasks = polytope.allocation(polytope.inside(z))
        error = backward_error(polytope, rule, tasks, log_rows).error
        return error, tasks, polytope.by_server(log_rows, unused=-np.inf)

    found = judged(np.maximum(there.z, 0.0), there.log_prices(alpha))
    if found[0] > _FINE:
        with suppress(SolverError):
            active = settled(polytope, rule, found[1], there.log_prices(alpha), None)
            better = judged(active.part * active.total[g.user] / polytope.gamma, active.prices[0].log_rows)
            found = min(found, better, key=lambda one: one[0])
    return found
