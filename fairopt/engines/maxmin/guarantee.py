"""Joint feasibility of floors; prices prove infeasibility, and each user's part in it.

At prices lambda >= 0, with `p_n` the least cost of a task of n, every feasible x has `sum p_n x_n <= sum lambda c`.
Floors that cost more than that cannot be met.
"""

from __future__ import annotations

import numpy as np

from ...core.leximin import Leximin
from ...errors import DataError, SolverError
from ...model._arrays import Array
from ...model.criterion import check_floor_scope, criterion
from ...model.polytope import Polytope
from ...model.problem import Problem

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

    Prices (users,) are those of all tasks that a user could run. The part is the lowest level of max-min among those
    who have floors, in units of these; infinite where it was not found.
    """
    cluster, users, cost = polytope.cluster, polytope.users, np.zeros(len(floor))
    limits = np.zeros(cluster.shape[0])
    limits[users] = np.where(floor > 0, polytope.limit, 0.0)
    demanding = Polytope(cluster, limits)
    who = np.searchsorted(users, demanding.users)
    unit = np.ones(cluster.shape[0])
    unit[users[who]] = 1 / floor[who]
    rule = criterion(cluster, unit, np.inf, "servers", np.ones(len(unit)))
    try:
        with np.errstate(all="ignore"):
            proofs = Leximin(demanding, rule).prices()
    except SolverError:
        return np.inf, cost, cost
    part, price = np.inf, cost
    for proof in proofs:
        rows = demanding.row_prices(proof)
        least = np.minimum.reduceat(demanding.price_per_task(rows), demanding.start[:-1]) * floor[who]
        if (total := float(least.sum())) > 0 and (bound := float(rows.sum()) / total) < part:
            part, cost = bound, np.zeros(len(floor))
            cost[who] = least / total
            price = np.full(len(floor), np.inf)
            np.minimum.at(price, polytope.pair_user, polytope.price_per_task(polytope.row_prices(proof)))
    return part, cost, price * polytope.reach
