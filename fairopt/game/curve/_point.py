"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...certificates.backward import backward_error
from ...core.settled import settled
from ...errors import SolverError
from ...model.problem import Problem
from ._system import Place

Array = NDArray[np.float64]


def refined(problem: Problem, alpha: float, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing."""
    polytope, rule = problem.polytope, replace(problem.criterion, alpha=alpha)
    tasks, log_rows = polytope.allocation(at.z), at.log_prices(alpha)
    try:
        active = settled(polytope, rule, tasks, log_rows, None)
        part = active.part * active.total[polytope.pair_user]
        tasks, log_rows = polytope.allocation(polytope.inside(part / polytope.gamma)), active.prices[0].log_rows
    except SolverError:  # its error says that it is not as near as it should be
        pass
    error = backward_error(polytope, rule, tasks, log_rows).error
    return error, tasks, polytope.by_server(log_rows, unused=-np.inf)
