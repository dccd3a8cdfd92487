"""The engine `equilibrium`: which algorithm finds equilibria of the per-server game at which alpha."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import _clock
from ..engines.base import Solution
from ..model.polytope import Polytope
from ..model.problem import Problem
from .equilibrium import alpha_zero, equilibria
from .model.candidate import solution
from .model.canonical import canonical
from .psdsf.limit import limit


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in [0, infinity]."""
    if problem.criterion.alpha == 0:
        return alpha_zero.solutions(problem)
    if np.isinf(problem.criterion.alpha):
        return _psdsf(problem, tol)
    return equilibria.solutions(problem, tol, warm)


def _psdsf(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = infinity, in an order that does not depend on the given one: the answer may be one of many."""
    begun = _clock.now()
    cluster, criterion = problem.cluster, problem.criterion
    users, servers = canonical(cluster)
    ordered = cluster.select([cluster.users[n] for n in users], [cluster.servers[i] for i in servers])
    polytope = Polytope(ordered, problem.limits[users])
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "equilibrium", status="nobody can run anything")
        return
    build = _clock.now() - begun
    for method, answer in limit(polytope, criterion.weight[users][polytope.users], tol):
        seconds = _clock.now() - begun - build
        found = solution(polytope, method, answer, build, seconds, criterion.alpha, tol)
        tasks = np.empty_like(found.tasks)
        tasks[np.ix_(users, servers)] = found.tasks
        yield replace(found, tasks=tasks)
