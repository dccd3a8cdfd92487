"""Progressive filling in a tree of queues, by cutting planes.

At given prices the cost of all tasks is at most the value of the capacities: a cut, which bounds the path of filling.
If the result for the known cuts has no placement, a linear program finds prices whose cut excludes it, and filling is
repeated with this cut added.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base.errors import DataError, SolverError
from ...base.libraries import sp
from ...base.names import listed
from ...certificates.stages import costs
from ...model import linear
from ...model._arrays import Array, Mask, ratio
from ...model.polytope import Polytope
from ...model.problem import Problem
from ...model.queues import TreeCriterion
from ..solution import Solution

#: Relative shortfall up to which tasks count as placed: the accuracy of linear programs.
_PLACED = 1e-9
#: Fraction of the value of all capacities up to which the cost of a user's largest possible tasks is a rounding error.
_NEGLIGIBLE = 1e-9
#: Largest number of linear programs, and thus of cuts.
_CUTS = 1000


def solutions(problem: Problem) -> Iterator[Solution]:
    """Tasks of progressive filling, with the prices (servers, resources) of each cut as the certificate."""
    polytope, rule = problem.polytope, problem.criterion
    assert isinstance(rule, TreeCriterion)
    filling = rule.filling(problem.cluster, polytope.users)
    resources = np.unique(polytope.row_resource)
    # A finite bound beyond what a user can have, so that prices and not this bound stop it.
    most = np.minimum(polytope.limit, 2 * polytope.reach)
    tables = [polytope.unit_prices(polytope.capacity * (polytope.row_resource == r)) for r in resources]

    def refuse(stuck: Mask, quotas: list[str]) -> None:
        who = listed([repr(polytope.cluster.users[n]) for n in polytope.users[stuck]], 3)
        raise DataError(
            f"quotas cannot be met together: nothing is left for {who} below {listed(quotas, 5)}; lower a quota"
        )

    for count in range(_CUTS):
        prices = np.array(tables)
        cost, rows = costs(polytope, prices)
        value = rows.sum(axis=1)
        cost[cost < _NEGLIGIBLE * value[:, None] / np.maximum(polytope.reach, 1e-300)] = 0.0
        path = filling.path(most, cost, value, refuse)
        part, fractions, bound = _placement(polytope, path.tasks)
        if part >= 1 - _PLACED:
            placed = polytope.user_tasks(fractions)
            fractions = fractions * ratio(path.tasks, placed)[polytope.pair_user]
            yield Solution(polytope.allocation(fractions), prices, "filling", rounds=count + 1)
            return
        if not bound.any():
            break
        tables.append(polytope.unit_prices(bound))
    raise SolverError(f"no placement of the tasks of the tree was found by {_CUTS} linear programs")


def _placement(polytope: Polytope, tasks: Array) -> tuple[float, Array, Array]:
    """Largest feasible multiple of `tasks`, (users,), its placement in fractions (pairs,), and prices of rows."""
    if len(np.unique(polytope.pair_server)) == 1:
        fractions = tasks[polytope.pair_user] / polytope.gamma
        used = polytope.use @ fractions
        return float(min(1 / used.max(), 1.0)), fractions, (used == used.max()).astype(float)
    pairs, some = len(polytope.gamma), np.flatnonzero(tasks > 0)
    per = sp.diags(1 / tasks[some]) @ polytope.tasks[some]
    rows = sp.block_array([[polytope.use, None], [-per, np.ones((len(some), 1))]], format="csr")
    most = np.append(np.ones(polytope.use.shape[0]), np.zeros(len(some)))
    cost = np.append(np.zeros(pairs), -1.0)
    found = linear.minimise(cost, rows, most, high=np.append(np.full(pairs, np.inf), 1.0))
    if found is None:
        raise SolverError("the linear program of a placement was not solved")
    return float(found.x[-1]), found.x[:-1], found.prices[: polytope.use.shape[0]]
