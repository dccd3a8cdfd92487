"""The compiled engine: the same events as the plain one, for policies whose parts it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model._pointers import from_sizes
from .kernel import _columns as at
from .kernel._advance import advance
from .kernel._ratios import fill
from .kernel._tables import Queues, Servers, Tasks
from .plain import Progress
from .policies import Policy
from .runs import RUNNING, Runs
from .setup import Setup
from .thrashing import Thrashing
from .workload import NEVER, Whole


@dataclass(frozen=True)
class CompiledOptions:
    """How the kernel is run, and its indices of servers."""

    #: Instants between two looks at the clock and the keyboard.
    instants: int = 20_000
    #: Servers of a block of the index of ratios: from 32 to 128 it makes little difference at 2,000 and 12,583 servers.
    block: int = 64
    #: Bytes of a line of the cache.
    line: int = 64
    #: Places in trees of servers that rounds remember, of all groups and trees together; a power of two. On Google's
    #: sample, of 517 users, a start of PS-DSF costs 11 microseconds with a 64th of them, 8 with a 16th, 4 with all.
    cursors: int = 2**14
    #: Of the columns that trees of servers have more than amounts: how much they lean towards one amount.
    lean: int = 3
    #: Up to this many servers a scan is faster than an index (`benchmarks/scheduling.py`),
    scan: int = 48
    #: and placements of up to this many servers are scanned.
    near: int = 48


#: What is used.
OPTIONS = CompiledOptions()

_SHARES = {"dominant": at.DOMINANT, "unweighted": at.UNWEIGHTED, "after": at.AFTER_TASK}
_VALUES = {"none": at.NO_PAIRS, "virtual": at.VIRTUAL, "per-server": at.PER_SERVER, "alignment": at.ALIGNMENT}


def knows(policy: Policy) -> bool:
    """Are all parts of a policy known here? One that a subclass has overridden is not."""
    parts = _parts(policy)
    return (
        parts["share"] in _SHARES
        and parts["score"] in ("first", "best")
        and parts["value"] in _VALUES
        and parts["among"] in ("all", "furthest")
        and parts["limit"] in ("none", "age")
    )


def _parts(policy: Policy) -> dict[str, Any]:
    names = ("share", "score", "value", "among", "limit")
    return {name: getattr(getattr(type(policy), name), "kernel", None) for name in names}


def run(
    setup: Setup,
    until: int = NEVER,
    progress: Progress | None = None,
    thrashing: Thrashing | None = None,
    index: bool | None = None,
) -> Runs:
    """What `plain.run` returns; `index`: find servers by an index, or by scans, instead of what is faster."""
    option = _options(setup, index)
    if thrashing is not None:
        option[at.SLOWS] = at.SLOWS_ALL if thrashing.slows == "all" else at.SLOWS_SHORT
        option[at.TRACKED] = True
    sv, qs, tasks = _servers(setup, option), _queues(setup, option), _tasks(setup, option)
    counter = np.zeros(at.COUNTERS, dtype=np.int64)
    counter[at.TOP] = len(qs.key) // 2 if option[at.SEATS] else 1
    counter[at.OPEN] = setup.size[setup.possible].sum()
    if option[at.PLACE] == at.BEST_INDEX:
        fill(sv, np.lexsort([np.arange(len(sv.ratio)), sv.ratio]), counter)
    parameter = np.zeros(2)
    parameter[at.FAIRNESS] = getattr(setup.policy, "fairness", 0.0)
    parameter[at.FACTOR] = 1.0 if thrashing is None else thrashing.factor
    interrupted = False
    try:
        given = option, parameter, counter, setup.size, until, OPTIONS.instants
        while (why := advance(sv, qs, tasks, *given)) != at.FINISHED:
            if why == at.GROW:
                tasks = _grown(tasks, int(counter[at.NRUNS] + 2 * (counter[at.OPEN] + counter[at.NHEAP])))
            if progress is not None:
                progress(int(counter[at.ENDED]))
    except KeyboardInterrupt:
        interrupted = True
    run = tasks.run[: counter[at.NRUNS]].T
    end, how = run[at.END].copy(), run[at.HOW].astype(np.int8)
    end[how == RUNNING] = NEVER
    stopped = until if until < NEVER and not interrupted else int(counter[at.TIME])
    return Runs(
        run[at.TASK].copy(), run[at.SERVER].copy(), run[at.START].copy(), end, how,
        stopped, int(counter[at.INSTANTS]), interrupted,
    )  # fmt: skip


def _options(setup: Setup, index: bool | None) -> Whole:
    parts, servers, amounts = _parts(setup.policy), setup.capacity.shape[0], setup.capacity.shape[1]
    option = np.zeros(at.OPTIONS, dtype=np.int64)
    option[at.SHARE], option[at.PAIR] = _SHARES[parts["share"]], _VALUES[parts["value"]]
    best = parts["score"] == "best" and amounts > 1
    by_index = servers > OPTIONS.scan if index is None else index
    if best:
        option[at.PLACE] = at.BEST_INDEX if by_index else at.BEST_SCAN
    else:
        option[at.PLACE] = at.FIRST_INDEX if by_index else at.FIRST_SCAN
    option[at.STRICT], option[at.LIMITED] = setup.policy.strict, setup.policy.limits
    option[at.FURTHEST] = parts["among"] == "furthest"
    option[at.TRACKED] = len(setup.changes[0]) > 0
    option[at.SEATS] = not setup.policy.strict and option[at.PAIR] in (at.NO_PAIRS, at.VIRTUAL)
    option[at.LINKED] = len(setup.before) > 0
    return option


def _lines(rows: int, columns: int) -> Whole:
    """A table of zeros that begins where a line of the cache does, so that short rows do not lie across two."""
    line, most = OPTIONS.line, rows * columns
    room = np.zeros(most + line // 8, dtype=np.int64)
    begin = -room.ctypes.data % line // 8
    return room[begin : begin + most].reshape(rows, columns)


def _power(count: Whole) -> Whole:
    """The least powers of two that are not less."""
    return np.left_shift(1, np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64))


def _servers(setup: Setup, option: Whole) -> Servers:
    s, (n, amounts) = setup, setup.capacity.shape
    table = _lines(n, at.SERVER_COLUMNS)
    table[:, at.THERE], table[:, at.HEAD] = s.there, -1
    free = np.where(s.there[:, None], s.capacity, -1)
    types = np.zeros(n, dtype=np.int64)
    if option[at.PAIR] == at.VIRTUAL:
        types = np.unique(s.capacity, axis=0, return_inverse=True)[1].reshape(-1)
    leaf = np.argsort(types, kind="stable")
    count = np.bincount(types)
    first, size = np.cumsum(count) - count, _power(count)
    base = 2 * (np.cumsum(size) - size)
    slots = max(OPTIONS.cursors // int(_power(np.array([len(size)]))[0]), 1)
    mix = _mix(setup)
    tree = np.full((2 * size.sum(), amounts + len(mix)), -at.BIG)
    table[:, at.TREE] = types
    table[leaf, at.SLOT] = np.arange(n) - first[types[leaf]]
    tree[base[types] + size[types] + table[:, at.SLOT]] = _mixed(free, mix)
    for t in range(len(size)):
        _maxima(tree[base[t] : base[t] + 2 * size[t]])
    near = [np.flatnonzero(row) if k and row.sum() <= OPTIONS.near else np.zeros(0, dtype=np.int64)
            for k, row in enumerate(s.workload.eligible)]  # fmt: skip
    with_index = option[at.PLACE] == at.BEST_INDEX
    pool = np.maximum(s.capacity.sum(axis=0), 1)
    ratio = np.full(n if with_index else 0, np.inf)
    if with_index:
        some = free[:, 0] > 0
        ratio[some] = free[some, 1] / free[some, 0]
    block = OPTIONS.block
    blocks = 2 * (-(-n // (block // 2))) + 4 if with_index else 1
    slower, none = bool(option[at.SLOWS]), np.zeros((0, 0), np.int64)
    return Servers(
        table, s.capacity.copy(), free.copy(), pool, np.ascontiguousarray(s.workload.eligible),
        np.arange(n), np.concatenate(near).astype(np.int64), from_sizes([len(each) for each in near]),
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((2, n), np.int64),
        np.zeros(n), np.zeros((1, amounts), np.int64), np.zeros(n, np.int64),
        tree, np.column_stack([base, size, first]), leaf.astype(np.int64),
        np.full((slots, 2), -1), np.zeros((slots, len(size)), np.int64), mix,
        np.zeros(blocks, np.int64), np.zeros((blocks, amounts - 1, block)), np.zeros((blocks, block), np.int64),
        np.zeros((blocks, amounts, block), np.int64), np.zeros(blocks, np.int64),
        np.zeros((blocks, amounts), np.int64), ratio, free.copy(), np.zeros((2, amounts)),
        np.zeros(n, np.int64), np.array(s.workload.capacity if slower else none), np.zeros(len(s.workload.resources)),
    )  # fmt: skip


def _mix(setup: Setup) -> Whole:
    """(more, amounts): factors that make amounts alike, and each times `OPTIONS.lean`; none where they overflow."""
    capacity = setup.capacity
    amounts, pool = capacity.shape[1], np.maximum(capacity.sum(axis=0), 1)
    alike = np.maximum(np.rint(pool.max() / pool), 1)
    largest = max(int(capacity.max(initial=1)), int(setup.demand.max(initial=1)))
    if amounts < 2 or alike.max() * OPTIONS.lean * largest > at.BIG / 2:
        return np.zeros((0, amounts), dtype=np.int64)
    return np.asarray(alike * np.vstack([np.ones(amounts), 1 + (OPTIONS.lean - 1) * np.eye(amounts)]), dtype=np.int64)


def _mixed(table: Whole, mix: Whole) -> Whole:
    """Amounts (rows, amounts) with the columns that `mix` adds: `min_r(mix[c, r] amount[r])`."""
    return np.column_stack([table, *((table * row).min(axis=1) for row in mix)])


def _maxima(tree: Whole) -> None:
    """Inner nodes of a tree from its leaves."""
    level = len(tree) // 2
    while level > 1:
        below = tree[level : 2 * level]
        tree[level // 2 : level] = np.maximum(below[0::2], below[1::2])
        level //= 2


def _queues(setup: Setup, option: Whole) -> Queues:
    s, q, amounts = setup, len(setup.weight), setup.capacity.shape[1]
    table = np.zeros((q, at.QUEUE_COLUMNS), dtype=np.int64)
    count = np.bincount(s.queue, minlength=q)
    size = _power(count)
    table[:, at.SINCE], table[:, at.SIZE], table[:, at.BASE] = -1, size, 2 * (np.cumsum(size) - size)
    table[:, at.FIRST], table[:, at.GROUPS] = np.cumsum(count) - count, count
    table[:, at.SEAT] = -1 if option[at.SEATS] else np.arange(q)
    leaves = int(_power(np.array([q]))[0])
    placed = (q, len(s.capacity), amounts) if s.policy.per_server else (0, 0, 0)
    sizes, shares = getattr(s.policy, "sizes", (1,)), getattr(s.policy, "shares", (1.0,))
    return Queues(
        table, np.zeros((q, len(s.total)), np.int64), s.total, s.weight.astype(float), np.zeros(q),
        np.zeros(placed, np.int64), np.full((2 * size.sum(), amounts), -at.BIG),
        np.full((2 * leaves, amounts), -at.BIG),
        np.full((2 * leaves, amounts if option[at.PAIR] == at.VIRTUAL else 1), np.inf), np.arange(q),
        np.array(sizes, dtype=np.int64), np.array(shares, dtype=float) / np.array(sizes),
        np.zeros((8, q + 1), np.int64), np.zeros((2, q + 1)), np.zeros(64, np.int64), np.zeros(64),
    )  # fmt: skip


def _tasks(setup: Setup, option: Whole) -> Tasks:
    s, w, slower = setup, setup.workload, bool(option[at.SLOWS])
    group = _lines(s.groups, at.GROUP_COLUMNS)
    group[:, at.QUEUE], group[:, at.USER], group[:, at.PLACEMENT] = s.queue, s.user, s.placement
    group[:, at.NEXT], group[:, at.AGAIN] = s.first_task, -1
    begin = np.searchsorted(s.queue, s.queue)
    group[:, at.LEAF] = np.arange(s.groups) - begin
    arriving = np.flatnonzero(s.possible)
    arriving = arriving[np.argsort(s.arrival[arriving], kind="stable")]
    links = [np.zeros(0, dtype=np.int64)] * 6
    if len(s.before):
        # What can never start is left out: the job before may end, it never comes.
        after, following = s.following
        some = np.concatenate([[0], np.cumsum(s.possible[following])])
        links = [s.arrival, s.job, s.before, s.tasks_of_job.copy(), some[after], following[s.possible[following]]]
    return Tasks(
        group, np.ascontiguousarray(_mixed(s.demand, _mix(setup))), np.ascontiguousarray(s.cost), np.array(w.duration),
        np.full(w.tasks if len(s.changes[0]) else 0, -1, dtype=np.int64), s.arrival[arriving], arriving,
        np.array(s.changes, dtype=np.int64), _lines(w.tasks + 16, at.RUN_COLUMNS), _lines(w.tasks + 64, 2),
        np.zeros(s.groups, np.int64),
        np.zeros(len(s.before), np.int64), np.zeros((w.tasks + 16 if slower else 0, at.PACE_COLUMNS)),
        np.array(w.demand[s.order] if slower else np.zeros((0, 0)), dtype=np.int64),
        *(np.array(one) for one in links),
    )  # fmt: skip


def _grown(tasks: Tasks, runs: int) -> Tasks:
    """Room for more runs."""
    run = _lines(runs + 16, at.RUN_COLUMNS)
    run[: len(tasks.run)] = tasks.run
    pace = np.zeros((len(run) if len(tasks.pace) else 0, at.PACE_COLUMNS))
    pace[: len(tasks.pace)] = tasks.pace
    return tasks._replace(run=run, pace=pace)
