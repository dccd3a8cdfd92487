"""Candidates of the game's algorithms, as tasks and prices of a cluster."""

from __future__ import annotations

import numpy as np

from ...engines.base import Run, Solution
from ...model._arrays import Array
from .equilibrium_system import EquilibriumSystem


def solution(
    method: EquilibriumSystem, tasks: Array, log_price: Array | None, by: str, steps: int, seconds: float, tol: float
) -> Solution:
    """Wrap tasks of pairs and level prices as a candidate; without prices only its certificate tells its error."""
    polytope = method.polytope
    found, log, status = polytope.allocation(polytope.inside(tasks / method.gamma)), None, "not measured"
    if log_price is not None:
        log = log_unit_prices(method, log_price)
        status = "converged" if method.exploitability(tasks, log_price) <= tol else "not converged"
    run = Run(by, seconds)
    return Solution(found, None, "equilibrium", (run,), 0.0, steps, status, log=log, rough=log is not None)


def log_unit_prices(method: EquilibriumSystem, log_price: Array) -> Array:
    """Log prices per resource unit (servers, resources) from level prices: `alpha log v - log c`."""
    capacity = method.polytope.cluster.capacity
    return np.where(method.row, method.alpha * log_price - np.log(np.where(method.row, capacity, 1.0)), -np.inf)
