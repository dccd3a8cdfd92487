"""Concave welfare by the core's interior point, whatever the utilities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import _clock
from ...core import welfare
from ...model.concave_welfare import ConcaveWelfare
from ...model.problem import Problem
from ..base import Run, Solution

#: Beyond this alpha prices differ by more than products of doubles tell apart.
LARGEST_ALPHA = 16.0
#: Of so many pairs, with more users than prices, most are left aside by `interior_point`; of few it has lists.
MANY = 100_000


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """One answer where it applies."""
    polytope, begun = problem.polytope, _clock.now()
    pairs, users, servers = len(polytope.gamma), len(polytope.users), problem.cluster.shape[1]
    better = users >= len(polytope.row_server) and (pairs > MANY or 4 * pairs < users * servers)
    alone = isinstance(problem.criterion, ConcaveWelfare)  # which `interior_point` does not know
    if not users or problem.criterion.alpha > LARGEST_ALPHA or (better and not alone):
        return
    with np.errstate(all="ignore"):
        found = welfare.run(problem, tol, warm)
    if np.isinf(found.error):
        return
    status = "converged" if found.error <= tol else "not converged"
    run = Run("interior point", status, 0.0, _clock.now() - begun, found.error)
    tasks, log = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    rough = found.error > tol
    yield Solution(tasks, None, "native", (run,), 0.0, found.steps, status, (), found.warm, log, rough)
