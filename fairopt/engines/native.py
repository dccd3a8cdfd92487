"""The native engines of the global mechanisms: from a criterion alone, without a formulation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..model.concave_welfare import ConcaveWelfare
from ..model.criterion import Criterion
from ..model.fairness_efficiency import FairnessEfficiency
from ..model.problem import Problem
from .base import Solution
from .small import solutions as small
from .welfare import served


def handles(criterion: Criterion) -> bool:
    """True for concave welfare, fairness-efficiency and max-min on servers, and max-min inside each."""
    scopes = ("pool", "servers", "per_server") if np.isinf(criterion.alpha) else ("pool", "servers")
    return type(criterion) in (Criterion, FairnessEfficiency, ConcaveWelfare) and criterion.scope in scopes


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    yield from served.solutions(problem, "native")
    yield from small.solutions(problem, tol, "native", warm)
    if np.isinf(problem.criterion.alpha):
        from .maxmin import lexicographic

        yield from lexicographic.solutions(problem)
    else:
        from .welfare import concave

        yield from concave.solutions(problem, tol, warm)
