"""Equilibria for alpha in (0, infinity): the interior point, else along curves, else best responses.

Every candidate is handed to a judge who knows none of this. Deterministic: no random start, and the order of users and
servers does not matter beyond rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...engines.base import Solution
from ...engines.welfare import interior_point
from ...model.problem import Problem
from ..model._warnings import suppress_fp_warnings
from ..model.equilibrium_system import EquilibriumSystem, Point
from ..model.found import Found, solution
from ..responses.rounds import Sweeps
from . import entropy_homotopy
from .interior import ATTEMPTS, FOLLOW, Attempt, run
from .smoothing import METHOD_NAME, PATHS, follow
from .warm_start import Start, followed

Array = NDArray[np.float64]

#: What is aimed at, in parts of the tolerance: last digits may be found (`augmented`) where products come to the first;
#: if that fails the interior point goes on to the second, or to the third in its backward error, as the judge sees the
#: larger factor of a product; the path goes on to the fourth. No product need be less than the last.
_FIRST, _TARGET_FRACTION, _LEVEL, _PATH_TARGET_FRACTION, _LEAST_TARGET = 0.1, 1e-3, 0.9, 3e-4, 1e-11
#: Below this error last digits may be found where a run ends.
_NEAR = 1e-2
#: Best responses in a row, between two looks.
_SWEEPS, _TURNS = 40, 8
#: At alpha > 4, where some users do not need a resource, the interior point is left after so many short steps, or one
#: for so many prices, and the path is followed; likewise after a whole attempt up to so many prices. (In larger ones
#: it takes hundreds of systems, and other attempts may succeed.)
_WITH_ZEROS, _PER_STEP, _SMALL = 6, 20, 500
#: Systems on the path from a point of the interior point, for every price; mostly one does.
_MIDWAY = 3
#: Systems on the path from its own beginning, at least, and for every price.
_WHOLE = 1000, 5
#: From where the coupling of servers is this strong, the interior point may go on, for so many steps.
_FIRST_START, _SHORT = 0.1, 60
#: Systems on the way there before another path is tried.
_HOMOTOPY_BUDGET = 120


@dataclass(frozen=True)
class Aims:
    """Where runs end: products of the interior point, or its backward error, and products of the path."""

    first: float  # from here last digits may be found
    inside: float
    backward: float
    path: float

    @classmethod
    def of(cls, tol: float) -> Aims:
        """What suffices at a tolerance."""
        first, inside, path = (
            max(part * tol, _LEAST_TARGET) for part in (_FIRST, _TARGET_FRACTION, _PATH_TARGET_FRACTION)
        )
        return cls(first, inside, _LEVEL * tol, path)


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in (0, infinity)."""
    begun = _clock.now()
    cluster, criterion = problem.cluster, problem.criterion
    start = warm if isinstance(warm, Start) else None
    method = None if start is None else start.game(problem)
    polytope = problem.polytope if method is None else method.polytope
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "equilibrium", status="nobody can run anything")
        return
    build = _clock.now() - begun
    if method is None:
        method = EquilibriumSystem.of(polytope, criterion)
    point = start.point if start is not None and start.fits(method) else None
    if criterion.alpha == 1 and point is None and criterion.scope == "game":
        yield from _program(problem, tol)
    for _, answer in equilibria(method, tol, point):
        seconds = _clock.now() - begun - build
        found = solution(polytope, method, answer, build, seconds, criterion.alpha, tol)
        yield (
            found
            if answer.warm is None or criterion.scope != "game"
            else replace(found, warm=Start(answer.warm, method, problem.limits))
        )


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = 1: the equilibria are the optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in interior_point.solutions(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def equilibria(
    method: EquilibriumSystem, tol: float, start: Point | None = None
) -> Iterator[tuple[EquilibriumSystem, Found]]:
    """Points of one game, each better than those before, from where last digits may be found."""
    aims, best = Aims.of(tol), None
    for answer in _candidates(method, aims, start):
        if best is None or answer.error < best.error:
            best = answer
            if best.error <= (aims.path if best.by == METHOD_NAME else _NEAR):
                yield method, best
    assert best is not None
    for answer in _responses(method, best, aims.path):
        if answer.error < best.error:
            best = answer
            if best.error <= _NEAR:
                yield method, best
    yield method, best


def _candidates(method: EquilibriumSystem, aims: Aims, start: Point | None) -> Iterator[Found]:
    """The interior point first, since it is fast; then the path, or it with other parameters; then better starts."""
    if start is not None:
        yield from _following(method, aims, start)
    lacking = not method.positive
    early = method.alpha > method.power and (lacking or method.row.sum() <= _SMALL)
    patience = max(_WITH_ZEROS, int(method.row.sum()) // _PER_STEP) if lacking else ATTEMPTS[0].patience
    if early:
        yield from _and_path(method, replace(ATTEMPTS[0], patience=patience), aims)
    for attempt in ATTEMPTS if lacking or not early else ATTEMPTS[1:]:
        yield from _attempt(method, attempt, aims)
    starts = entropy_homotopy.follow(method)
    yield from _from_homotopy(method, aims, starts, _HOMOTOPY_BUDGET)
    if not early:
        yield from follow(method, aims.path, *PATHS[0])
    yield from _from_homotopy(method, aims, starts, np.inf)
    for mu, near in () if early else PATHS[1:]:
        yield from follow(method, aims.path, mu, near)


def _following(method: EquilibriumSystem, aims: Aims, start: Point) -> Iterator[Found]:
    """The interior point from a point for another alpha."""
    near, steps = followed(method, start)
    if near is not None:
        for answer in _attempt(method, FOLLOW, aims, near, _SHORT):
            yield replace(answer, steps=steps + answer.steps, warm=near)


def _and_path(method: EquilibriumSystem, attempt: Attempt, aims: Aims) -> Iterator[Found]:
    """The interior point, and the path from a point of it, or from its own beginnings."""
    answer: Found | None = None
    for answer in _attempt(method, attempt, aims):
        yield answer
    if answer is not None and answer.midway is not None:
        yield from follow(method, aims.path, answer.midway.mu, PATHS[0][1], _MIDWAY * method.row.sum(), answer.midway)
    for mu, near in PATHS:
        yield from follow(method, aims.path, mu, near, max(_WHOLE[0], _WHOLE[1] * int(method.row.sum())))


def _from_homotopy(
    method: EquilibriumSystem, aims: Aims, starts: Iterator[entropy_homotopy.Place], most: float
) -> Iterator[Found]:
    """The interior point from places where servers become coupled, until `most` systems are solved."""
    wanted = _FIRST_START
    for place in starts:
        if place.tau <= wanted:
            wanted = place.tau / 4
            for answer in _attempt(method, FOLLOW, aims, place.point, _SHORT):
                yield replace(answer, steps=place.steps + answer.steps)
        if place.steps > most:
            return


def _attempt(
    method: EquilibriumSystem, attempt: Attempt, aims: Aims, start: Point | None = None, most: int = 150
) -> Iterator[Found]:
    """The first point of a run from which last digits may be found, then the best one."""
    best: Found | None = None
    offered = False
    for answer in run(method, attempt, aims.inside, start, most, aims.backward):
        if best is None or answer.rank <= best.rank:
            best = answer
        if not offered and answer.error <= aims.first:
            offered = True
            yield _whole(method, answer, answer)
    assert best is not None
    yield _whole(method, best, answer)


def _whole(method: EquilibriumSystem, best: Found, last: Found) -> Found:
    """A point of a run with all pairs, and what the run knew at its end."""
    point = best.point if best.inside is None else method.whole(best.point, best.inside)
    return replace(best, point=point, steps=last.steps, warm=last.warm, midway=last.midway, inside=None)


def _responses(method: EquilibriumSystem, best: Found, aim: float) -> Iterator[Found]:
    """Best responses in turn from the best point."""
    sweeps = Sweeps.of(method)
    state = sweeps.start(best.point.tasks)
    for _ in range(_TURNS):
        for _ in range(_SWEEPS):
            if sweeps.gauss_seidel(state) < aim:
                break
        answer = sweeps.found(state, best.steps)
        yield answer
