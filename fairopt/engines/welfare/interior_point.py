"""Alpha-fair welfare by a structured primal-dual interior point: alpha in [0, infinity), scopes `pool` and `servers`.

Ten to twenty Newton steps whatever alpha is (`conditions`: what holds there; `newton`: a step, at the price of one
Cholesky factorisation in the number of capacities; `mehrotra`: which step). A run ends when the backward error, by the
certificate's own arithmetic, is below the tolerance, or when products are so small that the last digits are better
found on the augmented system (`augmented`), which solves for the pairs that are left; that is done for every engine by
whoever asks for solutions. What users of tiny welfare get may be wrong here, as all is measured in one unit of welfare:
the level engine of the game knows no such unit and is asked next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ...certificates.backward import error_at
from ...model.criterion import Criterion
from ...model.fairness_efficiency import FairnessEfficiency
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..base import Run, Solution
from . import screening
from .conditions import Welfare
from .efficiency import WelfareAndEfficiency
from .mehrotra import advance, mean, products
from .newton import Newton
from .point import Point, Start

Array = NDArray[np.float64]

#: The engine aims at this part of the tolerance.
_TARGET_FRACTION = 0.5
#: The judge is asked from this multiple of the tolerance on.
_NEAR = 10.0
#: Where all products come to this part of what users spend a run ends, whatever the judge says; with more pairs than
#: that later, as a step here is then much cheaper than one on the augmented system.
_LEAST, _MANY, _LEAST_OF_MANY = 1e-11, 10_000, 1e-16
#: A run that got no closer in so many steps (once near, and before), or has so small products, is over.
_PATIENCE, _LEAST_MU = (5, 25), 1e-25
#: Most steps of a run from a cold and from a warm start.
_STEPS, _WARM_STEPS = 100, 12
#: A start for another alpha is kept where products come to between these parts of what users spend.
_KEPT = 0.003, 0.1


@dataclass(frozen=True)
class Found:
    """A point on the way: fractions z of a feasible allocation, its backward error, and what its products come to."""

    point: Point
    fractions: Array
    error: float
    estimate: float
    steps: int
    warm: Start | None = None

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better."""
        return self.error, self.estimate


Judge = Callable[[Array, Point], float]


def conditions(polytope: Polytope, criterion: Criterion) -> Welfare:
    """The optimality conditions of a criterion."""
    if isinstance(criterion, FairnessEfficiency):
        return WelfareAndEfficiency(polytope, criterion)
    return Welfare(polytope, criterion)


def run(welfare: Welfare, tol: float, certify: Judge, free: bool = True, start: Start | None = None) -> Iterator[Found]:
    """Newton steps; yields before each. `free`: the unit of welfare adapts; `judge` gives the error of fractions.

    It ends where the error is below `tol`, or products come to next to nothing beside what users spend.
    """
    at = welfare.begin() if start is None else welfare.begin_from(start)
    now = products(welfare, at)
    weight = float(np.sqrt(max(now.capacity[welfare.row].mean() / now.pair.mean(), 1.0)))
    limit = np.maximum(now.limit / now.pair.mean(), 1.0)
    best, since, warm, single = (np.inf, np.inf), 0, start, True
    pairs, resources = welfare.polytope.pair_use.shape
    screens = screening.pays(pairs, len(welfare.unit), resources)
    least = _LEAST if pairs <= _MANY else _LEAST_OF_MANY
    for number in range((_STEPS if start is None else _WARM_STEPS) + 1):
        now = products(welfare, at)
        estimate = float(now.pair.sum() + now.capacity.sum()) / max(float(welfare.spent(at).sum()), 1e-300)
        mu = mean(now, weight, limit)
        if number and estimate < _KEPT[1] and (warm is None or warm is start):
            warm = Start(screening.whole(welfare, at, mu), welfare.unit) if estimate > _KEPT[0] else start
        if screens and np.isfinite(estimate):
            welfare, at = screening.screened(welfare, at, mu, estimate)
            now = products(welfare, at)
        newton = Newton(welfare, at, mean(now, weight, limit), free, single)
        fractions, error, residual = welfare.fractions(at), np.inf, newton.residual_marginal
        size = max(estimate, residual)
        if size < _NEAR * max(tol, least):
            fractions = welfare.polytope.inside(fractions)
            error = certify(fractions, at)
        found = Found(at, fractions, error, size, number, warm)
        yield found
        if error <= tol or size <= least or not _LEAST_MU < newton.mu < np.inf:
            return
        rank = found.rank
        since = 0 if rank[0] < 0.9 * best[0] or rank[1] < 0.9 * best[1] else since + 1
        best = min(best[0], rank[0]), min(best[1], rank[1])
        if since > _PATIENCE[not np.isfinite(best[0])]:
            return
        at, single = advance(newton, weight, limit, welfare.least * tol), newton.single


def solutions(problem: Problem, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    begun = _clock.now()
    cluster, criterion, polytope = problem.cluster, problem.criterion, problem.polytope
    nothing = np.full(cluster.capacity.shape, -np.inf)
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "native", status="nobody can run anything", log=nothing)
        return
    if _all_served(polytope):
        tasks = polytope.allocation(polytope.limit[polytope.pair_user] / polytope.gamma)
        yield Solution(tasks, None, "native", log=nothing)
        return
    welfare, certify = conditions(polytope, criterion), _certify(polytope, criterion, tol)
    build = _clock.now() - begun
    steps = 0
    for free, start in _attempts(welfare, warm):
        with np.errstate(all="ignore"):
            found, more = _best(run(welfare, _TARGET_FRACTION * tol, certify, free, start))
        steps += more
        yield _solution(welfare, found, tol, steps, build, _clock.now() - begun - build)


def _all_served(polytope: Polytope) -> bool:
    """Has one server room for all tasks there are? Then nobody pays anything, and there is no unit of welfare."""
    if len(polytope.cluster.servers) > 1 or not np.isfinite(polytope.limit).all():
        return False
    return bool((polytope.use @ (polytope.limit / polytope.gamma) <= 1).all())


def _attempts(welfare: Welfare, warm: object) -> Iterator[tuple[bool, Start | None]]:
    """With or without a unit of welfare that adapts, from a warm start if there is one."""
    # If all have limits perhaps nobody need pay anything, and there is no unit of welfare to adapt to.
    limited = len(welfare.limited) == len(welfare.unit)
    orders = (False,) if welfare.alpha == 0 else (False, True) if limited else (True, False)
    if isinstance(warm, Start) and welfare.fits(warm):
        yield orders[0], warm
    for free in orders:
        yield free, None


def _certify(polytope: Polytope, criterion: Criterion, tol: float) -> Judge:
    """The certificate's error of fractions at the prices of a point, at the level `tol`."""

    def certify(fractions: Array, at: Point) -> float:
        rows = np.log(at.price[polytope.row_server, polytope.row_resource])
        return error_at(polytope, criterion, polytope.allocation(fractions), rows, tol)

    return certify


def _best(answers: Iterator[Found]) -> tuple[Found, int]:
    """The best of a run, and how many steps the run took."""
    best = found = next(answers)
    for found in answers:
        if found.rank <= best.rank:
            best = found
    return best, found.steps


def _solution(welfare: Welfare, best: Found, tol: float, steps: int, build: float, seconds: float) -> Solution:
    polytope = welfare.polytope
    status = "converged" if min(best.error, best.estimate) <= tol else "not converged"
    record = Run("interior point", status, 0.0, seconds, best.estimate)
    with np.errstate(divide="ignore", invalid="ignore"):
        prices = polytope.log_unit_prices(np.log(best.point.price[welfare.row]))
    tasks = polytope.allocation(polytope.inside(best.fractions))
    rough = best.error > tol
    return Solution(tasks, None, "native", (record,), build, steps, status, (), best.warm, prices, rough)
