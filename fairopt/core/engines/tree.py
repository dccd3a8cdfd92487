r"""Progressive filling in a tree of queues, by cutting planes.

At given prices the cost of all tasks is at most the value of the capacities. This inequality is a cut, which bounds the
path of filling. The path within the known cuts has tasks x, and times t at which its users stop. Further cuts are found
by lexicographic max-min of the levels

.. math:: \frac{t_n}{x_n} \sum_i x'_{ni}, \quad \sum_i x'_{ni} \le x_n \ \text{for users that no cut stops},

whose engine returns the prices of every level. If all users attain their times, x has a placement, and is the result.
Otherwise some new cut excludes x. To see this, consider the lowest level at which a user with fewer than :math:`x_n`
tasks stops. All users that stop at lower levels have :math:`x_n` tasks, since a cut that stops such a user on the path
allows it no further tasks unless another user has fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from ...base.errors import DataError, SolverError
from ...base.names import listed
from ...certificates.stages import costs
from ...model._arrays import Mask, ratio
from ...model.criterion import criterion
from ...model.problem import Problem
from ...model.tree_filling import Path, TreeCriterion
from ..solution import Solution
from . import maxmin

#: Relative shortfall up to which tasks count as placed: the accuracy of levels.
_PLACED = 1e-9
#: Fraction of the value of all capacities up to which the cost of a user's largest possible tasks is a rounding error.
_NEGLIGIBLE = 1e-9
#: Largest number of lexicographic problems.
_ROUNDS = 100


def solutions(problem: Problem) -> Iterator[Solution]:
    """Yield placements of the tasks of progressive filling, with the prices (cuts, servers, resources) that stop users.

    Raises `DataError` if quotas cannot be met together, and `SolverError` if no placement is found in `_ROUNDS` rounds.
    """
    polytope, rule = problem.polytope, problem.criterion
    assert isinstance(rule, TreeCriterion)
    filling = rule.filling(problem.cluster, polytope.users)
    resources = np.unique(polytope.row_resource)
    # A finite bound beyond the largest possible tasks of a user, so that prices and not this bound stop the user.
    most = np.minimum(polytope.limit, 2 * polytope.reach)
    prices = np.array([polytope.unit_prices(polytope.capacity * (polytope.row_resource == r)) for r in resources])
    cost, value = np.zeros((0, len(most))), np.zeros(0)

    def refuse(stuck: Mask, quotas: list[str]) -> None:
        who = listed([repr(polytope.cluster.users[n]) for n in polytope.users[stuck]], 3)
        raise DataError(
            f"quotas cannot be met together: nothing is left for {who} below {listed(quotas, 5)}; lower a quota"
        )

    placed, found = np.full(len(most), -1.0), iter([Solution(np.zeros(problem.cluster.shape[:2]), prices, "filling")])
    first = next(found)
    for count in range(_ROUNDS):
        more, rows = costs(polytope, prices[len(cost) :])
        more[more < _NEGLIGIBLE * rows.sum(axis=1)[:, None] / np.maximum(polytope.reach, 1e-300)] = 0.0
        cost, value = np.vstack([cost, more]), np.append(value, rows.sum(axis=1))
        path = filling.path(most, cost, value, refuse)
        if not (path.tasks <= placed * (1 + _PLACED)).all():
            found = _placements(problem, path)
            first = next(found, first)
            placed = first.tasks.sum(axis=1)[polytope.users]
        if (path.tasks <= placed * (1 + _PLACED)).all():
            some = np.unique(np.maximum(path.cut, 0))
            for one in chain([first], found):
                tasks = one.tasks.copy()
                tasks[polytope.users] *= ratio(path.tasks, tasks.sum(axis=1)[polytope.users])[:, None]
                yield Solution(tasks, prices[some], "filling", one.runs, rounds=count + 1, status=one.status)
            return
        prices = np.concatenate([prices, *([] if first.prices is None else [first.prices])])
    raise SolverError(f"no placement of the tasks of the tree was found in {_ROUNDS} rounds")


def _placements(problem: Problem, path: Path) -> Iterator[Solution]:
    """Yield lexicographic max-min tasks for the times and tasks of a path, with prices of their levels.

    On a single server, or without tasks, the tasks of the path are yielded, without prices.
    """
    cluster, users = problem.cluster, problem.polytope.users
    if len(cluster.servers) == 1 or not path.tasks.any():
        tasks = np.zeros(cluster.shape[:2])
        tasks[users, 0] = path.tasks
        yield Solution(tasks, np.zeros((0, *cluster.capacity.shape)), "filling")
        return
    share, cap = np.ones(len(cluster.users)), np.zeros(len(cluster.users))
    share[users] = ratio(path.time[path.stop], path.tasks, 1.0)
    cap[users] = np.where((path.cut >= 0) & (path.tasks > 0), np.inf, path.tasks)
    levels = criterion(cluster, share, np.inf, "servers", np.ones(len(share)), cap)
    yield from maxmin.solutions(Problem(cluster, levels))
