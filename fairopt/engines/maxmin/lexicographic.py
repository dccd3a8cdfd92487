"""The native engine of lexicographic max-min: water filling where servers do not interact, else all levels by faces.

Where neither is good enough and the cluster is small, it is solved without rounding (`rational`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ... import _clock
from ...core.leximin import Leximin
from ...errors import SolverError
from ...model._arrays import Array
from ...model.problem import Problem
from ..base import Run, Solution
from .filling import filled
from .restoration import restored

#: What the reader should know of an answer that is not the interior point's.
_NOTE = "solved in rational arithmetic: numbers differ by too many decades for the usual one"


def solutions(problem: Problem) -> Iterator[Solution]:
    """Answers to a max-min criterion, for a judge to take the first good one."""
    start = _clock.now()
    cluster, criterion, polytope = problem.cluster, problem.criterion, problem.polytope
    build = _clock.now() - start
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "native", status="nobody can run anything")
        return
    if criterion.scope == "per_server" or cluster.shape[1] == 1:
        tasks = filled(polytope, criterion)
        run = Run("water filling", _clock.now() - start - build)
        yield Solution(tasks, None, "native", (run,), build, 1, "exact")
    else:
        start, levels = _clock.now(), None
        try:
            with np.errstate(all="ignore"):
                levels = Leximin(polytope, criterion)
                prices = levels.prices()
        except SolverError:
            pass
        if levels is not None:
            status = "levels with weak proofs" if levels.loose else "converged"
            for tasks in _tasks(levels):
                run = Run("interior point", _clock.now() - start)
                yield Solution(tasks, prices, "native", (run,), build, levels.steps, status)
                start, build = _clock.now(), 0.0
    yield from _exact(problem)


def _tasks(levels: Leximin) -> Iterator[Array]:
    """The tasks of levels, with last digits and without: first with them where later levels may have lost some."""
    made: list[Callable[[], Array | None]] = [levels.tasks, lambda: restored(levels)]
    for make in made if len(levels.stages) == 1 else reversed(made):
        with np.errstate(all="ignore"):
            tasks = make()
        if tasks is not None:
            yield tasks


def _exact(problem: Problem) -> Iterator[Solution]:
    """Without rounding, where the cluster is small enough for that and servers interact."""
    from ...exact import rational

    start, criterion = _clock.now(), problem.criterion
    whole = None if criterion.scope == "per_server" else rational.leximin(problem.cluster, criterion, problem.limits)
    if whole is None:
        return
    tasks, prices = whole.tasks.astype(float), whole.prices.astype(float)
    run = Run("rational simplex", _clock.now() - start)
    yield Solution(tasks, prices, "native", (run,), 0.0, 1, "exact", (_NOTE,))
