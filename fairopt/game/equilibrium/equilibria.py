"""Equilibria for alpha in (0, infinity): the interior point, else along a curve.

Each is a candidate, whose certificate is computed from its tasks and prices alone. Deterministic: no random start, and
the order of users and servers does not matter beyond rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ... import _clock
from ...engines.base import Solution
from ...engines.small.solutions import in_levels
from ...engines.welfare import concave
from ...model.problem import Problem
from ..model._warnings import suppress_fp_warnings
from ..model.candidate import solution
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.rounds import Sweeps
from . import entropy_homotopy, smoothing

#: Temperatures at which the homotopy's points are offered.
_ENDS = (1e-9, 1e-11)
#: Up to so many prices the homotopy is faster than what follows.
_FEW = 64
#: Above this alpha prices in money are further apart than doubles resolve, and levels come first.
_STEEP = 64.0
#: Most pairs of users and servers of the interior point in levels, whose algebra is dense.
_LEVELS = 3_000


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Candidate equilibria for alpha in (0, infinity), to be certified one after the other.

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
    method = EquilibriumSystem.of(polytope, criterion)
    prices = int(method.row.sum())
    many = len(method.weight) >= max(500, 5 * prices)
    few, steep = game and not many and prices <= _FEW, game and criterion.alpha > _STEEP
    small = problem.cluster.shape[0] * problem.cluster.shape[1] <= _LEVELS and (few or steep)

    def in_money() -> Iterator[Solution]:
        # Prices that are decades from where they belong take long, and where they are few the homotopy does not.
        patience = 5 if few and criterion.alpha > 8 and not len(polytope.limited) else np.inf
        for found in concave.solutions(problem, tol, warm, patience) if game else ():
            yield replace(found, engine="equilibrium")

    if not steep and not many:
        yield from in_money()
    if many or few:
        yield from _homotopy(method, tol)
    if small:
        yield from in_levels(problem, tol, "equilibrium")
    if steep or many:
        yield from in_money()
    # The smoothed path often has no beginning at small alpha, and knows no limits.
    smooth = not (many or criterion.alpha < 1 or len(polytope.limited))
    if not (many or few) and (prices <= _FEW or not smooth):
        yield from _homotopy(method, tol)
    if smooth:
        yield from _smoothed(method, tol)


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """Equilibria at alpha = 1 as optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in concave.solutions(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def _homotopy(method: EquilibriumSystem, tol: float) -> Iterator[Solution]:
    """Candidates from the entropy homotopy: points near its end, and the one at which it stops."""
    begun, offered, place = _clock.now(), np.inf, None
    for place in entropy_homotopy.follow(method, _ENDS[-1]):
        if any(place.tau <= end * (1 + 1e-6) < offered for end in _ENDS):
            offered = place.tau
            yield _solution(method, place, begun, tol)
    if place is not None and place.tau < offered:
        yield _solution(method, place, begun, tol)


def _solution(method: EquilibriumSystem, place: entropy_homotopy.Place, begun: float, tol: float) -> Solution:
    here, seconds = place.here, _clock.now() - begun
    return solution(method, here.tasks, here.price, "entropy homotopy", place.steps, seconds, tol)


@suppress_fp_warnings
def _smoothed(method: EquilibriumSystem, tol: float) -> Iterator[Solution]:
    """Candidates from the smoothed path, each nearer to its end than the one before.

    Last what best responses make of its end: where costs differ by less than tasks tell, each server knows its own.
    """
    begun, near, tasks, steps = _clock.now(), 3e-8, None, 0
    for at, steps in smoothing.follow(method):
        tasks = np.maximum(at.tasks, 0.0)
        if (error := method.exploitability(tasks, at.log_price)) <= near:
            near = 0.1 * error
            yield solution(method, tasks, at.log_price, "smoothed path", steps, _clock.now() - begun, tol)
        if error <= 1e-12:
            break
    if tasks is not None and near < 3e-8:
        sweeps = Sweeps(method)
        state = sweeps.start(tasks)
        for _ in range(320):
            if sweeps.gauss_seidel(state) < 3e-4 * tol:
                break
        yield sweeps.solution(state, "best responses", steps, _clock.now() - begun, tol)
