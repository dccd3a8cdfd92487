"""`Queues`: a tree of weighted queues above the users of a cluster, and progressive filling in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.loops import bundle, compiled
from ..base.names import listed, short
from ._arrays import Array, Index, Mask, ratio, row_pointers
from ._validate import MOST, number
from .cluster import Cluster
from .criterion import Criterion, ShareRule, criterion

if TYPE_CHECKING:
    import pandas as pd

Combine = Literal["sum", "vector"]
#: Relative tolerance within which quotas, limits and targets count as attained, for rounding errors of sums over users.
ROUNDING = 1e-12
_KEYS = ("parent", "weight", "priority", "quota", "limit")


@dataclass(frozen=True)
class Queue:
    r"""Node of a tree of queues: an inner queue, or the place of a user.

    The users n below it have, for every resource r with an entry in `quota` or `limit`,

    .. math:: q_r \le \sum_n x_n d_{nr} \le l_r,

    the lower bound unless all users below that demand r have stopped at their limits.

    Parameters
    ----------
    parent : str or None
        Name of the parent queue; None: the root.
    weight : float or None
        Weight relative to siblings, > 0; None: 1, or for users the weight in the cluster.
    priority : float
        A node rises only when none of its siblings of higher priority can.
    quota : mapping of str to float
        Guaranteed amounts by resource, in resource units; resources without an entry have no guarantee.
    limit : mapping of str to float
        Largest amounts by resource, in resource units.

    >>> import fairopt as fo
    >>> tree = fo.Queues({"lab": fo.Queue(quota={"cpu": 4}), "ann": fo.Queue("lab")})
    >>> cluster = fo.Cluster([[6]], [[1], [1]], resources=["cpu"], users=["ann", "bob"])
    >>> fo.Tree(tree).solve(cluster).user_tasks.to_dict()
    {'ann': 5.0, 'bob': 1.0}
    """

    parent: str | None = None
    weight: float | None = None
    priority: float = 0.0
    quota: Mapping[str, float] = field(default_factory=dict)
    limit: Mapping[str, float] = field(default_factory=dict)


class Queues:
    r"""Tree of queues, whose leaves are the users of a cluster.

    Progressive filling raises levels from 0 with time. A node that rises by 1 raises its children, those of the highest
    priority among those that can still rise, in proportion to their weights, such that its own share increases by 1.
    The share of a queue is, by `combine`,

    .. math:: \sum_{n} \sigma_n \ \text{ (sum)}, \qquad
        \max_r \sum_n \sigma_n \frac{d_{nr}}{u_n C_r} \ \text{ (vector, over resources that are not exhausted)},

    over the users n below it, with shares :math:`\sigma_n = u_n x_n`. A user stops at its task limit, at a limit of an
    ancestor queue, or when more tasks of it would reduce those that another user has at that time. Quotas are filled
    first, those of the deepest queues before those of their ancestors, and the rest of the cluster last.

    Parameters
    ----------
    queues : mapping of str to Queue, or to mapping
        By name; a mapping has the fields of `Queue`. An entry with the name of a user places it in the tree, as in
        `{"ann": {"parent": "lab"}}`.
        Users without an entry are children of the root.

    Raises
    ------
    DataError
        A parent is missing, a queue is its own ancestor, or a number is invalid; the message names the queue.

    >>> import fairopt as fo
    >>> tree = fo.Queues({"lab": {"weight": 3}, "ann": {"parent": "lab"}, "bob": {"parent": "lab"}})
    >>> cluster = fo.Cluster([[8]], [[1], [1], [1]], users=["ann", "bob", "eve"])
    >>> fo.Tree(tree).solve(cluster).user_tasks.to_dict()
    {'ann': 3.0, 'bob': 3.0, 'eve': 2.0}
    """

    def __init__(self, queues: Mapping[str, Queue | Mapping[str, Any]]) -> None:
        if not isinstance(queues, Mapping):
            raise DataError(f"queues are {short(queues)}; give a mapping of names to Queue(parent=, weight=, ...)")
        self.queues = {str(name): _queue(str(name), one) for name, one in queues.items()}
        for name in self.queues:
            above: list[str] = []
            at: str | None = name
            while at is not None:
                if at not in self.queues:
                    raise DataError(f"queue {above[-1]!r} has the parent {at!r}, which is no queue", (above[-1],))
                if at in above:
                    raise DataError(f"queue {name!r} is below itself: {' -> '.join([*above, at])}", (name,))
                above.append(at)
                at = self.queues[at].parent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queues) and self.queues == other.queues

    def __hash__(self) -> int:
        return hash(tuple(self.queues))

    def __repr__(self) -> str:
        return f"Queues({listed(list(self.queues), 5)})"

    def __reduce__(self) -> tuple[type[Queues], tuple[dict[str, Queue]]]:
        return Queues, (self.queues,)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Entries by name, as mappings without default values; the format of `Queues` and of allocation files."""
        kept = {name: {key: getattr(one, key) for key in _KEYS} for name, one in self.queues.items()}
        return {
            name: {
                key: dict(value) if isinstance(value, Mapping) else value
                for key, value in one.items()
                if value not in (None, {}) and (key, value) != ("priority", 0)
            }
            for name, one in kept.items()
        }

    def lowered(self, factor: float) -> Queues:
        """The same tree with all quotas multiplied by a factor.

        >>> import fairopt as fo
        >>> fo.Queues({"lab": {"quota": {"cpu": 4}}}).lowered(0.5).to_dict()
        {'lab': {'quota': {'cpu': 2.0}}}
        """
        return Queues({name: replace(one, quota={what: factor * amount for what, amount in one.quota.items()})
                       for name, one in self.queues.items()})  # fmt: skip

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Queues:
        """Read a frame indexed by name, with columns such as `parent`, `weight`, `priority`, `quota cpu`, `limit cpu`.

        Missing values stand for the defaults.

        >>> import pandas as pd, fairopt as fo
        >>> rows = pd.DataFrame({"parent": [None, "lab"], "quota cpu": [4, None]}, index=["lab", "ann"])
        >>> fo.Queues.from_frame(rows).to_dict()
        {'lab': {'quota': {'cpu': 4.0}}, 'ann': {'parent': 'lab'}}
        """
        found: dict[str, dict[str, Any]] = {}
        for name, row in frame.iterrows():
            one: dict[str, Any] = found.setdefault(str(name), {})
            for column, value in row.items():
                if value is None or value == "" or value != value:
                    continue
                kind, _, resource = str(column).partition(" ")
                if resource:
                    one.setdefault(kind, {})[resource] = value
                else:
                    one[kind] = value
        return cls(found)

    @classmethod
    def load(cls, path: str | FilePath) -> Queues:
        """Read a TOML or JSON file with a table by queue, such as `[lab]`, `weight = 3`, `quota = { cpu = 4 }`."""
        path = FilePath(path)
        parse = files.parse_json if path.suffix.lower() == ".json" else files.parse_toml
        table = parse(files.read(path, "file of queues"), path)
        with files.inside(path):
            return cls(table)


def _queue(name: str, given: Queue | Mapping[str, Any]) -> Queue:
    if not isinstance(given, Queue):
        unknown = [key for key in given if key not in _KEYS] if isinstance(given, Mapping) else [short(given)]
        if unknown:
            raise DataError(f"queue {name!r} has {listed(unknown)}; its entries are {', '.join(_KEYS)}", (name,))
        given = Queue(**given)
    if given.parent is not None and not isinstance(given.parent, str):
        raise DataError(f"the parent of queue {name!r} is {short(given.parent)}; it must be a name", (name, "parent"))
    amounts = {}
    for key in ("quota", "limit"):
        table = getattr(given, key)
        if not isinstance(table, Mapping):
            raise DataError(f"the {key} of queue {name!r} is {short(table)}; give amounts by resource", (name, key))
        amounts[key] = {str(what): _number(name, f"{key} of {what}", amount) for what, amount in table.items()}
    weight = None if given.weight is None else _number(name, "weight", given.weight)
    if weight == 0:
        raise DataError(
            f"queue {name!r} has the weight 0; give it a lower priority than its siblings", (name, "weight")
        )
    return Queue(given.parent, weight, _number(name, "priority", given.priority, -np.inf), **amounts)


def _number(name: str, what: str, value: object, low: float = 0.0) -> float:
    wanted = "a finite number" if low < 0 else "a finite number >= 0"
    return number(value, f"the {what} of queue {name!r}", wanted, lambda one: max(low, -MOST) <= one <= MOST)


@dataclass(frozen=True, eq=False)
class TreeCriterion(Criterion):
    """Criterion of `Tree`: progressive filling of a tree of queues; `weight` is that of the first stage.

    Queues refer to users by their names in the cluster.
    """

    queues: Queues = field(default_factory=lambda: Queues({}))
    combine: Combine = "sum"

    def filling(self, cluster: Cluster, users: Index) -> Filling:
        """Progressive filling for the users of the given indices, which can run tasks."""
        return Filling(self.queues, cluster, self.share, self.combine, users)


def tree_criterion(
    cluster: Cluster, share: Array, queues: Queues, combine: Combine, share_rule: ShareRule = "unknown"
) -> TreeCriterion:
    """Criterion of a tree on a cluster, checked against its users and resources; `share` per task, (users,)."""
    if combine not in get_args(Combine):
        raise DataError(f"combine is {short(combine)}; it must be 'sum' or 'vector'")
    plain = criterion(cluster, share, np.inf, "servers", share_rule=share_rule).plain
    rule, everybody = TreeCriterion(**plain, queues=queues, combine=combine), np.arange(len(cluster.users))
    rates = rule.filling(cluster, everybody).rates(np.ones(len(everybody), dtype=bool))
    rates *= np.where(np.isfinite(rule.share), rule.share, 0.0)  # the share of users that can run no tasks is infinite
    # A user of lower priority does not rise at first, so that its weight in the first stage is arbitrary.
    return replace(rule, weight=np.where(rates > 0, rates, cluster.weight))


@bundle
class Bounds(NamedTuple):
    """Upper bounds on resources used by queues, a row each: `sum_n use[n] x[n] <= most` over the users of a row.

    Attributes
    ----------
    start : (rows + 1,), row pointers
    user : (entries,), users below the row's queue that use its resource
    use : (entries,), their demand per task
    most : (rows,)
    """

    start: Index
    user: Index
    use: Array
    most: Array


@bundle
class _Nodes(NamedTuple):
    """The tree: groups from the root, 0, then users, each in the order of the arrays below.

    Attributes
    ----------
    parent, weight, priority : (nodes,)
    order : nodes but the root, the deepest first
    share : (users,), per task
    vector : (users, resources), parts of the pool per unit of share; without rows if shares add up
    """

    parent: Index
    weight: Array
    priority: Array
    order: Index
    share: Array
    vector: Array


class Path(NamedTuple):
    """Progressive filling up to some tasks: a row for each event, at which one or several users stop.

    Attributes
    ----------
    time : (events,)
    left : (events, tables), cost of the tasks that users will still get, by table of costs per task
    held : (events, rows of limits), amounts used at each event
    stop : (users,), the event at which a user stops
    rate : (users,), its tasks per unit of time before that
    tasks : (users,)
    """

    time: Array
    left: Array
    held: Array
    stop: Index
    rate: Array
    tasks: Array


class Filling:
    """Progressive filling of the tree by the users of a cluster that can run tasks; arrays (users,) are of these.

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
    limited : names of the rows of limits, such as "'gpu' of queue 'lab'"

    Raises
    ------
    DataError
        A user is the parent of a queue, or an entry names an unknown resource.
    """

    def __init__(self, queues: Queues, cluster: Cluster, share: Array, combine: Combine, users: Index) -> None:
        everybody = set(cluster.users)
        names = [name for name in queues.queues if name not in everybody]
        place: dict[str | None, int] = {None: 0} | {name: k + 1 for k, name in enumerate(names)}
        leaves = [cluster.users[n] for n in users]
        entries = [Queue(), *(queues.queues[name] for name in names), *(queues.queues.get(u, Queue()) for u in leaves)]
        for one in queues.queues.values():
            if one.parent not in place:
                raise DataError(f"{one.parent!r} is a user of the cluster, and the parent of a queue; users are leaves")
        parent: Index = np.array([place[one.parent] for one in entries])
        given = np.append(np.ones(len(names) + 1), cluster.weight[users])
        depth = np.zeros(len(entries), dtype=np.intp)
        for k in range(1, len(entries)):
            at = k
            while at:
                at, depth[k] = parent[at], depth[k] + 1
        shares = share[users]
        parts = ratio(cluster.demand[users] / shares[:, None], cluster.pooled_capacity)
        self._nodes = _Nodes(
            parent,
            np.array([w if one.weight is None else one.weight for one, w in zip(entries, given, strict=True)]),
            np.array([one.priority for one in entries]),
            np.argsort(-depth, kind="stable")[:-1],
            shares,
            np.ascontiguousarray(parts) if combine == "vector" else parts[:0],
        )
        self._names, self._entries, self._demand = [*names, *leaves], entries, cluster.demand[users]
        self._index = {resource: r for r, resource in enumerate(cluster.resources)}
        self._below: list[list[int]] = [[] for _ in entries]
        for n in range(len(leaves)):
            at = len(names) + 1 + n
            while at:
                self._below[at].append(n)
                at = int(parent[at])
        self.limits, self.limited = self._bounds("limit", range(1, len(entries)))
        #: By depth, the deepest first: users below queues with quotas, their bounds, and the names of these.
        self._guarantees: list[tuple[Mask, Bounds, list[str]]] = []
        for level in range(depth.max(initial=0), 0, -1):
            if some := [k for k in np.flatnonzero(depth == level).tolist() if entries[k].quota]:
                quota, said = self._bounds("quota", some)
                members = np.zeros(len(leaves), dtype=bool)
                members[quota.user] = True  # a user that demands none of these resources has no guarantee
                self._guarantees.append((members, quota, said))

    def _bounds(self, kind: str, nodes: Iterable[int]) -> tuple[Bounds, list[str]]:
        start, users, use, most, said = [0], [], [], [], []
        for k in nodes:
            for resource, amount in getattr(self._entries[k], kind).items():
                name = self._names[k - 1]
                if resource not in self._index:
                    known = ", ".join(self._index)
                    raise DataError(
                        f"the {kind} of queue {name!r} is of {resource!r}, no resource here; known: {known}"
                    )
                needs = self._demand[:, self._index[resource]]
                some = [n for n in self._below[k] if needs[n] > 0]
                users += some
                use += needs[some].tolist()
                start.append(len(users))
                most.append(amount)
                said.append(f"{resource!r} of queue {name!r}")
        return Bounds(
            np.array(start), np.array(users, dtype=np.intp), np.array(use, dtype=float), np.array(most, dtype=float)
        ), said

    def rates(self, rising: Mask) -> Array:
        """Tasks per unit of time of users if `rising`, (users,), can still rise; users of lower priority have 0."""
        return np.asarray(_rates(self._nodes, rising))

    def held(self, tasks: Array) -> Array:
        """Amounts that count towards each limit, (rows,), at tasks (users,)."""
        row = np.repeat(np.arange(len(self.limits.most)), np.diff(self.limits.start))
        return np.asarray(
            np.bincount(row, self.limits.use * tasks[self.limits.user], len(self.limits.most)), dtype=float
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
            A user with positive cost stops when a budget is spent. Without budgets `most` are the final tasks.
        refuse : function of users and names of quotas, optional
            Called with the users, (users,), that a budget stops below a quota.
        """
        size, final = len(most), budget is None
        x, alive = np.zeros(size), np.ones(size, dtype=bool)
        stop, rate = np.zeros(size, dtype=np.intp), self.rates(alive)
        limits = self.limits._replace(most=np.full(len(self.limits.most), np.inf)) if final else self.limits
        table, user = np.nonzero(cost)
        most_spent = np.full(len(cost), np.inf) if budget is None else budget
        budgets = Bounds(row_pointers(table, len(cost)), user, cost[table, user], most_spent)
        goal = most if final else np.zeros(size)  # without final tasks nothing is known of what is left
        nothing, _ = self._bounds("quota", ())
        parts = [(np.zeros(1), (cost @ goal)[None], np.zeros((1, len(limits.most))))]
        for members, quota, names in [*self._guarantees, (np.ones(size, dtype=bool), nothing, [])]:
            now, before = float(parts[-1][0][-1]), sum(len(each[0]) for each in parts)
            room = 2 * size + len(quota.most) + len(limits.most) + len(cost) + 1
            events = np.zeros(room), np.zeros((room, len(cost))), np.zeros((room, len(limits.most)))
            short, rows = np.zeros(size, dtype=bool), (quota, limits, budgets)
            count = _fill(self._nodes, members, rows, most, goal, x, alive, stop, rate, events, short, now, before)
            if count:
                parts.append((events[0][:count], events[1][:count], events[2][:count]))
            if refuse is not None and short.any():
                ends = zip(quota.start[:-1], quota.start[1:], names, strict=True)
                refuse(short, [name for low, high, name in ends if short[quota.user[low:high]].any()])
        times, costs, amounts = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Path(times, costs, amounts, stop, rate, x)


@compiled
def _rates(nodes, rising):  # type: ignore[no-untyped-def]
    """Tasks per unit of time, (users,): see `Filling.rates`."""
    size, users = len(nodes.parent), len(rising)
    groups = size - users
    part, rate = np.zeros(size), np.ones(size)
    top, norm = np.full(groups, -np.inf), np.zeros(groups)
    for k in nodes.order:
        if rising[k - groups] if k >= groups else top[k] > -np.inf:
            part[k] = nodes.weight[k]
            top[nodes.parent[k]] = max(top[nodes.parent[k]], nodes.priority[k])
    for k in nodes.order:  # of siblings only those of the highest priority that can rise
        if nodes.priority[k] < top[nodes.parent[k]]:
            part[k] = 0.0
    if len(nodes.vector):
        resources = nodes.vector.shape[1]
        rise = np.zeros((groups, resources))
        for k in nodes.order:
            for r in range(resources):
                if k < groups:
                    norm[k] = max(norm[k], rise[k, r])
            for r in range(resources):
                if k >= groups:
                    rise[nodes.parent[k], r] += part[k] * nodes.vector[k - groups, r]
                elif norm[k] > 0:
                    rise[nodes.parent[k], r] += part[k] * rise[k, r] / norm[k]
        norm[0] = rise[0].max()
    else:
        for k in nodes.order:
            norm[nodes.parent[k]] += part[k]
    for j in range(len(nodes.order)):
        k = nodes.order[len(nodes.order) - 1 - j]
        above = nodes.parent[k]
        rate[k] = rate[above] * part[k] / norm[above] if part[k] > 0 and norm[above] > 0 else 0.0
    return rate[groups:] / nodes.share


@compiled
def _amounts(bounds, tasks):  # type: ignore[no-untyped-def]
    """Amounts of rows, (rows,), at tasks or rates (users,)."""
    total = np.zeros(len(bounds.most))
    for row in range(len(total)):
        for e in range(bounds.start[row], bounds.start[row + 1]):
            total[row] += bounds.use[e] * tasks[bounds.user[e]]
    return total


@compiled
def _until(bounds, amounts, rate):  # type: ignore[no-untyped-def]
    """Time until some row attains its bound, from `amounts`, (rows,), at rates (users,)."""
    speed, step = _amounts(bounds, rate), np.inf
    for k in range(len(speed)):
        if speed[k] > 0:
            step = min(step, (bounds.most[k] - amounts[k]) / speed[k])
    return step


@compiled
def _bound(bounds, amounts, users):  # type: ignore[no-untyped-def]
    """Mask of users, (users,), in rows that have attained their bound."""
    result = np.zeros(users, dtype=np.bool_)
    for row in range(len(amounts)):
        if amounts[row] >= bounds.most[row] * (1 - ROUNDING):
            for e in range(bounds.start[row], bounds.start[row + 1]):
                result[bounds.user[e]] = True
    return result


@compiled
def _fill(nodes, members, rows, most, goal, x, alive, stop, rate_at, events, short, now, before):  # type: ignore[no-untyped-def]
    """Fill among `members`, (users,), until none of them can rise or all their quotas are reached: number of events.

    `rows` are the bounds of quotas, limits and budgets, `events` times, costs up to `goal`, and amounts of limits.
    Tasks `x`, `alive`, `stop`, `rate_at`, (users,), and events are written in place; `short` is true of users that a
    budget stops below their quota. `now` and `before` are the time and the number of earlier events.
    """
    size, count = len(x), 0
    quota, limits, budgets = rows
    time, left, held = events
    given, used, paid = _amounts(quota, x), _amounts(limits, x), _amounts(budgets, x)
    while True:
        may = alive & members & ~_bound(quota, given, size)
        if not may.any():
            return count
        rate = _rates(nodes, may)
        # A user with all its tasks stops only when it could rise: until then siblings of higher priority rise.
        ended = (rate > 0) & (x >= most * (1 - ROUNDING))
        step = 0.0 if ended.any() else np.inf
        for n in range(size):
            if rate[n] > 0:
                step = min(step, (most[n] - x[n]) / rate[n])
        step = max(min(step, _until(quota, given, rate), _until(limits, used, rate), _until(budgets, paid, rate)), 0.0)
        now += step
        for n in range(size):
            if rate[n] > 0:
                x[n] = min(x[n] + step * rate[n], most[n])
                if x[n] >= most[n] * (1 - ROUNDING):
                    x[n], ended[n] = most[n], ended[n] or len(quota.most) == 0
        given, used, paid = _amounts(quota, x), _amounts(limits, x), _amounts(budgets, x)
        time[count], left[count], held[count] = now, _amounts(budgets, goal - x), used
        ended |= _bound(limits, used, size)
        exhausted = _bound(budgets, paid, size)
        if len(quota.most):
            short |= may & exhausted & ~ended & (x < most)
            short &= ~_bound(quota, given, size)
        ended = alive & (ended | exhausted)
        stop[ended], rate_at[ended] = before + count, rate[ended]
        alive &= ~ended
        count += 1
