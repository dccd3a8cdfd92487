"""Equilibria for alpha in (0, infinity): the interior point, else along a curve, else best responses.

Each is a candidate, whose certificate is computed from its tasks and prices alone. Deterministic: no random start, and
the order of users and servers does not matter beyond rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...core import few_users
from ...engines import native
from ...engines.base import Solution
from ...engines.linalg import structured
from ...model.problem import Problem
from ..model._warnings import suppress_fp_warnings
from ..model.candidate import Candidate, solution
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from ..responses.rounds import Sweeps
from . import entropy_homotopy
from .interior import FIRST, FOLLOWED, Attempt, run
from .kkt_system import KKTSystem
from .smoothing import METHOD_NAME, follow
from .warm_start import WarmStart, followed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Aims:
    """Where runs end: products of the interior point, or its backward error, and products of the path."""

    first: float  # from here last digits may be found
    inside: float
    backward: float
    path: float

    @classmethod
    def of(cls, tol: float) -> Aims:
        """What suffices at a tolerance: the judge sees the larger factor of a product. None need be below 1e-11."""
        first, inside, path = (max(part * tol, 1e-11) for part in (1.0, 1e-3, 3e-4))
        return cls(first, inside, 0.9 * tol, path)


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one, for alpha in (0, infinity)."""
    begun = _clock.now()
    cluster, criterion = problem.cluster, problem.criterion
    start = warm if isinstance(warm, WarmStart) else None
    method = None if start is None else start.game(problem)
    polytope = problem.polytope if method is None else method.polytope
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "equilibrium", status="nobody can run anything")
        return
    build = _clock.now() - begun
    if method is None:
        method = EquilibriumSystem.of(polytope, criterion)
    point = start.point if start is not None and start.fits(method) else None
    if criterion.alpha == 1 and point is None and criterion.scope == "game" and not _few(method):
        yield from _program(problem, tol)
    for answer in equilibria(method, tol, point):
        found = solution(polytope, method, answer, build, _clock.now() - begun - build, criterion.alpha, tol)
        if answer.warm is not None and criterion.scope == "game":
            found = replace(found, warm=WarmStart(answer.warm, method, problem.limits))
        yield found


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = 1: the equilibria are the optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in native.welfare(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def equilibria(method: EquilibriumSystem, tol: float, start: EquilibriumPoint | None = None) -> Iterator[Candidate]:
    """Points of one game, each better than those before, from where last digits may be found.

    On the path, whose products are of two alike factors, that takes smaller ones.
    """
    aims, best, near = Aims.of(tol), None, 3e-8
    for answer in _candidates(method, aims, start):
        if best is None or answer.error < best.error:
            best = answer
            if best.by != METHOD_NAME and best.error <= 1e-2:
                yield best
            elif best.by == METHOD_NAME and best.error <= max(aims.path, near):
                near = 0.1 * best.error
                yield best
    assert best is not None
    yield from _responses(method, best, aims.path)


def _candidates(method: EquilibriumSystem, aims: Aims, start: EquilibriumPoint | None) -> Iterator[Candidate]:
    """The interior point first, since it is fast; then the smoothed path, from a point of it and from its own start.

    Where many users meet few types of servers the interior point is jammed by users who change over one by one, and the
    homotopy, whose unknowns are the few prices, is first.
    """
    users, prices = len(method.weight), int(method.row.sum())
    if _few(method):
        yield _of_few_users(method, aims)
    if start is not None:
        yield from _following(method, aims, start)
    if many := users >= max(500, 5 * prices):
        yield from _homotopy(method)
    answer: Candidate | None = None
    for answer in _attempt(method, FIRST, aims):
        yield answer
    if answer is not None and (middle := answer.midway) is not None:
        yield from follow(method, aims.path, middle.mu, 0.3, 3 * prices, middle)  # mostly a system for every price does
    for mu, near in ((3.0, 0.3), (1.0, 0.1)):  # the second is more careful: alpha next to 0 asks for it
        yield from follow(method, aims.path, mu, near, max(1000, 5 * prices))
    if not many:  # of users held at limits
        yield from _homotopy(method)


def _few(method: EquilibriumSystem) -> bool:
    """Is it far cheaper to eliminate servers first, and not for want of pairs?"""
    users, rows = len(method.weight), method.row.size
    dense = 4 * len(method.user) >= users * len(method.row)
    easy = method.alpha <= few_users.STEEPEST and not len(method.limited)
    return easy and dense and structured.few_users(users, rows)


def _of_few_users(method: EquilibriumSystem, aims: Aims) -> Candidate:
    """The interior point of few users on many servers."""
    q, alpha, (servers, resources) = method, method.alpha, method.row.shape
    use, (log_worth, size) = np.zeros((resources, len(q.weight), servers)), np.zeros((2, len(q.weight), servers))
    use[:, q.user, q.server] = q.use.T
    log_worth[q.user, q.server], size[q.user, q.server] = alpha * q.log_gain, q.gamma
    found = few_users.solved(few_users.Market(use, log_worth, size, alpha), 1e-12)
    log_price = np.where(q.row, found.log_row.T / alpha, 0.0)
    fractions, idle = found.fraction[q.user, q.server], np.where(q.row, found.idle.T, 1.0)
    point = EquilibriumPoint(fractions * q.gamma, fractions, log_price, -found.log_p / alpha, idle, found.mu, q.power)
    point = replace(point, slack=np.maximum(q.priced(point, alpha)[0], np.finfo(float).tiny))
    there = KKTSystem(q, point, alpha, alpha, False)
    return Candidate(point, there.error, found.steps, backward=there.backward(aims.backward))


def _following(method: EquilibriumSystem, aims: Aims, start: EquilibriumPoint) -> Iterator[Candidate]:
    """The interior point from a point for another alpha."""
    near, steps = followed(method, start)
    if near is not None:
        for answer in _attempt(method, FOLLOWED, aims, near):
            yield replace(answer, steps=steps + answer.steps, warm=near)


def _homotopy(method: EquilibriumSystem) -> Iterator[Candidate]:
    """Points of the homotopy near its end, from where prices decide who runs where."""
    ends = [1e-9, 1e-11]
    for place in entropy_homotopy.follow(method, ends[-1]):
        if place.tau <= ends[0] * (1 + 1e-6):
            ends = [end for end in ends if end < place.tau * (1 - 1e-6)]
            point = place.here.end()
            error = KKTSystem(method, point, method.alpha, method.alpha, False).backward(1e-6)
            yield Candidate(point, error, place.steps, by="entropy homotopy")
            if not ends:
                return


def _attempt(
    method: EquilibriumSystem,
    attempt: Attempt,
    aims: Aims,
    start: EquilibriumPoint | None = None,
) -> Iterator[Candidate]:
    """The first point of a run from which last digits may be found, then the best one."""
    best: Candidate | None = None
    offered, most = False, 150 if start is None else 60
    for answer in run(method, attempt, aims.inside, start, most, aims.backward):
        if best is None or answer.rank <= best.rank:
            best = answer
        if not offered and answer.error <= aims.first:
            offered = True
            yield _whole(method, answer, answer)
    assert best is not None
    yield _whole(method, best, answer)


def _whole(method: EquilibriumSystem, best: Candidate, last: Candidate) -> Candidate:
    """A point of a run with all pairs, and what the run knew at its end."""
    point = best.point if best.inside is None else method.whole(best.point, best.inside)
    return replace(best, point=point, steps=last.steps, warm=last.warm, midway=last.midway, inside=None)


def _responses(method: EquilibriumSystem, best: Candidate, aim: float) -> Iterator[Candidate]:
    """The best point, and better ones by best responses in turn: where alpha is next to 0 they do."""
    sweeps = Sweeps.of(method)
    state = sweeps.start(best.point.tasks)
    for _ in range(8):
        for _ in range(40):
            if sweeps.gauss_seidel(state) < aim:
                break
        answer = sweeps.found(state, best.steps)
        if answer.error < best.error:
            best = answer
            if best.error <= 1e-2:
                yield best
    yield best
