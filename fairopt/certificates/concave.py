"""Duality gap of the alpha-fair programs (alpha finite), from prices alone.

For any prices `lambda >= 0` and `p_n = min_i sum_r lambda[i,r] d[n,r]` (over the servers n can use), no feasible
x' has a welfare above

    F(x) + sum_n (Fenchel-Young loss of x_n at p_n) + (sum lambda c - sum_n p_n x_n),

so the bracket bounds what is missing. Prices come from the caller as a witness, or from the linear program
`max sum_n (dF/dx_n) x'_n`; either way only the arithmetic here counts. The gap is relative to
`sum_n x_n dF/dx_n`; at alpha = 1 that is the sum of weights, so the gap is a mean relative gain in tasks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ..criteria import Criterion
from ..polytope import Polytope
from . import _linear

Array = NDArray[np.float64]


def duality_gap(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[float, Array, str]:
    """The relative gap, the prices (servers, resources) that prove it, and where it is largest.

    `prices` are scaled to budgets: `sum_n x_n dF/dx_n = sum_n phi_n`.
    """
    cluster = polytope.cluster
    none = np.zeros_like(cluster.capacity)
    if not len(polytope.users):
        return 0.0, none, "no user can run anything"
    own = criterion.restrict(polytope.users)
    x: Array = np.asarray(polytope.tasks @ polytope.fractions(tasks))
    if not (x > 0).all() and criterion.alpha > 0:
        n = polytope.users[int(np.argmin(x))]
        return np.inf, none, f"user {cluster.users[n]!r} runs nothing, although it could"
    if not (x >= 0).all() or not x.any():
        return np.inf, none, "nobody runs anything, although somebody could"
    if prices is not None and np.isfinite(prices).all():
        return gap_at(polytope, own, x, polytope.row_prices(prices))
    log_marginal = own.log_marginal(x)
    found = prices_of(polytope, np.exp(log_marginal - log_marginal.max()))
    if found is None:
        return np.inf, none, "no prices found: the linear program of the judge failed"
    return gap_at(polytope, own, x, found)


def prices_of(polytope: Polytope, marginal: Array) -> Array | None:
    """Prices of whole capacities (rows,) that support `max sum_n marginal_n x_n`."""
    value = polytope.tasks.T @ marginal
    scale = value.max()
    if not scale > 0:
        return np.zeros(polytope.use.shape[0])
    rows = [polytope.use]
    if len(polytope.limited):
        rows.append(polytope.use_of_limit)
    solved = _linear.maximise(value / scale, rows, [np.ones(block.shape[0]) for block in rows])
    return None if solved is None else solved[1][0] * scale


def gap_at(polytope: Polytope, own: Criterion, x: Array, rows: Array) -> tuple[float, Array, str]:
    """The gap at the best multiple of the given prices: the scale of a solver's objective does not matter.

    `own` and the tasks `x` are of the polytope's users, `rows` are prices of whole capacities.
    """
    log_marginal = own.log_marginal(x)
    log_marginal = log_marginal - log_marginal.max()
    total = float(np.exp(log_marginal) @ x)
    rows = np.maximum(rows, 0.0)
    first = np.searchsorted(polytope.pair_user, np.arange(len(x)))
    user_price = np.minimum.reduceat(polytope.price_per_task(rows), first)
    spent = float(user_price @ x)
    budget = float(rows.sum())

    def missing(scale: float) -> tuple[Array, float]:
        loss = own.bregman(x, log_marginal, scale * user_price, np.zeros_like(x), polytope.reach)
        return loss, max(scale * (budget - spent), 0.0)

    def gap(log_scale: float) -> float:
        loss, leak = missing(np.exp(log_scale))
        return min((float(loss.sum()) + leak) / total, 1e300)

    if budget > 0 and spent > 0:
        middle = np.log(total / budget)
        # The last: prices that an earlier judgement returned are in the right scale as they are.
        guesses = [middle, np.log(total / spent), np.log(total / own.weight.sum())]
        hungry = x < polytope.reach * (1 - 1e-9)  # users at their limit would pay more than they must
        paid, worth = user_price[hungry] @ x[hungry], np.exp(log_marginal[hungry]) @ x[hungry]
        if paid > 0 and worth > 0:
            guesses.append(float(np.log(worth / paid)))
        search = minimize_scalar(gap, bounds=(middle - 40, middle + 40), method="bounded", options={"xatol": 1e-12})
        guesses.append(float(search.x))
        scale = float(np.exp(min(guesses, key=gap)))
    else:
        scale = 0.0
    if gap_zero := bool(len(polytope.limited)):
        # Everyone at its task limit: zero prices prove it.
        loss, leak = missing(0.0)
        gap_zero = (float(loss.sum()) + leak) / total < (gap(np.log(scale)) if scale else np.inf)
    loss, leak = missing(0.0 if gap_zero else scale)
    worst = int(loss.argmax())
    users = polytope.cluster.users
    text = (
        f"largest for what user {users[polytope.users[worst]]!r} would buy"
        if loss[worst] > leak
        else "largest for capacity with a price, unused or used by tasks that cost less elsewhere"
    )
    budgets = float(own.weight.sum()) / total
    prices = polytope.unit_prices(rows * (0.0 if gap_zero else scale) * budgets)
    return max(float(loss.sum()) + leak, 0.0) / total, prices, text
