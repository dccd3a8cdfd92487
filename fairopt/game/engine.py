"""The engine `equilibrium`: which algorithm finds equilibria of the per-server game at which alpha."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import _clock
from ..engines.base import Run, Solution
from ..engines.small import solutions as small
from ..engines.welfare import served
from ..model.problem import Problem
from .equilibrium import alpha_zero, equilibria
from .model.equilibrium_system import EquilibriumSystem
from .psdsf.continuation import PriceStart
from .psdsf.limit import limit

#: alpha of PS-DSF's system where the limit is not followed.
_LARGE = 64.0
#: What PS-DSF's algorithms say of their answers: the judge alone knows.
_UNMEASURED = "not measured"


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in [0, infinity]."""
    yield from served.solutions(problem, "equilibrium")
    if problem.criterion.alpha == 0:
        yield from alpha_zero.solutions(problem)
    elif np.isinf(problem.criterion.alpha):
        yield from _psdsf(problem, tol, warm)
    else:
        yield from small.solutions(problem, tol, "equilibrium", warm)
        yield from equilibria.solutions(problem, tol, warm)


def _psdsf(problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
    """alpha = infinity; where the answer may be one of many, `solving` gives the problem in an order of its own."""
    begun, cluster, polytope = _clock.now(), problem.cluster, problem.polytope
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "equilibrium", status="nobody can run anything")
        return
    build, begun = _clock.now() - begun, _clock.now()
    prices = warm if isinstance(warm, PriceStart) else None
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], _LARGE)
    for found in limit(method, tol, prices):
        run = Run(found.by, _clock.now() - begun)
        tasks = polytope.allocation(polytope.inside(found.tasks / method.gamma))
        yield Solution(tasks, None, "equilibrium", (run,), build, found.steps, _UNMEASURED, found.notes, found.prices)
