"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...certificates.backward import backward_error
from ...core.settled import settled
from ...errors import SolverError
from ...model.problem import Problem
from ._steps import corrected
from ._system import Active, Game, Place

Array = NDArray[np.float64]


#: Of a crossing with a larger error the active set is looked for anew: the change of the data has left something in it.
_FINE = 1e-11


def refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at
    tasks, log_rows = polytope.allocation(polytope.inside(np.maximum(there.z, 0.0))), there.log_prices(alpha)
    error = backward_error(polytope, rule, tasks, log_rows).error
    if error > _FINE:
        try:
            active = settled(polytope, rule, tasks, log_rows, None)
            part = active.part * active.total[polytope.pair_user]
            tasks, log_rows = polytope.allocation(polytope.inside(part / polytope.gamma)), active.prices[0].log_rows
            error = backward_error(polytope, rule, tasks, log_rows).error
        except SolverError:  # its error says so
            pass
    return error, tasks, polytope.by_server(log_rows, unused=-np.inf)
