"""Alpha-fair welfare by a structured primal-dual interior point: alpha in [0, infinity), scopes `pool` and `servers`.

Ten to twenty Newton steps whatever alpha is (`welfare`: the conditions; `central`: a Newton step, at the price of one
Cholesky factorisation in the number of capacities; `mehrotra`: which step). A run ends when

- the duality gap, by the certificate's own arithmetic (prices alone, over all pairs), is below the tolerance, and
- every single user pays no more than its task is worth and buys what it wants at these prices, to the same tolerance
  (relative, in tasks; below alpha = 1 in prices). The gap is blind to users of tiny welfare, who are many when alpha
  is large or weights differ by decades; this is not. Users whom a run leaves unsettled get one of their own, in which
  the others are held: the unit of welfare is then theirs.

If only the first can be had, the answer is still certified. The judge is the certificate, here as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..certificates.concave import gap_at
from ..cluster import Cluster
from ..criteria import Criterion
from ..fairness_efficiency import FairnessEfficiency
from ..polytope import Polytope
from . import convex, sifting
from .central import Newton
from .declarative import Solution
from .efficiency import WelfareAndEfficiency
from .mehrotra import advance, mean, products
from .point import Point, Start
from .welfare import Welfare

Array = NDArray[np.float64]

#: The engine aims at this part of the tolerance.
_AIM = 0.05
#: The certificate is asked from this multiple of the tolerance on.
_NEAR = 10.0
#: A run that got no closer in so many steps (once the gap is small, and before), or has so small products, is over.
_PATIENCE, _LEAST_MU = (5, 25), 1e-25
#: Part of their tasks that users give up while held, and of the tolerance: without any room no interior is left.
_GIVEN_UP = 1e-9, 0.05
#: Most steps of a run from a cold and from a warm start.
_STEPS, _WARM_STEPS = 100, 12
#: A start for another alpha is kept where the gap is between these.
_KEPT = 0.003, 0.1


@dataclass(frozen=True)
class Found:
    """A point on the way: fractions z of a feasible allocation, its gap, and the error of every single user."""

    point: Point
    fractions: Array
    gap: float
    errors: Array
    steps: int
    warm: Start | None = None

    def rank(self, tol: float) -> tuple[float, float]:
        """Smaller is better: the gap until it is good enough, then the largest error."""
        return max(self.gap, tol), max(float(self.errors.max()), tol)


Judge = Callable[[Array, Point], float]


def conditions(polytope: Polytope, criterion: Criterion, held: Array | None = None) -> Welfare:
    """The optimality conditions of a criterion, some users held at so many tasks (users,)."""
    if isinstance(criterion, FairnessEfficiency):
        return WelfareAndEfficiency(polytope, criterion, held)
    return Welfare(polytope, criterion, held)


def run(welfare: Welfare, tol: float, judge: Judge, free: bool = True, start: Start | None = None) -> Iterator[Found]:
    """Newton steps; yields before each. `free`: the unit of welfare adapts; `judge` gives the gap of fractions."""
    at = welfare.begin() if start is None else welfare.begin_from(start)
    now = products(welfare, at)
    weight = float(np.sqrt(max(now.capacity[welfare.row].mean() / now.pair.mean(), 1.0)))
    limit = np.maximum(now.limit / now.pair.mean(), 1.0)
    best, since, warm, single = (np.inf, np.inf), 0, start, True
    for number in range((_STEPS if start is None else _WARM_STEPS) + 1):
        now = products(welfare, at)
        estimate = float(now.pair.sum() + now.capacity.sum()) / max(float(welfare.spent(at).sum()), 1e-300)
        mu = mean(now, weight, limit)
        if number and estimate < _KEPT[1] and (warm is None or warm is start):
            warm = Start(sifting.whole(welfare, at, mu), welfare.unit) if estimate > _KEPT[0] else start
        if len(welfare.polytope.gamma) > sifting.MANY and np.isfinite(estimate):
            welfare, at = sifting.sifted(welfare, at, mu, estimate)
            now = products(welfare, at)
        newton = Newton(welfare, at, mean(now, weight, limit), free, single)
        fractions, gap, errors = welfare.fractions(at), np.inf, np.full(len(welfare.unit), np.inf)
        if estimate < _NEAR * tol:
            fractions = welfare.polytope.inside(fractions)
            gap, errors = judge(fractions, at), _errors(newton)
        found = Found(at, fractions, gap, errors, number, warm)
        yield found
        rank = found.rank(tol)
        if rank <= (tol, tol) or not _LEAST_MU < newton.mu < np.inf:
            return
        since = 0 if rank < (0.9 * best[0], 0.9 * best[1]) or rank[0] < best[0] else since + 1
        best = min(best, rank)
        if since > _PATIENCE[rank[0] > tol] and np.isfinite(best[0]):
            return
        at, single = advance(newton, weight, limit, welfare.least * tol), newton.single


def _errors(newton: Newton) -> Array:
    """How far each user is from what it would buy, relative; infinite where that is not a number."""
    q, at = newton.welfare, newton.point
    more = at.slack + newton.wrong.pair  # what each pair costs more, or less, than its user pays
    over = q.summed(np.maximum(more, 0.0) * at.tasks) / (at.pay * at.total)
    under = np.minimum.reduceat(more, q.start[:-1]) / at.pay
    if q.alpha == 0:
        return np.zeros(len(over))  # whoever is better left out: the gap sees all
    errors = newton.worth.scale * np.maximum(q.of_price * np.maximum(over, -under), np.abs(newton.wrong.rho))
    return np.where(q.held, 0.0, np.where(np.isfinite(errors), errors, np.inf))


def solutions(cluster: Cluster, criterion: Criterion, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    begun = time.perf_counter()
    polytope = Polytope(cluster, criterion.limits(cluster))
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "native", status="nobody can run anything")
        return
    if _all_served(polytope):
        yield Solution(polytope.allocation(polytope.limit[polytope.pair_user] / polytope.gamma), None, "native")
        return
    welfare = conditions(polytope, criterion)
    build = time.perf_counter() - begun
    best, steps = None, 0
    with np.errstate(all="ignore"):
        for free, start in _attempts(welfare, warm):
            found, more = _best(run(welfare, _AIM * tol, _gap_of(welfare), free, start), _AIM * tol)
            best = found if best is None or found.rank(_AIM * tol) < best.rank(_AIM * tol) else best
            steps += more
            if best.gap <= tol:
                settled, more = _settled(welfare, criterion, best, tol)
                steps += more
                yield _solution(welfare, settled, best, tol, steps, build, time.perf_counter() - begun - build)
    if best is not None and best.gap > tol:
        yield _solution(welfare, best, best, tol, steps, build, time.perf_counter() - begun - build)


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


def _gap_of(welfare: Welfare, prices: Array | None = None) -> Judge:
    """The certificate's gap, at the prices (servers, resources) of a point unless others are given."""

    def judge(fractions: Array, at: Point) -> float:
        shown = at.price if prices is None else prices
        tasks = welfare.summed(fractions * welfare.polytope.gamma)
        if not (np.isfinite(shown).all() and (tasks >= 0).all() and ((tasks > 0).all() or welfare.alpha == 0)):
            return np.inf  # scaled back to be feasible, somebody may have lost all tasks
        gap = gap_at(welfare.polytope, welfare.own, tasks, shown[welfare.row])[0]
        return gap if np.isfinite(gap) else np.inf

    return judge


def _best(answers: Iterator[Found], tol: float) -> tuple[Found, int]:
    """The best of a run, and how many steps the run took."""
    best = found = next(answers)
    for found in answers:
        if found.rank(tol) < best.rank(tol):
            best = found
    return best, found.steps


def _settled(welfare: Welfare, criterion: Criterion, best: Found, tol: float) -> tuple[Found, int]:
    """Users who are not where they want to be are settled in runs of their own, the others held.

    Their welfare was too small to be seen, so the gap does not mind; a run that spoils it is not taken.
    """
    held, steps, polytope = np.zeros(len(welfare.unit)), 0, welfare.polytope
    judge, given_up = _gap_of(welfare, best.point.price), min(_GIVEN_UP[0], _GIVEN_UP[1] * tol)
    while True:
        fresh = (best.errors <= tol) & (held == 0)
        if not fresh.any() or (fresh | (held > 0)).all():
            return best, steps
        held = np.where(fresh, welfare.summed(best.fractions * polytope.gamma) * (1 - given_up), held)
        found, more = _best(run(conditions(polytope, criterion, held), _AIM * tol, judge), _AIM * tol)
        steps += more
        if found.gap > tol or not (found.errors[held == 0] < best.errors[held == 0]).any():
            return best, steps
        best = found


def _solution(
    welfare: Welfare, settled: Found, best: Found, tol: float, steps: int, build: float, seconds: float
) -> Solution:
    polytope = welfare.polytope
    status = "converged" if settled.gap <= tol else "not converged"
    notes: tuple[str, ...] = ()
    if settled.gap <= tol and (loose := int((settled.errors > tol).sum())):
        notes = (f"{loose} users of invisible welfare may be away from what they would buy: the gap cannot tell",)
    record = convex.Run("interior point", status, 0.0, seconds, settled.gap)
    prices = polytope.unit_prices(best.point.price[welfare.row])
    tasks = polytope.allocation(settled.fractions)
    return Solution(tasks, prices, "native", (record,), build, steps, status, notes, best.warm)
