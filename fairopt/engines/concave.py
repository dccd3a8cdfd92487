"""Alpha-fair welfare by a structured primal-dual interior point: alpha in [0, infinity), scopes `pool` and `servers`.

Ten to twenty Newton steps whatever alpha is (`welfare`: the conditions; `central`: a Newton step, at the price of one
Cholesky factorisation in the number of capacities; `mehrotra`: which step). A run ends when

- the duality gap, by the certificate's own arithmetic (prices alone, over all pairs), is below the tolerance, and
- every single user pays no more than its task is worth and buys what it wants at these prices, to the same tolerance
  (relative, in tasks; below alpha = 1 in prices). The gap is blind to users of tiny welfare, who are many when alpha
  is large or weights differ by decades; this is not.

If only the first can be had, the answer is still certified. The judge is the certificate, here as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..certificates.concave import gap_at
from ..cluster import Cluster
from ..criteria import Criterion
from ..polytope import Polytope
from . import convex
from .central import Newton
from .declarative import Solution
from .mehrotra import Weights, advance, products, settling
from .welfare import Point, Start, Welfare

Array = NDArray[np.float64]

#: The engine aims at this part of the tolerance.
_AIM = 0.05
#: The certificate is asked from this multiple of the tolerance on.
_NEAR = 1e2
#: A run that got no closer in so many steps, or came to so small products, is over.
_PATIENCE, _LEAST_MU = 25, 1e-25
#: Most steps of a run from a cold and from a warm start.
_STEPS, _WARM_STEPS = 100, 12
#: A start for another alpha is kept where the gap is between these.
_KEPT = 0.003, 0.1


@dataclass(frozen=True)
class Found:
    """A point on the way: fractions z of a feasible allocation, its gap, the largest error of a single user."""

    point: Point
    fractions: Array
    gap: float
    error: float
    steps: int
    warm: Start | None = None

    def rank(self, tol: float) -> tuple[float, float]:
        """Smaller is better: the gap until it is good enough, then the error."""
        return max(self.gap, tol), self.error if np.isfinite(self.error) else np.inf


def run(welfare: Welfare, tol: float, free: bool = True, start: Start | None = None) -> Iterator[Found]:
    """Newton steps; yields before each. `free`: the unit of welfare adapts."""
    at = welfare.begin() if start is None else welfare.begin_from(start)
    now = products(welfare, at)
    ratio = max(float(now.capacity[welfare.row].mean() / now.pair.mean()), 1.0)
    weights = Weights(1.0, np.sqrt(ratio))
    best, since, settle, warm = (np.inf, np.inf), 0, False, start
    for number in range((_STEPS if start is None else _WARM_STEPS) + 1):
        now = products(welfare, at)
        estimate = float(now.pair.sum() + now.capacity.sum()) / max(float(at.pay @ at.total), 1e-300)
        if number and estimate < _KEPT[1] and (warm is None or warm is start):
            warm = Start(at, welfare.unit) if estimate > _KEPT[0] else start
        if settle:
            weights = settling(welfare, at, np.sqrt(ratio))
        newton = Newton(welfare, at, weights.mean(welfare, now), free)
        found = _looked_at(newton, number, warm, estimate < _NEAR * tol)
        yield found
        if found.rank(tol) <= (tol, tol) or not _LEAST_MU < newton.mu < np.inf:
            return
        if found.rank(tol) < best:
            best, since = found.rank(tol), 0
        elif (since := since + 1) > _PATIENCE and np.isfinite(best[0]):
            return
        settle = settle or found.gap <= tol
        at = advance(newton, weights)[0]


def _looked_at(newton: Newton, number: int, warm: Start | None, near: bool) -> Found:
    q, at = newton.welfare, newton.point
    fractions = q.fractions(at)
    if not near:
        return Found(at, fractions, np.inf, np.inf, number, warm)
    fractions = q.polytope.inside(fractions)
    tasks = q.summed(fractions * q.polytope.gamma)
    gap = gap_at(q.polytope, q.own, tasks, at.price[q.row])[0]
    # What each pair costs more, or less, than its user pays.
    more = at.slack + newton.wrong.pair
    over = q.summed(np.maximum(more, 0.0) * at.tasks) / (at.pay * at.total)
    under = np.minimum.reduceat(more, q.start[:-1]) / at.pay
    errors = np.maximum(over, -under) / max(q.alpha, 1.0)
    error = max(float(errors.max()), float(np.abs(newton.wrong.rho).max()))
    return Found(at, fractions, gap if np.isfinite(gap) else np.inf, error, number, warm)


def solutions(cluster: Cluster, criterion: Criterion, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    begun = time.perf_counter()
    polytope = Polytope(cluster, criterion.limits(cluster))
    if not len(polytope.users):
        yield Solution(np.zeros(cluster.shape[:2]), None, "native", status="nobody can run anything")
        return
    welfare = Welfare(polytope, criterion)
    build = time.perf_counter() - begun
    starts = [warm, None] if isinstance(warm, Start) and welfare.fits(warm) else [None]
    # If all have limits perhaps nobody need pay anything, and there is no unit of welfare to adapt to.
    orders = (False, True) if len(welfare.limited) == len(polytope.users) else (True, False)
    best, steps, aim = None, 0, _AIM * tol
    for start in starts:
        for free in orders if welfare.alpha > 0 else (False,):
            with np.errstate(all="ignore"):
                for found in run(welfare, aim, free, start):
                    if best is None or found.rank(aim) < best.rank(aim):
                        best = found
            steps += found.steps
            if best is not None and best.gap <= tol:
                yield _solution(welfare, best, tol, steps, build, time.perf_counter() - begun - build)
    if best is not None and best.gap > tol:
        yield _solution(welfare, best, tol, steps, build, time.perf_counter() - begun - build)


def _solution(welfare: Welfare, best: Found, tol: float, steps: int, build: float, seconds: float) -> Solution:
    polytope = welfare.polytope
    status = "converged" if best.gap <= tol else "not converged"
    run_ = convex.Run("interior point", status, 0.0, seconds, best.gap)
    prices = polytope.unit_prices(best.point.price[welfare.row])
    tasks = polytope.allocation(best.fractions)
    return Solution(tasks, prices, "native", (run_,), build, steps, status, warm=best.warm)
