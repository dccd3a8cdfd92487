"""Can floors be met together? If not, prices prove it, and say who asks for how much of what there is.

At prices lambda >= 0, with `p_n` the least cost of a task of n, every feasible x has `sum p_n x_n <= sum lambda c`.
Floors that cost more than that cannot be met.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...model.criterion import check_floor_scope
from ...model.polytope import Polytope
from ...model.problem import Problem

Array = NDArray[np.float64]

#: By what part floors may cost more than there is.
_ROUNDING = 1e-9
#: Most users who are named, and which part of the cost of all they have at least.
_NAMED, _MUCH = 3, 0.05


def check_floors(problem: Problem) -> None:
    """`DataError` for floors that cannot be met together: who asks for too much, and what part of them could be met.

    Also for floors of a game, which `criterion` refuses, and `dataclasses.replace` of a criterion does not.
    """
    cluster, rule = problem.cluster, problem.criterion
    if not rule.floor.any():
        return
    check_floor_scope(rule.scope)
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
    if (rule.floor <= partition).all():
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

    Prices (users,) are those of all tasks that a user could run. The part is the level of max-min among those who have
    floors, in units of these; infinite where it was not found.
    """
    from .level import Level
    from .level_interior import highest

    user, cost = polytope.pair_user, np.zeros(len(floor))
    pairs = np.flatnonzero((floor > 0)[user])
    who, start = np.unique(user[pairs], return_index=True)
    server, use = polytope.pair_server[pairs], polytope.pair_use[pairs]
    use = use * (floor[user[pairs]] / polytope.gamma[pairs])[:, None]
    start = np.append(start, len(pairs))
    servers, resources = polytope.cluster.capacity.shape
    unit = servers * resources / np.minimum.reduceat(use.sum(axis=1), start[:-1]).sum()
    everyone, cap = np.ones(len(who), dtype=bool), polytope.limit[who] / floor[who] / unit
    with np.errstate(all="ignore"):
        problem = Level(start, server, use * unit, servers, everyone, np.zeros(len(who)), cap)
        found = highest(problem, np.random.default_rng(0))
    if found is None or not np.isfinite(found.gap) or not found.problem.rising.all():
        return np.inf, cost, cost  # not bounded, or somebody has all its tasks, and with it more than its floor
    cost[who] = found.user_price
    price = np.full(len(floor), np.inf)
    rows = found.prices[polytope.row_server, polytope.row_resource]
    np.minimum.at(price, user, polytope.price_per_task(rows))
    return found.high * unit, cost / cost.sum(), price * polytope.reach
