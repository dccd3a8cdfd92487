"""Thousands of users, a few types of servers, limits on tasks: an interior point whose only unknowns are prices.

The interior point of `interior_point` measures everything in one unit of welfare. Where half of the users are at their
limits and servers' prices differ by ten decades (alpha = 8: by eighteen), it is stopped by users one by one. Here

- what users buy at what they pay is a function, `min(limit, (value/price)^(1/alpha))` with its bend rounded off by the
  root of mu: a limit has neither multiplier nor room of its own, and what is paid may be of any sign there;
- a product is measured in what its user turns over, or in its price, so that nobody is small. These weights follow the
  point, but fall by a part in a step only: they would run away with a price that falls to 0;
- users whose tasks miss what they buy by much are put in order by themselves, prices as they are.

All of a user but its tasks follows from prices: a step is a matrix of prices and a few passes over pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .... import _clock
from ....certificates.backward import error_at
from ....model.criterion import Criterion
from ....model.problem import Problem
from ...base import Run, Solution
from .market import Market
from .options import OPTIONS, FewPricesOptions
from .point import FewPricesPoint, Weights
from .start import begin, even
from .step import FewPricesStep

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FewPricesCandidate:
    """The best point of a run: fractions (pairs,), log prices of whole capacities (rows,), their backward error."""

    fractions: Array
    log_rows: Array
    error: float
    steps: int


def applies(problem: Problem, options: FewPricesOptions = OPTIONS) -> bool:
    """Is it a problem with few prices and many users, where the interior point is stopped by users one by one?"""
    criterion, polytope = problem.criterion, problem.polytope
    if type(criterion) is not Criterion or criterion.floor.any() or criterion.scope not in ("pool", "servers"):
        return False
    if not options.least_alpha <= criterion.alpha <= options.largest_alpha:
        return False
    if not len(polytope.limited) and criterion.alpha <= options.without_limits:
        return False
    prices = len(polytope.row_server)
    return prices <= options.prices and len(polytope.users) >= max(options.users, options.users_per_price * prices)


def solutions(problem: Problem, tol: float, options: FewPricesOptions = OPTIONS) -> Iterator[Solution]:
    """One answer, or none where it does not apply or nothing comes of it."""
    if not applies(problem, options):
        return
    begun = _clock.now()
    with np.errstate(all="ignore"):
        found = run(problem, tol, options)
    if found.error > options.offered:
        return
    polytope, aim = problem.polytope, options.target * tol
    status = "converged" if found.error <= aim else "not converged"
    record = Run("few prices", status, 0.0, _clock.now() - begun, found.error)
    yield Solution(
        polytope.allocation(found.fractions),
        None,
        "native",
        (record,),
        rounds=found.steps,
        status=status,
        log=polytope.log_unit_prices(found.log_rows),
        rough=found.error > tol,
    )


def run(problem: Problem, tol: float, options: FewPricesOptions = OPTIONS) -> FewPricesCandidate:
    """Steps until the error is small enough, or does not get smaller."""
    polytope, market = problem.polytope, Market.of(problem)
    price, log_unit = even(market, np.where(market.row, polytope.cluster.capacity, 0.0))
    market = replace(market, log_marginal=market.log_marginal - log_unit)
    at = begin(market, price, options.start)
    nothing = np.zeros(len(polytope.gamma))
    best = FewPricesCandidate(nothing, np.full(len(polytope.row_server), -np.inf), np.inf, 0)
    weights, mu, since = Weights(market.summed(at.tasks) * _cheapest(market, at), at.price), np.inf, 0
    reached = False
    for number in range(options.steps + 1):
        weights = _followed(market, weights, at, options.follow if mu > options.late else options.follow_late)
        step = FewPricesStep(market, at, weights, options.step)
        mu = step.mu
        if not np.isfinite(mu):
            break
        if mu < options.looked and step.missed < options.fitting:
            found = _judged(problem, at, log_unit, tol, number)
            since = 0 if found.error < options.better * best.error or np.isinf(found.error) else since + 1
            best = min(best, found, key=lambda each: each.error)
            reached = reached or best.error <= options.target * tol
            if (reached and (mu < options.fine or since)) or since > options.patience:
                break
        at = step.taken()
    return replace(best, steps=number)


def _cheapest(market: Market, at: FewPricesPoint) -> Array:
    """What a task costs each user where it is cheapest, (users,)."""
    return market.cheapest(market.cost(at.price))


def _followed(market: Market, weights: Weights, at: FewPricesPoint, part: float) -> Weights:
    """Weights of a point, none below a part of what it was."""
    user = np.maximum(market.summed(at.tasks) * _cheapest(market, at), part * weights.user)
    return Weights(user, np.where(market.row, np.maximum(at.price, part * weights.price), 1.0))


def _judged(problem: Problem, at: FewPricesPoint, log_unit: float, tol: float, steps: int) -> FewPricesCandidate:
    polytope = problem.polytope
    fractions = polytope.inside(at.tasks / polytope.gamma)
    log_rows = np.log(at.price[polytope.row_server, polytope.row_resource]) + log_unit
    error = error_at(polytope, problem.criterion, polytope.allocation(fractions), log_rows, tol)
    return FewPricesCandidate(fractions, log_rows, error, steps)
