"""The reference engine of the per-server game, all of it CVXPY: one program, then best responses.

Start: the proportionally fair program, which is the equilibrium for alpha = 1; at alpha = 0 nothing, as each server's
choice is final. Then servers respond in turn, as they are stated (Gauss-Seidel), all of them at least once, until the
certificate is content. Correct at small size and slow; convergence is observed, not proved, for alpha other than 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...certificates import backward_error, by_server, exploitability
from ...engines.base import Run, Solution
from ...engines.reference import declarative
from ...engines.reference.program import Formulation, Program, alpha_fair
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from .server_problem import ServerProblem

#: Rounds without progress that end it; progress is an exploitability below this part of the least so far.
_PATIENCE, _BETTER = 60, 0.9
#: A judge, who may see through to the last digits, takes longer than a round: it is asked where a third is left.
_WORTH = 0.3


def solutions(
    problem: Problem,
    formulate: Callable[[Program], Formulation],
    tol: float,
    solver: str | None = None,
    max_rounds: int = 200,
) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one. `formulate` states one server's problem."""
    criterion, polytope, cluster = problem.criterion, problem.polytope, problem.cluster
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "declarative", status="nobody can run anything")
        return
    # What servers state is looked at before anything is solved.
    problems = {int(i): ServerProblem(polytope, criterion, int(i), formulate) for i in np.unique(polytope.pair_server)}
    start = Solution(np.zeros(cluster.shape[:2]), None, "declarative", status="nobody has anything")
    if criterion.alpha > 0:
        whole = Problem(cluster, proportional(cluster, criterion))
        start = next(declarative.solutions(whole, lambda program: alpha_fair(program, 1.0), solver))
    yield from _best_responses(polytope, criterion, problems, start, tol, solver, max_rounds)


def _gains(polytope: Polytope, criterion: Criterion, tasks: Array, prices: Array) -> Array:
    """Possible gains on each server, (servers,), at prices of whole capacities (rows,)."""
    if np.isinf(criterion.alpha):
        return exploitability(polytope, tasks, criterion)[0]
    with np.errstate(divide="ignore"):
        return by_server(polytope, backward_error(polytope, criterion, tasks, np.log(np.maximum(prices, 0.0))))


def _best_responses(
    polytope: Polytope,
    criterion: Criterion,
    problems: dict[int, ServerProblem],
    start: Solution,
    tol: float,
    solver: str | None,
    max_rounds: int,
) -> Iterator[Solution]:
    fractions = polytope.inside(polytope.fractions(start.tasks))
    prices = np.zeros(polytope.use.shape[0]) if start.prices is None else polytope.row_prices(start.prices)
    runs: list[Run] = list(start.runs)
    gaps, best, since, judged = np.full(polytope.cluster.shape[1], np.inf), np.inf, 0, np.inf
    while max_rounds > 0 and since <= _PATIENCE:
        max_rounds -= 1
        # Servers that would gain next to nothing may wait; with max-min that was seen to end in cycles.
        idle = -1.0 if np.isinf(criterion.alpha) or since > 5 else 0.1 * min(tol, float(gaps.max()))
        for i, problem in problems.items():
            if gaps[i] <= idle:
                continue
            program = problem.program
            totals = (polytope.tasks @ fractions)[program.users]
            elsewhere = np.maximum(totals - program.gamma * fractions[program.pairs], 0.0)
            fractions[program.pairs], prices[program.rows] = problem.respond(elsewhere, totals / program.gamma, solver)
            runs += problem.runs
            problem.runs.clear()
        tasks = polytope.allocation(polytope.inside(fractions))
        gaps = _gains(polytope, criterion, tasks, prices)
        gap = float(gaps.max())
        best, since = (gap, 0) if gap < _BETTER * best else (best, since + 1)
        if gap <= max(_WORTH * judged, tol) or max_rounds == 0 or since > _PATIENCE:
            judged = gap
            yield Solution(
                tasks, polytope.unit_prices(prices), "declarative", tuple(runs), start.build, len(runs), runs[-1].status
            )


def proportional(cluster: Cluster, criterion: Criterion) -> Criterion:
    """The global program that the game is at alpha = 1: proportional fairness, whatever the share."""
    share = np.where(np.isfinite(cluster.dominant_share_per_task), cluster.dominant_share_per_task, 1.0)
    return Criterion(**(criterion.plain | {"share": share, "alpha": 1.0, "scope": "servers"}))
