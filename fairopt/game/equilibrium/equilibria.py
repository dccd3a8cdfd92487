"""Equilibria for alpha in (0, infinity): the interior point, else along a curve, else best responses.

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
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.rounds import Sweeps
from . import entropy_homotopy
from .smoothing import METHOD_NAME, error_of, follow

Array = NDArray[np.float64]


#: Up to so many prices the homotopy is faster than what follows.
_FEW = 64
#: Above this alpha prices in money are further apart than doubles resolve, and levels come first.
_STEEP = 64.0
#: Most pairs of users and servers of the interior point in levels, whose algebra is dense.
_LEVELS = 3_000


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in (0, infinity).

    Where many users meet few types of servers the interior point is jammed by users who change over one by one, and the
    homotopy, whose unknowns are the few prices, is first.
    """
    criterion, polytope = problem.criterion, problem.polytope
    game = criterion.scope == "game"
    if not len(polytope.users):
        yield from concave.solutions(problem, tol)
        return
    if game and criterion.alpha == 1:
        yield from _program(problem, tol)
    begun = _clock.now()
    method = EquilibriumSystem.of(polytope, criterion)
    prices = int(method.row.sum())
    many = len(method.weight) >= max(500, 5 * prices)
    few, steep = game and not many and prices <= _FEW, game and criterion.alpha > _STEEP
    small = problem.cluster.shape[0] * problem.cluster.shape[1] <= _LEVELS and (few or steep)

    def offered(answers: Iterator[Candidate]) -> Iterator[Solution]:
        for answer in answers:
            yield solution(polytope, method, answer, 0.0, _clock.now() - begun, criterion.alpha, tol)

    def in_money() -> Iterator[Solution]:
        # Prices that are decades from where they belong take long, and where they are few the homotopy does not.
        patience = 5 if few and criterion.alpha > 8 and not len(polytope.limited) else np.inf
        for found in concave.solutions(problem, tol, warm, patience) if game else ():
            yield replace(found, engine="equilibrium")

    if not steep and not many:
        yield from in_money()
    if many or few:
        yield from offered(_homotopy(method))
    if small:
        yield from in_levels(problem, tol, "equilibrium")
    if steep or many:
        yield from in_money()
    yield from offered(equilibria(method, tol, many or few))


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = 1: the equilibria are the optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in native.welfare(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def equilibria(method: EquilibriumSystem, tol: float, followed: bool = False) -> Iterator[Candidate]:
    """Where the interior point jams: points each better than those before, from where last digits may be found.

    On the path, whose products are of two alike factors, that takes smaller ones. Has the homotopy been `followed`?
    """
    path, best, near = max(3e-4 * tol, 1e-11), None, 3e-8
    for answer in _candidates(method, path, followed):
        if best is None or answer.error < best.error:
            best = answer
            if best.by != METHOD_NAME and best.error <= 1e-2:
                yield best
            elif best.by == METHOD_NAME and best.error <= max(path, near):
                near = 0.1 * best.error
                yield best
    yield from _responses(method, best, path)


def _candidates(method: EquilibriumSystem, path: float, followed: bool) -> Iterator[Candidate]:
    """The smoothed path, then the homotopy."""
    prices = int(method.row.sum())
    for mu, near in ((3.0, 0.3), (1.0, 0.1)):  # the second is more careful: alpha next to 0 asks for it
        yield from follow(method, path, mu, near, max(1000, 5 * prices))
    if not followed:  # of users held at limits
        yield from _homotopy(method)


@suppress_fp_warnings
def _homotopy(method: EquilibriumSystem) -> Iterator[Candidate]:
    """Points of the homotopy near its end, from where prices decide who runs where; or where it stops before."""
    ends, place = [1e-9, 1e-11], None
    for place in entropy_homotopy.follow(method, ends[-1]):
        if place.tau <= ends[0] * (1 + 1e-6):
            ends = [end for end in ends if end < place.tau * (1 - 1e-6)]
            yield _at(method, place)
            if not ends:
                return
    if place is not None and (ends[0] == 1e-9 or place.tau):
        yield _at(method, place)


def _at(method, place):
    point = place.here.end()
    return Candidate(point, error_of(method, point), place.steps, by="entropy homotopy")


def _responses(method: EquilibriumSystem, best: Candidate | None, aim: float) -> Iterator[Candidate]:
    """The best point, and better ones by best responses in turn: where alpha is next to 0 they do."""
    sweeps = Sweeps.of(method)
    state = sweeps.start(method.begin(0.3).tasks if best is None else best.point.tasks)
    for _ in range(8):
        for _ in range(40):
            if sweeps.gauss_seidel(state) < aim:
                break
        answer = sweeps.found(state, 0 if best is None else best.steps)
        if best is None or answer.error < best.error:
            best = answer
            if best.error <= 1e-2:
                yield best
    if best is not None:
        yield best
