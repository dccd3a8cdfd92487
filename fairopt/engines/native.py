"""Native engines of the global mechanisms: what each criterion is solved by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..cluster import Cluster
from ..criteria import Criterion
from ..errors import SolverError
from ..polytope import Polytope
from . import convex, declarative
from .declarative import Solution
from .filling import filled
from .levels import Levels
from .program import Formulation, Leximin

#: How small a rise must be to freeze a user, as parts of the tolerance, in turn.
_FREEZE = (1e-2, 1e-1)


def handles(criterion: Criterion) -> bool:
    """Is there a native engine for this criterion?"""
    return bool(np.isinf(criterion.alpha)) and criterion.scope in ("pool", "servers", "each")


def solutions(cluster: Cluster, criterion: Criterion, tol: float, warm: object = None) -> Iterator[Solution]:
    """Answers to a max-min criterion, for a judge to take the first good one."""
    start = time.perf_counter()
    polytope = Polytope(cluster, criterion.limits(cluster))
    build = time.perf_counter() - start
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "native", status="nobody can run anything")
        return
    if criterion.scope == "each" or cluster.shape[1] == 1:
        tasks = filled(polytope, criterion)
        run = convex.Run("water filling", "exact", 0.0, time.perf_counter() - start - build, 0.0)
        yield Solution(tasks, None, "native", (run,), build, 1, "exact")
    else:
        for freeze in _FREEZE:
            start = time.perf_counter()
            try:
                with np.errstate(all="ignore"):
                    levels = Levels(polytope, criterion, freeze * min(tol, 1e-6))
                    tasks, prices = levels.tasks(), levels.prices()
            except SolverError:
                continue
            run = convex.Run("interior point", "converged", 0.0, time.perf_counter() - start, levels.gap)
            yield Solution(tasks, prices, "native", (run,), build, levels.steps, "converged")
    yield from _reference(cluster, criterion)


def _reference(cluster: Cluster, criterion: Criterion) -> Iterator[Solution]:
    """The last resort: the reference engine, on the same criterion written as a program."""
    note = "the native engine did not reach the tolerance: this is the reference's answer"
    for solution in declarative.solutions(
        cluster, criterion, lambda program: Formulation(Leximin(program.share / program.weight), program.constraints)
    ):
        yield replace(solution, notes=(*solution.notes, note))
