"""Equilibria for alpha in (0, infinity): the interior point, else along curves, else best responses.

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
from .interior import run
from .kkt_system import KKTSystem
from .options import OPTIONS, Attempt, EquilibriumOptions
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
    def of(cls, tol: float, options: EquilibriumOptions) -> Aims:
        """What suffices at a tolerance."""
        first, inside, path = (max(part * tol, options.least) for part in (options.first, options.inside, options.path))
        return cls(first, inside, options.level * tol, path)


def solutions(
    problem: Problem, tol: float, warm: object = None, options: EquilibriumOptions = OPTIONS
) -> Iterator[Solution]:
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
    point = start.point if start is not None and start.fits(method, options.warm_start) else None
    if criterion.alpha == 1 and point is None and criterion.scope == "game" and not _few(method):
        yield from _program(problem, tol)
    # Where runs that end at the tolerance lead nowhere, longer ones may.
    for aim in dict.fromkeys((tol, min(tol, options.finest))):
        for _, answer in equilibria(method, aim, point, options):
            seconds = _clock.now() - begun - build
            found = solution(polytope, method, answer, build, seconds, criterion.alpha, tol)
            warm = None
            if answer.warm is not None and criterion.scope == "game":
                warm = WarmStart(answer.warm, method, problem.limits)
            yield found if warm is None else replace(found, warm=warm)


def _program(problem: Problem, tol: float) -> Iterator[Solution]:
    """alpha = 1: the equilibria are the optima of one convex program (PF section 4), in which shares cancel."""
    criterion = problem.criterion
    welfare = replace(criterion, share=np.ones(len(criterion.weight)), scope="servers")
    for found in native.welfare(Problem(problem.cluster, welfare), tol):
        yield replace(found, engine="equilibrium", warm=None)


@suppress_fp_warnings
def equilibria(
    method: EquilibriumSystem, tol: float, start: EquilibriumPoint | None = None, options: EquilibriumOptions = OPTIONS
) -> Iterator[tuple[EquilibriumSystem, Candidate]]:
    """Points of one game, each better than those before, from where last digits may be found."""
    aims, best, on_path = Aims.of(tol, options), None, options.on_path
    for answer in _candidates(method, aims, start, options):
        if best is None or answer.error < best.error:
            best = answer
            if best.by != METHOD_NAME and best.error <= options.near:
                yield method, best
            elif best.by == METHOD_NAME and best.error <= max(aims.path, on_path):
                on_path = options.on_path_again * best.error
                yield method, best
    assert best is not None
    for answer in _responses(method, best, aims.path, options):
        if answer.error < best.error:
            best = answer
            if best.error <= options.near:
                yield method, best
    yield method, best


def _candidates(
    method: EquilibriumSystem, aims: Aims, start: EquilibriumPoint | None, options: EquilibriumOptions
) -> Iterator[Candidate]:
    """The interior point first, since it is fast; then the path; then better starts.

    Where many users meet few types of servers the interior point is jammed by users who change over one by one, and the
    homotopy, whose unknowns are the few prices, is first.
    """
    if _few(method):
        yield _of_few_users(method, aims)
    if start is not None:
        yield from _following(method, aims, start, options)
    few_prices = len(method.weight) >= max(options.many_users, options.users_per_price * int(method.row.sum()))
    if few_prices:
        yield from _homotopy(method, options)
    attempt, paths = options.interior.attempt, options.smoothing.paths
    lacking, prices = not method.positive, int(method.row.sum())
    early = method.alpha > method.power and (lacking or prices <= options.small)
    patience = max(options.patience_with_zeros, prices // options.prices_per_step) if lacking else attempt.patience
    if early:
        yield from _and_path(method, replace(attempt, patience=patience), aims, options)
    if lacking or not early:
        yield from _attempt(method, attempt, aims, options)
    starts = entropy_homotopy.follow(method, options=options.homotopy)
    yield from _from_homotopy(method, aims, starts, options.homotopy_systems, options)
    if not early:
        yield from follow(method, aims.path, *paths[0], options=options.smoothing)
    yield from _from_homotopy(method, aims, starts, np.inf, options)
    if not few_prices:
        yield from _homotopy(method, options)
    for mu, near in () if early else paths[1:]:
        yield from follow(method, aims.path, mu, near, options=options.smoothing)


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


def _following(
    method: EquilibriumSystem, aims: Aims, start: EquilibriumPoint, options: EquilibriumOptions
) -> Iterator[Candidate]:
    """The interior point from a point for another alpha."""
    near, steps = followed(method, start, options)
    if near is not None:
        for answer in _attempt(method, options.interior.follow, aims, options, near):
            yield replace(answer, steps=steps + answer.steps, warm=near)


def _and_path(
    method: EquilibriumSystem, attempt: Attempt, aims: Aims, options: EquilibriumOptions
) -> Iterator[Candidate]:
    """The interior point, and the path from a point of it, or from its own beginnings."""
    answer: Candidate | None = None
    for answer in _attempt(method, attempt, aims, options):
        yield answer
    path, prices = options.smoothing, int(method.row.sum())
    if answer is not None and (middle := answer.midway) is not None:
        yield from follow(method, aims.path, middle.mu, path.paths[0][1], options.midway_systems * prices, middle, path)
    whole = max(options.whole_systems, options.whole_systems_per_price * prices)
    for mu, near in path.paths:
        yield from follow(method, aims.path, mu, near, whole, options=path)


def _homotopy(method: EquilibriumSystem, options: EquilibriumOptions) -> Iterator[Candidate]:
    """Points of the homotopy at its end, from where prices decide who runs where."""
    ends = list(options.homotopy_ends)
    for place in entropy_homotopy.follow(method, ends[-1], options=options.homotopy):
        if place.tau <= ends[0] * (1 + 1e-6):
            ends = [end for end in ends if end < place.tau * (1 - 1e-6)]
            point = place.here.end()
            error = KKTSystem(method, point, method.alpha, method.alpha, False).backward(options.undecided)
            yield Candidate(point, error, place.steps, by="entropy homotopy")
            if not ends:
                return


def _from_homotopy(
    method: EquilibriumSystem,
    aims: Aims,
    starts: Iterator[entropy_homotopy.Place],
    most: float,
    options: EquilibriumOptions,
) -> Iterator[Candidate]:
    """The interior point from places where servers become coupled, until `most` systems are solved."""
    wanted = options.coupled
    for place in starts:
        if place.tau <= wanted:
            wanted = place.tau * options.coupled_further
            for answer in _attempt(method, options.interior.follow, aims, options, place.point):
                yield replace(answer, steps=place.steps + answer.steps)
        if place.steps > most:
            return


def _attempt(
    method: EquilibriumSystem,
    attempt: Attempt,
    aims: Aims,
    options: EquilibriumOptions,
    start: EquilibriumPoint | None = None,
) -> Iterator[Candidate]:
    """The first point of a run from which last digits may be found, then the best one."""
    best: Candidate | None = None
    offered, most = False, options.steps if start is None else options.short_steps
    for answer in run(method, attempt, aims.inside, start, most, aims.backward, options.interior):
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


def _responses(
    method: EquilibriumSystem, best: Candidate, aim: float, options: EquilibriumOptions
) -> Iterator[Candidate]:
    """Best responses in turn from the best point."""
    sweeps = Sweeps.of(method)
    state = sweeps.start(best.point.tasks)
    for _ in range(options.looks):
        for _ in range(options.sweeps):
            if sweeps.gauss_seidel(state) < aim:
                break
        answer = sweeps.found(state, best.steps)
        yield answer
