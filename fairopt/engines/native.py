"""The native engines of the global mechanisms: from a criterion alone, without a formulation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import _clock
from ..core import welfare as core
from ..model.concave_welfare import ConcaveWelfare
from ..model.criterion import Criterion
from ..model.fairness_efficiency import FairnessEfficiency
from ..model.problem import Problem
from .base import Run, Solution
from .small import solutions as small
from .welfare import served


def handles(criterion: Criterion) -> bool:
    """Is it a concave welfare, or one with a part for efficiency, or max-min, on servers (max-min also inside each)?"""
    scopes = ("pool", "servers", "per_server") if np.isinf(criterion.alpha) else ("pool", "servers")
    return type(criterion) in (Criterion, FairnessEfficiency, ConcaveWelfare) and criterion.scope in scopes


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    yield from served.solutions(problem, "native")
    yield from small.solutions(problem, tol, "native")
    if np.isinf(problem.criterion.alpha):
        from .maxmin import lexicographic

        yield from lexicographic.solutions(problem)
    else:
        yield from welfare(problem, tol, warm)


def welfare(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """The core's interior point: one answer, or none where numbers are beyond doubles."""
    polytope, begun = problem.polytope, _clock.now()
    if not len(polytope.users):
        nothing = np.full(problem.cluster.capacity.shape, -np.inf)
        tasks = np.zeros(problem.cluster.shape[:2])
        yield Solution(tasks, None, "native", status="nobody can run anything", log=nothing)
        return
    # Nobody else finds last digits where there are floors, nor those of users whom prices keep out.
    alone = problem.criterion.floor.any() or isinstance(problem.criterion, ConcaveWelfare)
    with np.errstate(all="ignore"):
        found = core.run(problem, min(tol, 1e-11) if alone else tol, warm)
    if not np.isfinite(found.log_rows).any():
        return
    rough = found.error > tol
    status = "not converged" if rough else "converged"
    run = Run("interior point", status, 0.0, _clock.now() - begun, found.error)
    tasks, log = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    yield Solution(tasks, None, "native", (run,), 0.0, found.steps, status, (), found.warm, log, rough)
