"""Bottlenecks of users, for allocations of any mechanism.

For lexicographic max-min over a pool or over servers, bottlenecks are proved (`certificates.blocking`). For other
mechanisms the bottleneck of a user is, on the server where the user runs most tasks, the resource with the largest
share in the cost of a task at the prices of the allocation. Without prices it is the exhausted resource of which a task
uses the largest fraction. In a tree of queues the limit of a queue may bind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError, SolverError
from ..certificates.blocking import blocking
from ..model._arrays import Index, ratio
from ..model.merging import Split, unmerged
from ..model.tree_filling import TreeCriterion

if TYPE_CHECKING:
    from .allocation import Allocation


#: Largest relative slack with which a capacity or a limit counts as exhausted.
_FULL = 1e-6


class Holds(NamedTuple):
    """Binding constraint of every user, (users,) each.

    `by` is `capacity`, `task limit`, `nowhere to run`, `gets nothing`, `unproved`, or the limit of a queue, such as
    `the limit of 'gpu' of queue 'lab'`.

    `server` and `resource` are indices in the cluster of the allocation, -1 unless `by` is `capacity`. Of several
    merged servers the first is named.
    """

    by: NDArray[np.str_]
    server: Index
    resource: Index


def holds(allocation: Allocation) -> Holds:
    """Find the binding constraint of every user; an allocation without a criterion raises `DataError`."""
    criterion = allocation.criterion
    if isinstance(criterion, TreeCriterion):  # weights change when users stop, so that levels prove nothing
        return _limited(allocation, criterion, _read_off(allocation))
    if np.isinf(criterion.alpha) and criterion.scope in ("pool", "servers"):
        try:
            tasks = allocation._split or allocation.tasks
            found = blocking(allocation.cluster, tasks, criterion, allocation.arrays.prices, allocation.tol)
            return Holds(found.held_by, found.server, found.resource)
        except (DataError, SolverError):  # for example if the mechanism has a certificate of its own
            pass
    return _read_off(allocation)


def _limited(allocation: Allocation, rule: TreeCriterion, found: Holds) -> Holds:
    """Replace bottlenecks, but not task limits, by exhausted limits of queues: of several, the one on fewest users."""
    cluster = allocation.cluster
    users = np.flatnonzero(cluster.runnable)
    filling, by = rule.filling(cluster, users), found.by.astype(object)
    limits = filling.limits
    held = filling.held(limits, allocation.arrays.user_tasks[users])
    full = np.flatnonzero(held >= limits.most * (1 - _FULL))
    for k in full[np.argsort(-np.diff(limits.start)[full], kind="stable")].tolist():
        below = users[limits.user[limits.start[k] : limits.start[k + 1]]]
        by[below[found.by[below] != "task limit"]] = f"the limit of {limits.names[k]}"
    kept = by == "capacity"
    return Holds(by.astype(str), np.where(kept, found.server, -1), np.where(kept, found.resource, -1))


def _read_off(allocation: Allocation) -> Holds:
    """Binding constraints by prices, or else by use, on the server where each user runs most tasks."""
    cluster, total = allocation.cluster, allocation.arrays.user_tasks
    split = allocation._split or Split.from_table(unmerged(cluster), allocation.tasks)
    table, first, capacity = split.merged, split.merging.first_server, split.merging.cluster.capacity
    at, log_prices = table.argmax(axis=1), allocation.log_prices
    with np.errstate(invalid="ignore", over="ignore"):
        if log_prices is not None and log_prices.ndim == 2:  # cost of each resource in a task, up to a factor per user
            own = log_prices[first[at]]
            cost = np.nan_to_num(np.exp(own - own.max(axis=1, keepdims=True))) * cluster.demand
        else:
            full = ratio(table.T @ cluster.demand, capacity)[at] >= 1 - _FULL
            cost = np.where(full, ratio(cluster.demand, capacity[at]), 0.0)
        limited = total >= cluster.max_tasks * (1 - _FULL)
        nothing = cluster.dominant_share_per_task * total <= 1e-9
    resource, known = cost.argmax(axis=1), cost.max(axis=1) > 0
    nowhere = ~cluster.runnable & (cluster.max_tasks > 0)
    reasons = {"nowhere to run": nowhere, "task limit": limited, "gets nothing": nothing, "capacity": known}
    by = np.select([*reasons.values()], [*reasons], "unproved")
    full = by == "capacity"
    return Holds(by, np.where(full, first[at], -1), np.where(full, resource, -1))
