"""Concave welfare by the core's interior point, whatever the utilities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import _clock
from ..core import welfare
from ..model.criterion import ConcaveWelfare
from ..model.problem import Problem
from .base import Run, Solution


def solutions(problem: Problem, tol: float, warm: object = None, patience: float = np.inf) -> Iterator[Solution]:
    """One answer, or none where numbers are beyond doubles; `patience` as in the core's run."""
    polytope, begun = problem.polytope, _clock.now()
    # Nobody else finds last digits where there are floors, nor those of users whom prices keep out.
    alone = problem.criterion.floor.any() or isinstance(problem.criterion, ConcaveWelfare)
    aim = min(tol, 1e-11) if alone else tol
    with np.errstate(all="ignore"):
        found = welfare.run(problem, aim, warm, patience=patience)
    if not np.isfinite(found.log_rows).any():
        return
    status = "converged" if found.error <= tol else "not converged"
    run = Run("interior point", _clock.now() - begun)
    tasks, log = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    rough = found.error > tol
    yield Solution(tasks, None, "native", (run,), 0.0, found.steps, status, (), found.warm, log, rough)
