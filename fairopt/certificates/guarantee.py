"""Can floors be met together? If not, prices prove it, and say who asks for how much of what there is.

At prices lambda >= 0 of capacities and mu >= 0 of tasks at their limits, with `p_n` the least cost of a task of n,
every feasible x has `sum p_n x_n <= sum lambda c + sum mu q`. Floors that cost more than that cannot be met.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import DataError
from ..model import polytope as polytopes
from ..model.polytope import Polytope
from ..model.problem import Problem
from . import _linear

Array = NDArray[np.float64]

#: By what part floors may cost more than there is.
_ROUNDING = 1e-9
#: Most users who are named, and which part of the cost of all they have at least.
_NAMED, _MUCH = 3, 0.05


def check_floors(problem: Problem) -> None:
    """`DataError` for floors that cannot be met together: who asks for too much, and what part of them could be met.

    On clusters with too many pairs for a linear program only what is certain without one is known.
    """
    cluster, rule = problem.cluster, problem.criterion
    if not rule.floor.any():
        return
    without = np.setdiff1d(np.flatnonzero(rule.floor), problem.polytope.users)
    if len(without):
        n = int(without[0])
        raise DataError(
            f"user {cluster.users[n]!r} has a floor of {rule.floor[n]:g} tasks and can run nothing: give it a server "
            "to run on, or no floor",
            ("users", n),
        )
    # A partition by weight is feasible.
    partition = rule.weight / rule.weight.sum() * cluster.gamma.sum(axis=1)
    if (rule.floor <= partition).all() or len(problem.polytope.gamma) > polytopes.LARGE:
        return
    part, cost, price = met(problem.polytope, rule.floor[problem.polytope.users])
    if part >= 1 - _ROUNDING:
        if part <= 1 + _ROUNDING and not rule.starves:
            _check_rest(problem, price)
        return
    part *= 1 - 5e-6  # not rounded up to what cannot be met
    order = np.argsort(-cost, kind="stable")[:_NAMED]
    users = cluster.users
    most = [f"{users[problem.polytope.users[n]]!r} for {cost[n]:.0%}" for n in order if cost[n] >= _MUCH]
    raise DataError(
        f"the floors cannot be met together, at most {part:.6g} of each: of what all of them would cost, user "
        f"{', '.join(most)}. Choose floors of at most {part:.6g} of these, or drop some of theirs"
    )


def _check_rest(problem: Problem, price: Array) -> None:
    """`DataError` if floors take all there is of what somebody without a floor needs."""
    users = problem.polytope.users
    poor = users[(problem.criterion.floor[users] == 0) & (price > _ROUNDING * price.max(initial=0.0))]
    if len(poor):
        raise DataError(
            f"the floors leave nothing to user {problem.cluster.users[poor[0]]!r}, who has none and must have "
            "something: choose lower ones",
            ("users", int(poor[0])),
        )


def met(polytope: Polytope, floor: Array) -> tuple[float, Array, Array]:
    """A proved bound on the part of all floors (users,) that can be met, each one's part of their cost, and prices.

    Prices (users,) are those of all tasks that a user could run.

    Variables: fractions z (pairs) and s: `max s`, `s <= tasks_n z / floor_n`. Infinite where it was not solved.
    """
    who, pairs = np.flatnonzero(floor > 0), len(polytope.gamma)
    relative = sp.diags(1 / floor[who]) @ polytope.tasks[who]
    rows = [
        sp.hstack([polytope.use, sp.csr_matrix((polytope.use.shape[0], 1))]),
        sp.hstack([-relative, sp.csr_matrix(np.ones((len(who), 1)))]),
    ]
    bounds = [np.ones(polytope.use.shape[0]), np.zeros(len(who))]
    if len(polytope.limited):
        rows.append(sp.hstack([polytope.use_of_limit, sp.csr_matrix((len(polytope.limited), 1))]))
        bounds.append(np.ones(len(polytope.limited)))
    solved = _linear.maximise(np.append(np.zeros(pairs), 1.0), rows, bounds)
    cost = np.zeros(len(floor))
    if solved is None:
        return np.inf, cost, cost
    prices, paid, limits = (*solved[1], np.zeros(0))[:3]
    cost[who] = paid
    # Every z <= 1, so a pair worth more than it costs leaks at most the difference.
    leak = np.maximum(relative.T @ paid - polytope.use.T @ prices - polytope.use_of_limit.T @ limits, 0.0).sum()
    total = paid.sum()
    if not total > 0:
        return np.inf, cost, cost
    price = np.full(len(floor), np.inf)
    np.minimum.at(price, polytope.pair_user, polytope.price_per_task(prices))
    return float((prices.sum() + limits.sum() + leak) / total), cost / total, price * polytope.reach
