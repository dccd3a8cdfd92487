"""The reference engine of the per-server game, all of it CVXPY: one program, reweighted programs, best responses.

Start: the proportionally fair program, which is the equilibrium for alpha = 1. Then, alpha finite, a few reweighted
programs. These come from the criterion, and are no answers: then servers respond in turn, as they are stated
(Gauss-Seidel, accelerated), all of them at least once, until the certificate is content.
Correct at small size and slow; convergence is observed, not proved, for alpha other than 1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...certificates import backward_error, by_server, exploitability
from ...engines.base import Run, Solution
from ...engines.reference import declarative
from ...engines.reference.program import Formulation, Program, alpha_fair
from ...errors import SolverError
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from . import reweighted
from .server_problem import ServerProblem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RoundsOptions:
    """How long programs and best responses go on."""

    #: Reweighted programs are given up when one leaves more than this part of the exploitability.
    worthwhile: float = 0.7
    #: They are good enough to start from at this part of the tolerance.
    start: float = 0.1
    #: Most rounds without progress.
    patience: int = 60
    #: Progress: `exploitability < better` times the least so far.
    better: float = 0.9


#: What is used unless a caller says otherwise.
OPTIONS = RoundsOptions()


def solutions(
    problem: Problem,
    formulate: Callable[[Program], Formulation],
    tol: float,
    solver: str | None = None,
    max_rounds: int = 200,
) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one. `formulate` states one server's problem."""
    criterion, polytope = problem.criterion, problem.polytope
    if not len(polytope.users):
        yield Solution(np.zeros(problem.cluster.shape[:2]), None, "declarative", status="nobody can run anything")
        return
    # What servers state is looked at before anything is solved.
    problems = {int(i): ServerProblem(polytope, criterion, int(i), formulate) for i in np.unique(polytope.pair_server)}
    best, least = None, np.inf
    for solution in _central(polytope, criterion, solver):
        gap = _worst(polytope, criterion, solution)
        worthwhile = gap < OPTIONS.worthwhile * least  # infinity and NaN are not
        if best is None or gap < least:
            best, least = solution, gap
        if not worthwhile or gap <= OPTIONS.start * tol:
            break
    assert best is not None
    yield from _best_responses(polytope, criterion, problems, best, tol, solver, max_rounds)


def _worst(polytope: Polytope, criterion: Criterion, solution: Solution) -> float:
    if solution.prices is None or np.isinf(criterion.alpha):
        rows = np.zeros(polytope.use.shape[0])
    else:
        rows = polytope.row_prices(solution.prices)
    return float(_gains(polytope, criterion, solution.tasks, rows).max(initial=0.0))


def _gains(polytope: Polytope, criterion: Criterion, tasks: Array, prices: Array) -> Array:
    """What is wrong on each server, (servers,), at prices of whole capacities (rows,)."""
    if np.isinf(criterion.alpha):
        return exploitability(polytope, tasks, criterion)[0]
    with np.errstate(divide="ignore"):
        return by_server(polytope, backward_error(polytope, criterion, tasks, np.log(np.maximum(prices, 0.0))))


def _central(polytope: Polytope, criterion: Criterion, solver: str | None) -> Iterator[Solution]:
    """The proportionally fair program, then reweighted ones; at alpha = 0 nothing, as each server's choice is final."""
    cluster = polytope.cluster
    if criterion.alpha == 0:
        yield Solution(np.zeros(cluster.shape[:2]), None, "declarative", status="nobody has anything")
        return
    whole = Problem(cluster, proportional(cluster, criterion))
    first = next(declarative.solutions(whole, lambda program: alpha_fair(program, 1.0), solver))
    yield first
    if criterion.alpha == 1 or np.isinf(criterion.alpha):
        return
    runs, rounds = list(first.runs), first.rounds
    try:
        for fractions, prices, run in reweighted.solves(polytope, criterion, polytope.fractions(first.tasks), solver):
            runs.append(run)
            rounds += 1
            tasks = polytope.allocation(polytope.inside(fractions))
            yield Solution(
                tasks, polytope.unit_prices(prices), "declarative", tuple(runs), first.build, rounds, run.status
            )
    except SolverError:
        # The reweighted programs only give a better start; best responses do without.
        return


def _best_responses(
    polytope: Polytope,
    criterion: Criterion,
    problems: dict[int, ServerProblem],
    start: Solution,
    tol: float,
    solver: str | None,
    max_rounds: int,
) -> Iterator[Solution]:
    acceleration = Acceleration()
    fractions = polytope.inside(polytope.fractions(start.tasks))
    prices = np.zeros(polytope.use.shape[0]) if start.prices is None else polytope.row_prices(start.prices)
    runs: list[Run] = list(start.runs)

    def gains(at: Array) -> Array:
        tasks = polytope.allocation(polytope.inside(at))
        return _gains(polytope, criterion, tasks, prices)

    gaps = gains(fractions)
    best, since = float(gaps.max()), 0
    for number in range(max_rounds):
        if since > OPTIONS.patience:
            return
        # Servers that would gain next to nothing may wait; with max-min that was seen to end in cycles.
        idle = -1.0 if number == 0 or np.isinf(criterion.alpha) or since > 5 else 0.1 * min(tol, float(gaps.max()))
        before = fractions.copy()
        for i, problem in problems.items():
            if gaps[i] <= idle:
                continue
            program = problem.program
            totals = (polytope.tasks @ fractions)[program.users]
            elsewhere = np.maximum(totals - program.gamma * fractions[program.pairs], 0.0)
            fractions[program.pairs], prices[program.rows] = problem.respond(elsewhere, totals / program.gamma, solver)
            runs += problem.runs
            problem.runs.clear()
        gaps = gains(fractions)
        for proposal, wanted in acceleration.proposals(before, fractions.copy()):
            further = polytope.inside(proposal)
            if (criterion.starves or (polytope.tasks @ further > 0).all()) and (
                reached := gains(further)
            ).max() <= wanted * gaps.max():
                fractions, gaps = further, reached
                break
        best, since = (float(gaps.max()), 0) if gaps.max() < OPTIONS.better * best else (best, since + 1)
        tasks = polytope.allocation(polytope.inside(fractions))
        unit_prices = polytope.unit_prices(prices)
        yield Solution(tasks, unit_prices, "declarative", tuple(runs), start.build, len(runs), runs[-1].status)


class Acceleration:
    """Remembers points and their steps, and proposes points further on: Anderson's, or along a steady drift.

    Source: Anderson 1965; Walker and Ni, SIAM J. Numer. Anal. 49 (2011).
    """

    def __init__(self, memory: int = 6) -> None:
        self._points: deque[Array] = deque(maxlen=memory + 1)
        self._steps: deque[Array] = deque(maxlen=memory + 1)

    def proposals(self, point: Array, image: Array) -> Iterator[tuple[Array, float]]:
        """Points to try instead of `image`, which a sweep made of `point`, and by what factor each must be better.

        A jump along a drift need not be better at all: nothing gets better before somebody has left.
        """
        self._points.append(point)
        self._steps.append(image - point)
        if len(self._points) < 3:
            return
        steps, points = np.array(self._steps), np.array(self._points)
        step_changes, point_changes = np.diff(steps, axis=0).T, np.diff(points, axis=0).T
        mix = np.linalg.lstsq(step_changes, steps[-1], rcond=1e-10)[0]
        yield image - (point_changes + step_changes) @ mix, 0.7
        step = steps[-1]
        leaving = step < 0
        if np.linalg.norm(step - steps[-2]) < 0.05 * np.linalg.norm(step) and leaving.any():
            reach = float((image[leaving] / -step[leaving]).min())
            for part in (1.0, 0.5, 0.2):
                yield image + part * reach * step, 1 + 1e-9


def proportional(cluster: Cluster, criterion: Criterion) -> Criterion:
    """The global program that the game is at alpha = 1: proportional fairness, whatever the share."""
    share = np.where(np.isfinite(cluster.dominant_share_per_task), cluster.dominant_share_per_task, 1.0)
    return Criterion(**(criterion.plain | {"share": share, "alpha": 1.0, "scope": "servers"}))
