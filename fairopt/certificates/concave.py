"""Welfare gap of the alpha-fair programs (alpha finite), from prices alone.

For any prices `lambda >= 0` and `p_n = min_i sum_r lambda[i,r] d[n,r]` (over the servers n can use), no feasible
x' has a welfare above

    F(x) + sum_n (Fenchel-Young loss of x_n at p_n) + sum_ni x_ni (p_ni - p_n) + sum_ir lambda_ir idle_ir,

so that what follows F(x), losses being over tasks at or above floors, bounds what is missing. The gap is relative to
`sum_n x_n dF/dx_n`; at alpha = 1 that is the sum of weights, so the gap is a mean relative gain in tasks. It says
nothing of users whose part in that sum is below it: for tasks see `backward`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .backward import log_price_per_task

Array = NDArray[np.float64]


def fitted_gap(polytope: Polytope, tasks: Array, criterion: Criterion, log_rows: Array) -> float:
    """The least gap over multiples of the prices, for those in a solver's own scale."""

    def gap(shift: float) -> float:
        return min(duality_gap(polytope, tasks, criterion, log_rows + shift), 1e300)

    if not len(polytope.users) or not (log_rows > -np.inf).any():
        return gap(0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = tasks.sum(axis=1)[polytope.users]
        marginal = criterion.restrict(polytope.users).log_marginal(total) + np.log(total)
    middle = np.logaddexp.reduce(marginal) - np.logaddexp.reduce(log_rows)
    if not np.isfinite(middle):
        return gap(0.0)
    found = optimize.minimize_scalar(gap, bounds=(middle - 40, middle + 40), method="bounded", options={"xatol": 1e-12})
    return min(gap(0.0), gap(middle), gap(float(found.x)))


def duality_gap(polytope: Polytope, tasks: Array, criterion: Criterion, log_rows: Array) -> float:
    """The relative welfare gap of tasks, from prices alone: a bound on what their welfare is below the largest.

    It is the sum of every user's Fenchel-Young loss, of `sum_ni x_ni (p_ni - p_n)` and of the price of what is idle,
    over `sum_n x_n dF/dx_n`. Any prices give a bound. Infinite where tasks have no finite welfare.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : of the same cluster, with finite alpha, in a scope other than `game`
    log_rows : (rows,), log prices of whole capacities in the scale of `dF/dx`, a row being a (server, resource) that
        somebody can use; -inf for none

    Source: docs/certificates.md, "The welfare gap".
    """
    if not len(polytope.users):
        return 0.0
    own, user = criterion.restrict(polytope.users), polytope.pair_user
    first = polytope.start[:-1]
    here = tasks[polytope.users[user], polytope.pair_server]
    x = np.add.reduceat(here, first)
    if not (x >= 0).all() or not x.any() or not (criterion.starves or (x > 0).all()):
        return np.inf
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        log_marginal = own.log_marginal(x)
        top = float(log_marginal.max())
        cost = np.exp(log_price_per_task(polytope, log_rows) - top)
        least = np.minimum.reduceat(cost, first)
        loss = own.bregman(x, log_marginal - top, least, np.minimum(own.floor, x), polytope.reach)
        idle = np.exp(log_rows - top) @ np.maximum(1 - polytope.used(tasks), 0.0)
        missing = float(loss.sum() + here @ (cost - least[user]) + idle)
        gap = missing / float(np.exp(log_marginal - top) @ x)
    return gap if np.isfinite(gap) else np.inf
