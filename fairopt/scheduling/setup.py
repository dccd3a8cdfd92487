"""`Setup`: a workload in the amounts and costs of a policy, and the tables of the simulation loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..base.errors import DataError
from ..model import _validate
from ..model._arrays import Array, Mask, from_sizes, ratio
from .loop import tables as at
from .loop.tables import Tables
from .policies import Policy
from .workload import NEVER, Whole, Workload, fitting, one_of

Slows = Literal["short", "all"]


@dataclass(frozen=True)
class Thrashing:
    """Slowdown of tasks by a factor while their server is over-committed.

    A server is over-committed in a resource if its tasks demand more than its capacity, which is then divided among
    them by max-min fairness. A task that receives less than its demand is *short*. The papers do not specify the
    slowdown (DRF section 7.2 mentions thrashing); docs/simulation.md compares two factors.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 10.0], "cpu": [1, 1], "ram": [3, 2]})
    >>> workload = fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [2], "ram": [4]}))
    >>> thrashing = fo.scheduling.Thrashing(2, slows="all")
    >>> fo.scheduling.simulate(workload, "cpu-fair", thrashing=thrashing).jobs["end"].tolist()
    [20.0, 20.0]
    """

    #: Factor of the duration, >= 1.
    factor: float = 5.0
    #: Slowed tasks of an over-committed server: tasks that are "short" of a resource, or "all" tasks.
    slows: Slows = "short"

    def __post_init__(self) -> None:
        _validate.number(self.factor, "factor", "a finite number >= 1", lambda factor: 1 <= factor < np.inf)
        one_of(self.slows, "slows", Slows)


#: Largest number of servers for which a scan is faster than an index (`benchmarks/scheduling.py`).
NEAR = 48
#: Servers per block of the index of ratios; from 32 to 128 the effect on speed is small.
BLOCK = 64


class Setup:
    """Groups of a workload in the order of (queue, arrival, input), with their demands and costs under a policy.

    Attributes
    ----------
    workload, policy
    order : (groups,), index of every group in the workload
    queue : (groups,), index of the queue of every group
    capacity : (servers, amounts), as in `Policy.room`
    demand : (groups, amounts), per task, as in `Policy.room`
    cost : (groups, costs), per task, as in `Policy.cost`
    total : (costs,), total of every cost
    weight : (queues,)

    Raises
    ------
    DataError
        `room` or `cost` of the policy are not integers of the right shape.
    """

    def __init__(self, workload: Workload, policy: Policy) -> None:
        w, self.workload, self.policy = workload, workload, policy
        one = policy.queue == "one"
        self.order = np.argsort(w.arrival, kind="stable") if one else np.arange(w.groups)
        capacity, demand = policy.room(w)
        cost, total = policy.cost(w)
        self.capacity = _whole(policy, "room", capacity, len(w.servers))
        self.demand = _whole(policy, "room", demand, w.groups)[self.order]
        self.cost = _whole(policy, "cost", cost, w.groups)[self.order]
        self.total: Whole = np.array(total, dtype=np.int64)
        right = self.capacity.shape[1] == self.demand.shape[1] and np.shape(total) == self.cost.shape[1:]
        if not right or (np.asarray(total) <= 0).any():
            raise DataError(
                f"{policy}: room and cost must have a column for every amount and every cost, and totals > 0"
            )
        self.queue = (_zeros(w.groups) if one else w.user)[self.order]
        self.weight: Array = np.ones(1) if one else w.weight.astype(float)

    @cached_property
    def possible(self) -> Mask:
        """Mask (groups,) of groups of which a task or, for gangs, all tasks at once fit empty eligible servers."""
        w, place = self.workload, self.workload.placement[self.order]
        found = fitting(self.capacity, self.demand, place, w.eligible)
        for g in np.flatnonzero(found) if self.policy.gangs else ():
            asked = self.demand[g] > 0
            several = (self.capacity[w.eligible[place[g]]][:, asked] // self.demand[g, asked]).min(axis=1).sum()
            found[g] = several >= w.first[self.order[g] + 1] - w.first[self.order[g]]
        return found

    @property
    def by_ratios(self) -> bool:
        """True if servers are found by the index of ratios, which requires two amounts."""
        return self.policy.index == "ratios" and self.capacity.shape[1] > 1

    def tables(self, thrashing: Thrashing | None = None, near: int = NEAR) -> Tables:
        """Initial state of the simulation; placements with at most `near` servers are scanned, others use an index."""
        w, capacity, demand, order = self.workload, self.capacity, self.demand, self.order
        (servers, amounts), queues, groups = capacity.shape, len(self.weight), len(order)
        changes, tasks = self._changes(), np.diff(w.first)[order]
        evicts, slower = len(w.change_time) + (w.leaves < NEVER).sum() > 0, thrashing is not None
        links, jobs = self._links()
        lists = _zeros(7, max(servers, groups, 64) + 1)
        n = _zeros(at.SLOWS + 1)
        n[at.STRICT], n[at.TRACKED], n[at.LINKED] = self.policy.strict, evicts or slower, links.shape[1] > 0
        n[at.OPEN] = tasks[self.possible].sum()
        # `EXACT`: products of the capacity of one of two amounts and the demand of the other are exact in floating
        # point.
        largest = capacity.max(axis=0).astype(float)[::-1] * demand.max(axis=0, initial=0)
        n[at.EXACT] = largest.max() < 2**53
        if thrashing is not None:
            n[at.SLOWS] = at.ALL if thrashing.slows == "all" else at.SHORT
        free = np.where(w.there[:, None], capacity, -1)

        types = _zeros(servers)
        if self.policy.pairs and self.policy.index == "types":
            types = np.unique(capacity, axis=0, return_inverse=True)[1].reshape(-1)
        member, trees = np.argsort(types, kind="stable").astype(np.int64), _trees(np.bincount(types))
        slot = np.argsort(member) - trees[types, 2]
        # Maxima of two amounts may be attained by two different servers. Mixtures give further necessary conditions,
        # which may exclude a set of servers of which none has enough of both amounts. A mixture is the smallest amount
        # relative to the pool, before or after one amount is tripled, as an integer.
        mix = 2.0**50 / np.maximum(capacity.sum(axis=0), 1) * np.vstack([np.ones(amounts), 1 + 2 * np.eye(amounts)])
        mixed = [np.minimum((demand * row).min(axis=1), 2.0**62).astype(np.int64) for row in mix]
        need = np.column_stack([demand, *mixed])
        # Initially the index of all servers is out of date.
        n[at.STALE], lists[at.STALE, :servers] = servers, np.arange(servers)
        of_servers = {at.STALE: 1, at.TREE: types, at.SLOT: slot, at.AVAILABLE: w.there, at.HEAD: -1}
        # The index of ratios has half-full blocks initially, and space for one block per server.
        parts = ratio(free[:, 1:], free[:, :1], np.inf)
        indexed = np.argsort(parts[:, 0], kind="stable") if self.by_ratios else _zeros(0)
        block, place = np.divmod(np.arange(len(indexed)), BLOCK // 2)
        blocks = len(indexed) + 1
        ratios, ids = np.zeros((blocks, amounts - 1, BLOCK)), _zeros(blocks, BLOCK)
        have, most = _zeros(blocks, amounts, BLOCK), np.full((blocks, amounts), -1)
        ratios[block, :, place], ids[block, place], have[block, :, place] = parts[indexed], indexed, free[indexed]
        np.maximum.at(most, block, free[indexed])
        n[at.BLOCKS] = block.max(initial=-1) + 1
        scanned = [np.flatnonzero(row) if self.policy.index == "" or row.sum() <= near else _zeros(0)
                   for row in w.eligible]  # fmt: skip

        count = np.bincount(self.queue, minlength=queues)
        below, size, first = _trees(count).T
        of_queues = {at.SINCE: -1, at.BASE: below, at.SIZE: size, at.FIRST: first, at.GROUPS: count}
        leaves = int(_power(np.array([queues]))[0])
        placed = (queues, servers, amounts) if self.policy.per_server else (0, 0, 0)
        of_groups = {at.QUEUE: self.queue, at.USER: w.user[order], at.PLACEMENT: w.placement[order],
                     at.NEXT: w.first[order], at.AGAIN: -1, at.TASKS: tasks}  # fmt: skip
        none = _zeros(0, 0)
        return Tables(
            n, lists, _lines(servers, 8, of_servers), capacity.copy(), free.copy(),
            np.maximum(capacity.sum(axis=0), 1),
            np.ascontiguousarray(w.eligible), np.concatenate(scanned).astype(np.int64),
            from_sizes([len(each) for each in scanned]).astype(np.int64),
            np.full((2 * trees[:, 1].sum(), need.shape[1]), -at.INFINITE), mix, need, trees, member,
            np.arange(blocks), ratios, ids, have, np.bincount(block, minlength=blocks), most, free.copy(),
            np.zeros((2, amounts)),
            _lines(queues, 13, of_queues), _zeros(queues, len(self.total)), self.total, self.weight, np.zeros(queues),
            _zeros(*placed), np.full((2 * size.sum(), amounts), -at.INFINITE),
            np.full((2 * leaves, amounts), -at.INFINITE),
            np.full((2 * leaves, 1), -np.inf),
            np.zeros((queues, 2)),
            _zeros(1, amounts), np.array(self.policy.numbers, dtype=float),
            _lines(groups, 8, of_groups), np.ascontiguousarray(demand), np.ascontiguousarray(self.cost),
            np.array(w.duration), np.full(w.tasks if evicts else 0, -1, dtype=np.int64),
            w.lasts[order], _zeros(3 if self.policy.gangs else 0, servers, amounts), changes,
            _lines(w.tasks + 16, 8), _lines(w.tasks + 64, 2), np.zeros((w.tasks + 16 if slower else 0, 3)),
            np.array(w.demand[order] if slower else none), np.array(w.capacity if slower else none),
            np.full(len(w.resources) + 1, 1.0 if thrashing is None else float(thrashing.factor)), links, jobs,
        )  # fmt: skip

    def _changes(self) -> Whole:
        """Events of servers, users and groups in the order of time, as a table (time / kind / index, changes)."""
        w, coming = self.workload, np.flatnonzero(self.possible)
        leaving = np.flatnonzero(w.leaves < NEVER)
        time = np.concatenate([w.change_time, w.leaves[leaving], w.arrival[self.order][coming]])
        many = [len(leaving), len(coming)]
        what = np.concatenate([np.where(w.change_up, at.UP, at.DOWN), np.repeat([at.LEAVES, at.COMES], many)])
        index = np.concatenate([w.change_server, leaving, coming])
        return np.array([time, what, index], dtype=np.int64)[:, np.argsort(time, kind="stable")]

    def _links(self) -> tuple[Whole, Whole]:
        """`Tables.links` and `jobs`, empty if no job has a predecessor; groups that can never start do not follow."""
        w = self.workload
        if not (w.after >= 0).any():
            return _zeros(4, 0), _zeros(2, 0)
        job = w.job[self.order]
        before = w.after[job]
        following = np.argsort(before, kind="stable").astype(np.int64)
        following = following[self.possible[following]]
        first = np.searchsorted(before[following], np.arange(len(w.jobs) + 1))
        to_do = np.bincount(w.job, np.diff(w.first), minlength=len(w.jobs) + 1)
        links = _zeros(4, len(job))
        links[:3], links[at.FOLLOWS, : len(following)] = [w.arrival[self.order], job, before], following
        return links, np.array([to_do, first], dtype=np.int64)


def _whole(policy: Policy, what: str, given: Whole, rows: int) -> Whole:
    table = np.asarray(given)
    if table.ndim != 2 or len(table) != rows or not np.issubdtype(table.dtype, np.integer):
        raise DataError(
            f"{policy}: {what}(workload) must return tables of whole numbers with {rows} rows here; "
            f"got {table.dtype}, {table.shape}"
        )
    if (table < 0).any():
        raise DataError(
            f"{policy}: {what}(workload) has {table.min()}; its numbers must be >= 0, and below 2^63, where products "
            "overflow: divide amounts or durations by a constant"
        )
    return np.array(table, dtype=np.int64)


def grown(t: Tables, runs: int) -> Tables:
    """Copy of the tables with space for at least `runs` runs."""
    more = _lines(runs + 16, t.runs.shape[1])
    more[: len(t.runs)] = t.runs
    pace = np.zeros((len(more) if len(t.pace) else 0, 3))
    pace[: len(t.pace)] = t.pace
    return t._replace(runs=more, pace=pace)


def _zeros(*shape: int) -> Whole:
    return np.zeros(shape, dtype=np.int64)


def _lines(rows: int, width: int, columns: Mapping[int, Any] = MappingProxyType({})) -> Whole:
    """Table of zeros except for the given columns, aligned to cache lines of 64 bytes."""
    room = np.zeros(rows * width + 8, dtype=np.int64)
    begin = -room.ctypes.data % 64 // 8
    table = room[begin : begin + rows * width].reshape(rows, width)
    for column, values in columns.items():
        table[:, column] = values
    return table


def _power(count: Whole) -> Whole:
    """Smallest powers of two that are at least `count`."""
    return np.left_shift(1, np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64))


def _trees(count: Whole) -> Whole:
    """Layout of trees, (trees, 3): index of the row before the root, number of leaves, index of the first member."""
    size = _power(count)
    return np.column_stack([2 * (np.cumsum(size) - size), size, np.cumsum(count) - count])
