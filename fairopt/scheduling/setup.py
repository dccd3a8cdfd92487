"""`Setup`: a workload as a policy sees it, in the arrays that both engines run on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .policies import Policy
from .workload import NEVER, Whole, Workload

#: What happens to a server or a user.
DOWN, UP, LEAVES = 0, 1, 2


@dataclass(eq=False)
class Setup:
    """Groups in order of (queue, arrival, place), and what their tasks take, in the policy's own terms.

    Attributes
    ----------
    workload, policy
    order : (groups,), the place of every group in the workload
    queue, user, arrival, placement, size, first_task : (groups,)
    capacity : (servers, amounts), demand : (groups, amounts), cost : (groups, costs), total : (costs,)
    weight : (queues,)
    kind : (groups,), rows of `kinds`, the first group of every (placement, demand)
    possible : (groups,), is there a server, empty, where a task fits?
    change_time, change_what, change_index : (changes,), of servers and users, by time
    """

    workload: Workload
    policy: Policy
    order: NDArray[np.intp]
    queue: Whole
    capacity: Whole
    demand: Whole
    cost: Whole
    total: Whole
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, workload: Workload, policy: Policy) -> Setup:
        """What a policy makes of a workload.

        Raises
        ------
        DataError
            `room` or `cost` are not whole numbers of the right shape.
        """
        w = workload
        one = policy.queue == "one"
        order = np.argsort(w.arrival, kind="stable") if one else np.arange(w.groups)
        capacity, demand = policy.room(w)
        cost, total = policy.cost(w)
        capacity = _whole(policy, "room", capacity, len(w.servers))
        demand = _whole(policy, "room", demand, w.groups)
        cost = _whole(policy, "cost", cost, w.groups)
        if capacity.shape[1] != demand.shape[1] or np.shape(total) != cost.shape[1:] or (np.asarray(total) <= 0).any():
            raise DataError(
                f"{policy}: room and cost must have a column for every amount and every cost, and totals > 0"
            )
        queue = np.zeros(w.groups, dtype=np.int64) if one else w.user
        weight = np.ones(1) if one else w.weight
        total = np.array(total, dtype=np.int64)
        return cls(w, policy, order, queue[order], capacity, demand[order], cost[order], total, weight)

    @property
    def groups(self) -> int:
        return len(self.order)

    @cached_property
    def user(self) -> Whole:
        return self.workload.user[self.order]

    @cached_property
    def arrival(self) -> Whole:
        return self.workload.arrival[self.order]

    @cached_property
    def job(self) -> Whole:
        return self.workload.job[self.order]

    @cached_property
    def before(self) -> Whole:
        """(groups,): the job that must be done before, or -1; empty if there is none."""
        after = self.workload.after
        return after[self.job] if (after >= 0).any() else after[:0]

    @cached_property
    def following(self) -> tuple[Whole, Whole]:
        """Groups by the job they come after: those of job j are `groups[first[j]:first[j + 1]]`."""
        groups = np.argsort(self.before, kind="stable").astype(np.int64)
        first = np.searchsorted(self.before[groups], np.arange(len(self.workload.jobs) + 1))
        return first.astype(np.int64), groups

    @cached_property
    def tasks_of_job(self) -> Whole:
        """(jobs,): how many tasks each has."""
        return np.bincount(self.job, self.size, minlength=len(self.workload.jobs)).astype(np.int64)

    @cached_property
    def placement(self) -> Whole:
        return self.workload.placement[self.order]

    @cached_property
    def size(self) -> Whole:
        return np.diff(self.workload.first)[self.order]

    @cached_property
    def first_task(self) -> Whole:
        return self.workload.first[self.order]

    @cached_property
    def _kinds(self) -> tuple[Whole, Whole]:
        key = np.column_stack([self.placement, self.demand])
        _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        return first.astype(np.int64), which.reshape(-1).astype(np.int64)

    @property
    def kinds(self) -> Whole:
        return self._kinds[0]

    @property
    def kind(self) -> Whole:
        return self._kinds[1]

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        found = np.zeros(len(self.kinds), dtype=bool)
        placement, need = self.placement[self.kinds], self.demand[self.kinds]
        for one in np.unique(placement):
            here = np.flatnonzero(placement == one)
            for row in np.unique(self.capacity[self.workload.eligible[one]], axis=0):
                found[here] |= (need[here] <= row).all(axis=1)
        return found[self.kind]

    @cached_property
    def changes(self) -> tuple[Whole, Whole, Whole]:
        """Times, what happens (`DOWN`, `UP`, `LEAVES`), and to which server or user."""
        w = self.workload
        leaving = np.flatnonzero(w.leaves < NEVER)
        time = np.concatenate([w.change_time, w.leaves[leaving]])
        what = np.concatenate([np.where(w.change_up, UP, DOWN), np.full(len(leaving), LEAVES)])
        index = np.concatenate([w.change_server, leaving])
        by_time = np.argsort(time, kind="stable")
        return time[by_time], what[by_time].astype(np.int64), index[by_time].astype(np.int64)

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """(servers,): is it there before anything happens? Not if its first change is to come."""
        found = np.ones(len(self.workload.servers), dtype=bool)
        for server, up in zip(self.workload.change_server[::-1], self.workload.change_up[::-1], strict=True):
            found[server] = not up
        return found


def _whole(policy: Policy, what: str, given: Whole, rows: int) -> Whole:
    table = np.asarray(given)
    if table.ndim != 2 or len(table) != rows or not np.issubdtype(table.dtype, np.integer) or (table < 0).any():
        raise DataError(f"{policy}: {what} must be tables of whole numbers >= 0, with {rows} rows")
    return np.array(table, dtype=np.int64)
