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
from ..linalg import column_screening as rule
from . import screening
from .conditions import Welfare
from .efficiency import WelfareAndEfficiency
from .mehrotra import advance, mean, products
from .newton import Newton, Products
from .options import OPTIONS, ConditionsOptions, WelfareOptions
from .point import Point, Start

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WelfareCandidate:
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


def conditions(polytope: Polytope, criterion: Criterion, options: ConditionsOptions = OPTIONS.conditions) -> Welfare:
    """The optimality conditions of a criterion."""
    if isinstance(criterion, FairnessEfficiency):
        return WelfareAndEfficiency(polytope, criterion, options)
    return Welfare(polytope, criterion, options)


def run(
    welfare: Welfare,
    tol: float,
    certify: Judge,
    free: bool = True,
    start: Start | None = None,
    options: WelfareOptions = OPTIONS,
    least: float | None = None,
) -> Iterator[WelfareCandidate]:
    """Newton steps; yields before each. `free`: the unit of welfare adapts; `certify` gives the error of fractions.

    It ends where the error is below `tol`, or products come to next to nothing beside what users spend, `least`.
    """
    at = welfare.begin() if start is None else welfare.begin_from(start)
    now = products(welfare, at)
    weight = float(np.sqrt(max(now.capacity[welfare.row].mean() / now.pair.mean(), 1.0)))
    stalled, warm, single = _Stalled(options), start, True
    (pairs, resources), users = welfare.polytope.pair_use.shape, len(welfare.unit)
    if least is None:
        least = options.least if pairs <= options.many else options.least_of_many
    for number in range((options.steps if start is None else options.warm_steps) + 1):
        now = products(welfare, at)
        estimate, mu = _estimate(welfare, at, now), mean(now, weight)
        if number and estimate < options.kept_to and (warm is None or warm is start):
            far = estimate > options.kept_from  # enough to be a start
            warm = Start(screening.whole(welfare, at, mu), welfare.unit) if far else start
        if rule.applies(pairs, resources, users, estimate, options.step.screening):
            welfare, at = screening.screened(welfare, at, mu, estimate, options.step.screening)
            now = products(welfare, at)
        newton = Newton(welfare, at, mean(now, weight), free, single, options.newton)
        size = max(estimate, newton.residual_marginal)
        fractions, error = _judged(welfare, at, certify if size < options.near * max(tol, least) else None)
        found = WelfareCandidate(at, fractions, error, size, number, warm)
        yield found
        if error <= tol or size <= least or not options.least_mu < newton.mu < np.inf or stalled.after(found):
            return
        wavers = welfare.wavers and stalled.since >= options.step.wavering
        whole = options.step.halved if wavers else 1.0
        at, single = advance(newton, weight, welfare.least * tol, whole, options.step), newton.single


def _estimate(welfare: Welfare, at: Point, now: Products) -> float:
    """What products come to beside what users spend."""
    return float(now.pair.sum() + now.capacity.sum()) / max(float(welfare.spent(at).sum()), 1e-300)


def _judged(welfare: Welfare, at: Point, certify: Judge | None) -> tuple[Array, float]:
    """The fractions of a point; with a judge feasible ones, and their error."""
    fractions = welfare.fractions(at)
    if certify is None:
        return fractions, np.inf
    fractions = welfare.polytope.inside(fractions)
    return fractions, certify(fractions, at)


class _Stalled:
    """Does a run get closer?"""

    def __init__(self, options: WelfareOptions) -> None:
        self.options, self.best, self.since = options, (np.inf, np.inf), 0

    def after(self, found: WelfareCandidate) -> bool:
        """Has it got no closer for too many steps, this point included?"""
        better, (error, estimate) = self.options.better, found.rank
        if np.isfinite(self.best[0]) and not estimate < self.options.lost * max(self.best[1], self.options.least):
            return True
        closer = error < better * self.best[0] or estimate < better * self.best[1]
        self.since = 0 if closer else self.since + 1
        self.best = min(self.best[0], error), min(self.best[1], estimate)
        return self.since > (self.options.patience_near if np.isfinite(self.best[0]) else self.options.patience)


def solutions(
    problem: Problem, tol: float, warm: object = None, options: WelfareOptions = OPTIONS
) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    begun = _clock.now()
    criterion, polytope = problem.criterion, problem.polytope
    welfare, certify = conditions(polytope, criterion, options.conditions), judge_of(polytope, criterion, tol)
    build = _clock.now() - begun
    steps = 0
    # Where last digits cost no more than a step they are looked for early, and else found as usual.
    few = type(criterion) is Criterion and len(polytope.gamma) <= options.few * len(polytope.row_server)
    for number, (free, start) in enumerate(_attempts(welfare, warm)):
        for least in (options.least_of_few, None) if few and number == 0 else (None,):
            with np.errstate(all="ignore"):
                found, more = _best(run(welfare, options.target * tol, certify, free, start, options, least))
            steps += more
            yield _solution(welfare, found, tol, steps, build, _clock.now() - begun - build)


def _attempts(welfare: Welfare, warm: object) -> Iterator[tuple[bool, Start | None]]:
    """With or without a unit of welfare that adapts, from a warm start if there is one."""
    orders = (False,) if welfare.alpha == 0 else (True, False)
    if isinstance(warm, Start) and welfare.fits(warm):
        yield orders[0], warm
    for free in orders:
        yield free, None


def judge_of(polytope: Polytope, criterion: Criterion, tol: float) -> Judge:
    """The certificate's error of fractions at the prices of a point, at the level `tol`."""

    def certify(fractions: Array, at: Point) -> float:
        rows = np.log(at.price[polytope.row_server, polytope.row_resource])
        return error_at(polytope, criterion, polytope.allocation(fractions), rows, tol)

    return certify


def _best(answers: Iterator[WelfareCandidate]) -> tuple[WelfareCandidate, int]:
    """The best of a run, and how many steps the run took."""
    best = found = next(answers)
    for found in answers:
        if found.rank <= best.rank:
            best = found
    return best, found.steps


def _solution(
    welfare: Welfare, best: WelfareCandidate, tol: float, steps: int, build: float, seconds: float
) -> Solution:
    polytope = welfare.polytope
    status = "converged" if min(best.error, best.estimate) <= tol else "not converged"
    record = Run("interior point", status, 0.0, seconds, best.estimate)
    with np.errstate(divide="ignore", invalid="ignore"):
        prices = polytope.log_unit_prices(np.log(best.point.price[welfare.row]))
    tasks = polytope.allocation(polytope.inside(best.fractions))
    rough = best.error > tol
    return Solution(tasks, None, "native", (record,), build, steps, status, (), best.warm, prices, rough)
