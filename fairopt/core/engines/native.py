"""The native engines of the global mechanisms: from a criterion alone, without a program.

Where there is room for all tasks prices are zero, and there is nothing to optimize (`served`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base import clock
from ...model._arrays import Array
from ...model.criterion import ConcaveWelfare, Criterion, FairnessEfficiency
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..solution import Solution
from . import maxmin, small

#: Times that tasks move away from servers that are overfull: parts fall as this power of what these are overfull by.
_ROUNDS, _POWER = 30, 0.5


def served(problem: Problem, engine: str) -> Iterator[Solution]:
    """The answer in which everybody has all its tasks, if there is room for these; prices are 0 then."""
    rule, begun = problem.criterion, clock.now()
    known = type(rule) is Criterion or (rule.scope != "game" and len(problem.cluster.servers) == 1)
    if not known or rule.scope == "per_server" or not np.isfinite(problem.limits).all():
        return
    found = everybody_served(problem.polytope)
    if found is not None and len(found):
        tasks, free = problem.polytope.allocation(found), np.full(problem.cluster.capacity.shape, -np.inf)
        log = free if np.isfinite(rule.alpha) else None
        seconds = clock.now() - begun
        yield Solution(tasks, None, engine, build=seconds, status="everybody has all its tasks", log=log, fine=True)


def everybody_served(polytope: Polytope) -> Array | None:
    """Fractions (pairs,) with which everybody has all its tasks, or None: there is no room, or none was found.

    Users split their tasks in proportion to what they could run on servers, less on those that are overfull.
    """
    if not np.isfinite(polytope.limit).all() or (polytope.reach < polytope.limit).any():
        return None
    servers, owner = polytope.cluster.shape[1], polytope.pair_user
    need = polytope.limit @ polytope.cluster.demand[polytope.users]
    if (need > polytope.cluster.capacity.sum(axis=0)).any():
        return None
    weight = np.ones(servers)
    for _ in range(_ROUNDS if servers > 1 else 1):
        part = weight[polytope.pair_server]
        reach = np.bincount(owner, polytope.gamma * part, len(polytope.users))
        fraction = part * (polytope.limit / reach)[owner]
        columns = (fraction * column for column in polytope.pair_use.T)
        used = np.max([np.bincount(polytope.pair_server, column, servers) for column in columns], axis=0)
        if (used <= 1).all():
            return np.asarray(fraction)
        weight = weight / np.maximum(used, 1e-3) ** _POWER
    return None


def handles(criterion: Criterion) -> bool:
    """True for concave welfare, fairness-efficiency and max-min on servers, and max-min inside each."""
    scopes = ("pool", "servers", "per_server") if np.isinf(criterion.alpha) else ("pool", "servers")
    return type(criterion) in (Criterion, FairnessEfficiency, ConcaveWelfare) and criterion.scope in scopes


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    yield from served(problem, "native")
    yield from small.solutions(problem, tol, "native", warm)
    if np.isinf(problem.criterion.alpha):
        yield from maxmin.solutions(problem)
    else:
        from . import welfare

        yield from welfare.solutions(problem, tol, warm)
