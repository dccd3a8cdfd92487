"""Progressive filling of a tree of queues, event by event, and the criterion that is defined by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

import numpy as np

from ..base.errors import DataError
from ..base.loops import bundle, compiled
from ..base.names import short
from ._arrays import Array, Index, Mask, from_sizes, ratio
from .cluster import Cluster
from .criterion import Criterion, ShareRule, criterion
from .queues import Combine, Queue, Queues

#: Relative tolerance within which quotas, limits and targets count as attained, for rounding errors of sums over users.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TreeCriterion(Criterion):
    """Criterion of `Tree`: progressive filling of a tree of queues; `weight` is the increase of shares at the start.

    Queues refer to users by their names in the cluster.
    """

    queues: Queues = field(default_factory=lambda: Queues({}))
    combine: Combine = "sum"

    def filling(self, cluster: Cluster, users: Index) -> Filling:
        """Progressive filling for the users with the given indices, which can run tasks."""
        return Filling(self.queues, cluster, self.share, self.combine, users)


def tree_criterion(
    cluster: Cluster, share: Array, queues: Queues, combine: Combine, share_rule: ShareRule = "unknown"
) -> TreeCriterion:
    """Criterion of a tree on a cluster, with shares per task `share`, (users,).

    Raises `DataError` if the tree does not fit the users and resources of the cluster, or `combine` is unknown.
    """
    if combine not in get_args(Combine):
        raise DataError(f"combine is {short(combine)}; it must be 'sum' or 'vector'")
    plain = criterion(cluster, share, np.inf, "servers", share_rule=share_rule).plain
    rule, everybody = TreeCriterion(**plain, queues=queues, combine=combine), np.arange(len(cluster.users))
    rates = rule.filling(cluster, everybody).rates()
    # The share per task of users that can run nothing is infinite.
    rates = rates * np.where(np.isfinite(rule.share), rule.share, 0.0)
    # The share of a user of lower priority does not increase at the start, so that its weight there is arbitrary.
    return replace(rule, weight=np.where(rates > 0, rates, cluster.weight))


class Bounds(NamedTuple):
    """Upper bounds on resources used by queues, a row each: `sum_n use[n] x[n] <= most` over the users of a row.

    Attributes
    ----------
    node, resource : (rows,), place in the tree and resource of each row
    names : names of the rows, such as "'gpu' of queue 'lab'"
    start : (rows + 1,), row pointers
    user : (entries,), users below the row's queue that use its resource
    use : (entries,), demand of the user per task
    most : (rows,), upper bounds
    """

    node: Index
    resource: Index
    names: list[str]
    start: Index
    user: Index
    use: Array
    most: Array

    @property
    def row(self) -> Index:
        """The row of each entry, (entries,)."""
        return np.repeat(np.arange(len(self.most)), np.diff(self.start))


@bundle
class _Nodes(NamedTuple):
    """The tree in preorder: the root is 0, and the nodes below k are `k + 1` to `end[k] - 1`.

    Attributes
    ----------
    parent : (nodes,), index of the parent, -1 for the root
    end, weight, priority : (nodes,)
    user : (nodes,), index of the user at a leaf, -1 for groups
    share : (users,), share per task
    pool : (resources,), inverse capacities of the cluster; (0,) if shares add up
    """

    parent: Index
    end: Index
    weight: Array
    priority: Array
    user: Index
    share: Array
    pool: Array


@bundle
class _State(NamedTuple):
    """State of a filling. The clock of a group is the increase of its children's shares per weight.

    Attributes
    ----------
    tasks, most : (users,), current tasks, and upper bounds on tasks
    alive : (users,), False for users that have stopped
    can : (nodes,), whether the share of a user below a node can increase
    runs : (nodes,), whether a node's share increases with that of its parent
    clock : (nodes + 1,), clocks of nodes, up to date for nodes visited at the current time, which is the last entry
    seen : (nodes,), clock of the parent when the node was last visited
    ahead : (nodes,), increase of the parent's clock after `seen` until the next event at or below a running node
    event : (nodes,), the child with that event, the node itself if it is a leaf that has all its tasks then, and
        -1 - r if its use of resource r attains the bound
    norm : (nodes,), increase of a group's share per unit of its clock
    speed : (nodes, resources + tables), amounts of resources and costs by tables per unit of share
    used, bound : (nodes, resources), amounts used by users below nodes, and upper bounds on these amounts
    stop, cut, rate : (users,), see `Path`
    """

    tasks: Array
    most: Array
    alive: Mask
    can: Mask
    runs: Mask
    clock: Array
    seen: Array
    ahead: Array
    event: Index
    norm: Array
    speed: Array
    used: Array
    bound: Array
    stop: Index
    cut: Index
    rate: Array


class Path(NamedTuple):
    """Progressive filling up to some tasks: a row for each event, at which one or several users stop.

    Attributes
    ----------
    time : (events,), time of each event
    left : (events, tables), cost of the tasks that users will still get, by table of costs per task
    held : (events, rows of limits), amounts that count towards each limit, at each event
    stop : (users,), index of the event at which a user stops
    cut : (users,), index of the table whose budget stops the user, else -1
    rate : (users,), tasks of the user per unit of time before it stops
    tasks : (users,), final tasks
    """

    time: Array
    left: Array
    held: Array
    stop: Index
    cut: Index
    rate: Array
    tasks: Array


class Filling:
    """Progressive filling of the tree by the users of a cluster that can run tasks; arrays (users,) are of these users.

    Parameters
    ----------
    queues : Queues
    cluster : Cluster
    share : (all users,), share per task
    combine : "sum" or "vector"
    users : indices of users that can run tasks

    Attributes
    ----------
    limits : Bounds

    Raises
    ------
    DataError
        A user is the parent of a queue, or an entry names an unknown resource.
    """

    def __init__(self, queues: Queues, cluster: Cluster, share: Array, combine: Combine, users: Index) -> None:
        everybody, default = set(cluster.users), Queue()
        names = [name for name in queues.queues if name not in everybody]
        place: dict[str | None, int] = {None: 0} | {name: k + 1 for k, name in enumerate(names)}
        leaves = [cluster.users[n] for n in users]
        entries = [default, *(queues.queues[name] for name in names), *(queues.queues.get(u, default) for u in leaves)]
        for one in queues.queues.values():
            if one.parent not in place:
                raise DataError(f"{one.parent!r} is a user of the cluster, and the parent of a queue; users are leaves")
        parent = [place[one.parent] for one in entries]
        # Sorted by their paths from the root, entries are in preorder.
        paths: list[list[int]] = [[k] if k else [] for k in range(len(entries))]
        for path in paths:
            while path and parent[path[0]]:
                path.insert(0, parent[path[0]])
        order = np.array(sorted(range(len(entries)), key=paths.__getitem__))
        size = np.ones(len(entries), dtype=np.intp)  # number of entries of each subtree
        for k in order[:0:-1]:
            size[parent[k]] += size[k]
        entries, labels = [entries[k] for k in order], ["", *names, *leaves]
        by_default = np.append(np.ones(len(names) + 1), cluster.weight[users])[order]
        weights = [w if one.weight is None else one.weight for one, w in zip(entries, by_default, strict=True)]
        self._nodes = _Nodes(
            parent=np.where(order > 0, np.argsort(order)[np.array(parent)[order]], -1),
            end=np.arange(len(order)) + size[order],
            weight=np.array(weights),
            priority=np.array([one.priority for one in entries]),
            user=np.where(order > len(names), order - len(names) - 1, -1),
            share=share[users],
            pool=ratio(1.0, cluster.pooled_capacity) if combine == "vector" else np.zeros(0),
        )
        self._demand, self._resources = cluster.demand[users], cluster.resources
        self._names = [labels[k] for k in order]
        self.limits = self._bounds("limit", {k: one.limit for k, one in enumerate(entries) if one.limit})
        # Quotas are met level by level, from the deepest. A quota of 0 guarantees nothing; as a bound, users without
        # tasks would attain it at once.
        by_level: dict[int, dict[int, dict[str, float]]] = {}
        for k, one in enumerate(entries):
            if positive := {resource: amount for resource, amount in one.quota.items() if amount > 0}:
                by_level.setdefault(len(paths[order[k]]), {})[k] = positive
        self._quotas = [self._bounds("quota", by_level[level]) for level in sorted(by_level, reverse=True)]

    def _bounds(self, kind: str, given: Mapping[int, Mapping[str, float]]) -> Bounds:
        """Bounds of nodes of the tree, given as amounts by resource; an unknown resource raises `DataError`."""
        node, resource, names, users, most = [], [], [], [np.zeros(0, dtype=np.intp)], []
        for k, what, amount in ((k, what, amount) for k, amounts in given.items() for what, amount in amounts.items()):
            if what not in self._resources:
                known = ", ".join(self._resources)
                raise DataError(
                    f"the {kind} of queue {self._names[k]!r} is of {what!r}, no resource here; known: {known}"
                )
            below, r = self._nodes.user[k : self._nodes.end[k]], self._resources.index(what)
            below = below[below >= 0]
            users.append(below[self._demand[below, r] > 0])
            node.append(k)
            resource.append(r)
            names.append(f"{what!r} of queue {self._names[k]!r}")
            most.append(amount)
        start, user = from_sizes([len(one) for one in users[1:]]), np.concatenate(users)
        row_resource = np.array(resource, np.intp)
        use = self._demand[user, np.repeat(row_resource, np.diff(start))]
        return Bounds(np.array(node, np.intp), row_resource, names, start, user, use, np.array(most, float))

    def rates(self) -> Array:
        """Tasks per unit of time at the start, (users,); 0 for users of lower priority."""
        at = self._state(np.ones(len(self._demand)), np.zeros((0, len(self._demand))))
        _rates(self._nodes, at)
        return at.rate

    @staticmethod
    def held(bounds: Bounds, tasks: Array) -> Array:
        """Amounts that count towards each bound, (rows,), at tasks (users,)."""
        return np.asarray(np.bincount(bounds.row, bounds.use * tasks[bounds.user], len(bounds.most)), dtype=float)

    def _table(self, bounds: Bounds) -> Array:
        """Bounds of all nodes, infinite where there are none, (nodes, resources)."""
        result = np.full((len(self._nodes.parent), self._demand.shape[1]), np.inf)
        result[bounds.node, bounds.resource] = bounds.most
        return result

    def _state(self, most: Array, cost: Array) -> _State:
        """State without tasks; users may have `most` tasks, (users,), each of `cost`, (tables, users)."""
        users, nodes, resources = len(most), len(self._nodes.parent), self._demand.shape[1]
        is_leaf, speed = self._nodes.user >= 0, np.zeros((nodes, resources + len(cost)))
        per_share = np.hstack([self._demand, cost.T]) / self._nodes.share[:, None]
        speed[is_leaf] = per_share[self._nodes.user[is_leaf]]
        return _State(
            tasks=np.zeros(users),
            most=most,
            alive=np.ones(users, dtype=bool),
            can=np.zeros(nodes, dtype=bool),
            runs=np.zeros(nodes, dtype=bool),
            clock=np.zeros(nodes + 1),
            seen=np.zeros(nodes),
            ahead=np.zeros(nodes),
            event=np.zeros(nodes, dtype=np.intp),
            norm=np.ones(nodes),
            speed=speed,
            used=np.zeros((nodes, resources)),
            bound=np.full((nodes, resources), np.inf),
            stop=np.zeros(users, dtype=np.intp),
            cut=np.full(users, -1),
            rate=np.zeros(users),
        )

    def path(
        self,
        most: Array,
        cost: Array,
        budget: Array | None = None,
        refuse: Callable[[Mask, list[str]], None] | None = None,
    ) -> Path:
        """Fill until every user stops, at `most` tasks, (users,), at a limit, or where a budget is exhausted.

        Parameters
        ----------
        cost : (tables, users), cost of a task
        budget : (tables,), optional
            A user with positive cost stops when a budget is exhausted. Without budgets `most` are the final tasks.
        refuse : function of users and names of quotas, optional
            Called with the mask of users, (users,), that a budget stops before a quota is met.
        """
        at, rows, count, final = self._state(most, cost), self.limits, 1, budget is None
        limit = at.bound.copy() if final else self._table(rows)
        budget = np.full(len(cost), np.inf) if budget is None else budget.copy()
        every = [*self._quotas, self._bounds("quota", {})]
        room = (len(every) + 1) * (len(most) + len(rows.most) + len(self._names)) + len(cost) + 1
        events = np.zeros(room), np.zeros((room, len(cost))), np.zeros((room, len(rows.most)))
        for quotas in every:
            alive, quota, members = at.alive.copy(), self._table(quotas), np.full(len(most), quotas is every[-1])
            members[quotas.user] = True  # a user that demands no resource of a quota takes no part in this stage
            if final:  # the given final tasks have rounding errors, with which they may miss a quota
                quota *= 1 - ROUNDING
            at.bound[:] = np.minimum(quota, limit)
            count = _fill(self._nodes, at, members, quota < limit, rows.node, rows.resource, budget, events, count)
            met = self.held(quotas, at.tasks) >= quotas.most * (1 - ROUNDING)
            stuck = alive & ~at.alive & (at.cut >= 0)
            stuck[quotas.user[met[quotas.row]]] = False
            if refuse is not None and (unmet := np.unique(quotas.row[stuck[quotas.user]])).size:
                refuse(stuck & members, [quotas.names[k] for k in unmet])
        time, paid, held = (one[:count] for one in events)
        # The cost still to come is a sum of later payments, since rounding could make a difference of totals zero.
        left = np.zeros(paid.shape)
        left[:-1] = np.cumsum(paid[:0:-1], axis=0)[::-1]
        return Path(time, left, held, at.stop, at.cut, at.rate, at.tasks)


@compiled(inner=True)
def _begin(nodes, at, members):  # type: ignore[no-untyped-def]
    """Let the shares of `members`, (users,), increase, except users that have stopped."""
    at.runs[:], at.runs[0] = False, True
    for j in range(len(nodes.end)):
        k = len(nodes.end) - 1 - j
        if nodes.user[k] >= 0:
            at.can[k] = members[nodes.user[k]] and at.alive[nodes.user[k]]
        _refresh(nodes, at, k)


@compiled
def _rates(nodes, at):  # type: ignore[no-untyped-def]
    """Write the rates of users before any user stops into the state `at`."""
    _begin(nodes, at, at.alive)
    for k in range(len(nodes.end)):
        if nodes.user[k] >= 0:
            at.rate[nodes.user[k]] = _rate(nodes, at, k)


@compiled(inner=True)
def _rate(nodes, at, leaf):  # type: ignore[no-untyped-def]
    """Tasks per unit of time of the user at a leaf."""
    rate, k = 1 / nodes.share[nodes.user[leaf]], leaf
    while k > 0:
        rate *= nodes.weight[k] / at.norm[nodes.parent[k]] if at.runs[k] else 0.0
        k = nodes.parent[k]
    return rate


@compiled(inner=True)
def _visit(nodes, at, k):  # type: ignore[no-untyped-def]
    """Update the clock, tasks and use of a node whose parent is up to date."""
    clock = at.clock[nodes.parent[k]]
    rise = (clock - at.seen[k]) * nodes.weight[k] if at.runs[k] else 0.0
    at.seen[k] = clock
    at.clock[k] += rise / at.norm[k]
    if nodes.user[k] >= 0:
        at.tasks[nodes.user[k]] += rise / nodes.share[nodes.user[k]]
    for r in range(at.used.shape[1]):
        at.used[k, r] += rise * at.speed[k, r]


@compiled(inner=True)
def _refresh(nodes, at, k):  # type: ignore[no-untyped-def]
    """Find the next event at or below a node that is up to date."""
    n = nodes.user[k]
    if n >= 0:
        at.event[k], rise = k, (at.most[n] - at.tasks[n]) * nodes.share[n]
    else:
        rise = _combine(nodes, at, k)
    for r in range(at.used.shape[1]):
        if at.speed[k, r] > 0 and at.bound[k, r] - at.used[k, r] < rise * at.speed[k, r]:
            at.event[k], rise = -1 - r, (at.bound[k, r] - at.used[k, r]) / at.speed[k, r]
    at.ahead[k] = rise / nodes.weight[k]


@compiled(inner=True)
def _combine(nodes, at, k):  # type: ignore[no-untyped-def]
    """Increase of a group's share until the next event below it; also finds which children increase, and how fast."""
    top, soon, total, c = -np.inf, np.inf, 0.0, k + 1
    while c < nodes.end[k]:
        top, c = max(top, nodes.priority[c]) if at.can[c] else top, nodes.end[c]
    at.can[k], c = top > -np.inf, k + 1
    for r in range(at.speed.shape[1]):
        at.speed[k, r] = 0.0
    while c < nodes.end[k]:
        runs = at.can[c] and nodes.priority[c] == top
        if runs:
            if not at.runs[c]:
                at.seen[c] = at.clock[k]
            total += 0.0 if len(nodes.pool) else nodes.weight[c]
            for r in range(at.speed.shape[1]):
                at.speed[k, r] += nodes.weight[c] * at.speed[c, r]
            if at.seen[c] + at.ahead[c] < soon:
                soon, at.event[k] = at.seen[c] + at.ahead[c], c
        at.runs[c], c = runs, nodes.end[c]
    for r in range(len(nodes.pool)):
        total = max(total, at.speed[k, r] * nodes.pool[r])
    if total > 0:
        at.norm[k] = total
        for r in range(at.speed.shape[1]):
            at.speed[k, r] /= total
    return (soon - at.clock[k]) * total if total > 0 else np.inf


@compiled(inner=True)
def _stop(nodes, at, quota, k, r, cut, event):  # type: ignore[no-untyped-def]
    """Stop users at or below node k who demand resource r, or have a cost in table `cut`; all users if both are -1."""
    column = at.used.shape[1] + cut if cut >= 0 else r
    for j in range(k, nodes.end[k]):
        n = nodes.user[j]
        _visit(nodes, at, j)
        if n < 0 or not at.alive[n] or (column >= 0 and not at.speed[j, column] > 0):
            continue
        if r < 0 or not quota[k, r]:
            at.stop[n], at.cut[n], at.rate[n], at.alive[n] = event, cut, _rate(nodes, at, j), False
        at.can[j] = False
    if r >= 0:
        at.bound[k, r] = np.inf
    for j in range(nodes.end[k] - k):
        _refresh(nodes, at, nodes.end[k] - 1 - j)
    while k > 0:
        k = nodes.parent[k]
        _refresh(nodes, at, k)


@compiled(visited=1 / 8)
def _fill(nodes, at, members, quota, node, resource, budget, events, count):  # type: ignore[no-untyped-def]
    """Fill for `members`, (users,), until no share can increase, all quotas of members are met, or `events` is full.

    Returns the number of events.

    `quota`, (nodes, resources), is True where a bound is a quota, at which users stop for this stage only.
    `node` and `resource` give the limits whose amounts are recorded. `events`, of which `count` have occurred, are
    times, costs paid since the previous event, which reduce the budgets, and amounts of limits.
    """
    resources, (time, paid, held) = at.used.shape[1], events
    _begin(nodes, at, members)
    while at.can[0] and count < len(time):
        step, cut, k, r = at.ahead[0], -1, 0, -1
        for t in range(len(budget)):
            if at.speed[0, resources + t] > 0 and budget[t] < step * at.speed[0, resources + t]:
                step, cut = budget[t] / at.speed[0, resources + t], t
        step = max(step, 0.0)
        at.clock[-1] += step
        for t in range(len(budget)):
            paid[count, t] = step * at.speed[0, resources + t]
            budget[t] -= paid[count, t]
        _visit(nodes, at, 0)
        if cut < 0:
            while at.event[k] > k:
                k = at.event[k]
                _visit(nodes, at, k)
            r = -1 - at.event[k] if at.event[k] < 0 else -1
            if r < 0:
                at.tasks[nodes.user[k]] = at.most[nodes.user[k]]
        _stop(nodes, at, quota, k, r, cut, count)
        time[count] = at.clock[-1]
        for row in range(len(node)):
            held[count, row] = at.used[node[row], resource[row]]
        count += 1
    return count
