"""The bottleneck of each user of an answer: for every mechanism, as far as that is known.

Of lexicographic max-min over a pool or servers the certificate proves it (`certificates.blocking`). Of the others it is
read off: on the server where a user runs most tasks, the resource that is the largest part of what a task costs at the
prices of the answer; where there are no prices, the used-up resource of which a task needs the largest part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError, SolverError
from ..certificates.blocking import blocking
from ..model._arrays import Index, ratio
from ..model.merging import Split, unmerged

if TYPE_CHECKING:
    from .allocation import Allocation


#: A capacity or a task limit of which less than this part is left is used up.
_FULL = 1e-6


class Holds(NamedTuple):
    """All (users,): `by` is `capacity`, `task limit`, `nowhere to run`, `gets nothing` or `unproved`.

    `server` and `resource` are indices in the allocation's cluster, -1 unless held by `capacity`; of servers that act
    as one the first stands for all.
    """

    by: NDArray[np.str_]
    server: Index
    resource: Index


def holds(allocation: Allocation) -> Holds:
    """The bottlenecks of the users of an allocation."""
    criterion = allocation.criterion
    if np.isinf(criterion.alpha) and criterion.scope in ("pool", "servers"):
        try:
            tasks = allocation._split or allocation.tasks
            found = blocking(allocation.cluster, tasks, criterion, allocation.arrays.prices, allocation.tol)
            return Holds(found.held_by, found.server, found.resource)
        except (DataError, SolverError):  # as of tasks that a mechanism of its own judge calls fair
            pass
    return _read_off(allocation)


def _read_off(allocation: Allocation) -> Holds:
    """Read off binding constraints, by prices or else by use, on the server where a user runs most."""
    cluster, total = allocation.cluster, allocation.arrays.user_tasks
    split = allocation._split or Split.from_table(unmerged(cluster), allocation.tasks)
    table, first, capacity = split.merged, split.merging.first_server, split.merging.cluster.capacity
    at, log_prices = table.argmax(axis=1), allocation.log_prices
    with np.errstate(invalid="ignore", over="ignore"):
        if log_prices is not None and log_prices.ndim == 2:  # parts of the price of a task
            own = log_prices[first[at]]
            cost = np.nan_to_num(np.exp(own - own.max(axis=1, keepdims=True))) * cluster.demand
        else:
            full = ratio(table.T @ cluster.demand, capacity)[at] >= 1 - _FULL
            cost = np.where(full, ratio(cluster.demand, capacity[at]), 0.0)
        limited = total >= cluster.max_tasks * (1 - _FULL)
        nothing = cluster.dominant_share_per_task * total <= 1e-9  # of what it could run alone
    resource, known = cost.argmax(axis=1), cost.max(axis=1) > 0
    nowhere = ~cluster.runnable & (cluster.max_tasks > 0)
    reasons = {"nowhere to run": nowhere, "task limit": limited, "gets nothing": nothing, "capacity": known}
    by = np.select([*reasons.values()], [*reasons], "unproved")
    full = by == "capacity"
    return Holds(by, np.where(full, first[at], -1), np.where(full, resource, -1))
