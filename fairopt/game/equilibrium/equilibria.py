"""Equilibria for alpha in (0, infinity): interior points, else along a homotopy, else best responses.

Each is a candidate, whose certificate is computed from its tasks and prices alone. Deterministic: no random start, and
the order of users and servers does not matter beyond rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...engines import native
from ...engines.base import Solution
from ...engines.small.solutions import in_levels
from ...engines.welfare import concave
from ...model.problem import Problem
from ..model._warnings import suppress_fp_warnings
from ..model.candidate import Candidate, solution
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from ..responses.rounds import Sweeps
from . import entropy_homotopy

Array = NDArray[np.float64]


#: Above this alpha prices in money are further apart than doubles resolve, and levels come first.
_STEEP = 64.0
#: Most pairs of users and servers of the interior point in levels, whose algebra is dense.
_LEVELS = 3_000
#: Up to so many prices the homotopy is faster than that.
_FEW = 64


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in (0, infinity).

    Where many users meet few types of servers the interior point is jammed by users who change over one by one, and the
    homotopy, whose unknowns are the few prices, is first.
    """
    criterion, polytope = problem.criterion, problem.polytope
    if not len(polytope.users):
        yield from concave.solutions(problem, tol)
        return
    if criterion.scope == "game" and criterion.alpha == 1:
        yield from _program(problem, tol)
    begun = _clock.now()
    method = EquilibriumSystem.of(polytope, criterion)
    prices = int(method.row.sum())
    many, steep = len(method.weight) >= max(500, 5 * prices), criterion.alpha > _STEEP

    def in_money() -> Iterator[Solution]:
        """The core's interior point; in welfare it has been tried."""
        if criterion.scope == "game":
            for found in concave.solutions(problem, tol, warm):
                yield replace(found, engine="equilibrium")

    def levels() -> Iterator[Solution]:
        """The core's interior point for stacks, which is dense."""
        if problem.cluster.shape[0] * problem.cluster.shape[1] <= _LEVELS:
            yield from in_levels(problem, tol, "equilibrium")

    def homotopy() -> Iterator[Solution]:
        for answer in _homotopy(method):
            yield solution(polytope, method, answer, 0.0, _clock.now() - begun, criterion.alpha, tol)

    ways = [homotopy, levels] if prices <= _FEW else [levels, homotopy]
    ways = [homotopy, in_money, levels] if many else [*ways, in_money] if steep else [in_money, *ways]
    for way in ways:
        yield from way()
    for answer in _responses(method, max(3e-4 * tol, 1e-11)):
        yield solution(polytope, method, answer, 0.0, _clock.now() - begun, criterion.alpha, tol)


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = 1: the equilibria are the optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in native.welfare(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def _homotopy(method: EquilibriumSystem) -> Iterator[Candidate]:
    """Points of the homotopy near its end, from where prices decide who runs where."""
    ends = [1e-9, 1e-11]
    for place in entropy_homotopy.follow(method, ends[-1]):
        if place.tau <= ends[0] * (1 + 1e-6):
            ends = [end for end in ends if end < place.tau * (1 - 1e-6)]
            point = place.here.end()
            yield Candidate(point, error_of(method, point), place.steps, by="entropy homotopy")
            if not ends:
                return


@suppress_fp_warnings
def _responses(method: EquilibriumSystem, aim: float) -> Iterator[Candidate]:
    """Points each better than those before, by best responses in turn: where alpha is next to 0 they do."""
    sweeps, least = Sweeps.of(method), 1e-2
    state = sweeps.start(method.begin(0.3).tasks)
    for _ in range(8):
        for _ in range(40):
            if sweeps.gauss_seidel(state) < aim:
                break
        answer = sweeps.found(state, 0)
        if answer.error < least:
            least = answer.error
            yield answer


def error_of(q: EquilibriumSystem, point: EquilibriumPoint) -> float:
    """How far a point is from an equilibrium, by its tasks and prices."""
    true, share, _ = q.priced(point, q.alpha)
    total = q.totals(point.log_level, 0.0)[0]
    return q.error(point, true, q.largest_parts(q.wanted(point, share, true)), total, q.used(point.tasks))
