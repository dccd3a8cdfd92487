"""From a crossing of the curve to tasks and prices of the data as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...certificates.backward import backward_error
from ...core import last_digits
from ...model._arrays import Array
from ...model.problem import Problem
from ._steps import corrected
from ._system import Active, Game, Place

#: A crossing with a larger error is refined.
_FINE = 1e-11


def refined(problem: Problem, alpha: float, g: Game, at: Place) -> tuple[float, Array, Array]:
    """The certificate, tasks (users, servers) and log prices of whole capacities (servers, resources) of a crossing.

    `g` are the data as they are.
    """
    polytope, rule, there = problem.polytope, replace(problem.criterion, alpha=alpha), at.copied()
    unknowns = Active(g, there)
    if corrected(unknowns, there, np.empty(0), unknowns.whole, at.theta, 1e-14)[1] is None:
        there = at

    def judged(tasks: Array, log_rows: Array) -> tuple[float, Array, Array]:
        whole = polytope.allocation(polytope.inside(tasks / polytope.gamma))
        error = backward_error(polytope, rule, whole, log_rows).error
        return error, whole, polytope.by_server(log_rows, unused=-np.inf)

    best = judged(polytope.gamma * np.maximum(there.z, 0.0), there.log_prices(alpha))
    if best[0] > _FINE:
        finer = last_digits.refined(polytope, rule, polytope.gamma * np.maximum(at.z, 0.0), at.log_prices(alpha), 1e-14)
        if finer is not None:
            best = min(best, judged(finer.tasks, finer.log_rows), key=lambda one: one[0])
    return best
