"""`Snapshot`: the result of readers and generators of clusters, and its construction from groups of tasks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..base.names import listed
from ..mechanisms.tree import Tree
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.queues import Combine, Queues
from ..result.allocation import Allocation

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?")
#: `Counter` with fractional values, which its type stubs do not permit.
Amounts = Any
#: Key of a queue: its kind in the source, followed by the parts of its name.
Key = tuple[str, ...]
#: Fields of `model.queues.Queue` by queue; parents are given by key, and the weight 0 marks queues that are served
#: last.
Entries = Mapping[Key, Mapping[str, Any]]
#: Reduction of the priority of a queue of weight 0, larger than any difference between stated priorities.
_BELOW = 2.0**32
#: Weight that stands for 0 in mechanisms without priorities, relative to the smallest positive weight.
_LAST = 1e-6
#: Relative tolerance in comparisons of a task with a capacity, as quantities are rounded.
_ROUNDED = 1e-9
_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {unit: 1024 ** (k + 1) for k, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
#: Largest accepted quantity: an exabyte in thousandths of a byte.
_MOST = Decimal(10) ** 21
GIB = Decimal(1024**3)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Cluster with its provenance.

    Parameters
    ----------
    cluster : Cluster
        Users, demands and servers.
    source : str
        Description in one line: trace or generator, instant, and sample.
    report : mapping of str to int
        Counts: rows read, malformed rows skipped, tasks, users and servers found and excluded.
    left_out : mapping of str to str
        Excluded users, each with the reason. Users that were merely not sampled are counted in `report` only.
    placement : (users, servers) array or None
        Tasks that use resources at this instant, including tasks that are being deleted; None if the source does not
        state them. A number of tasks is the allocated amount over the demand, and need not be an integer.
    waiting : mapping of str to mappings of str to float
        By user, the pending tasks, by the reason that the system states ("" if it states none). `cluster.max_tasks`
        includes them.
    capped : mapping of str to mappings of str to float
        By user, the tasks that could not run even on an empty cluster (larger than every eligible node, throttled,
        gated, beyond a quota), by reason. `cluster.max_tasks` excludes them.
    leaving : mapping of str to float
        By user, the tasks of `placement` that are being deleted. `cluster.max_tasks` excludes them.
    notes : tuple of str
        Remarks on running and wanted tasks, and on data of the source that a cluster cannot express.
    queues : Queues or None
        Tree of queues that the source declares, with users as leaves; None if the source declares no queues.
    combine : str
        How the scheduler of the source defines the share of a queue: see `Queues`.

    >>> import fairopt as fo
    >>> snapshot = fo.open_source("google-like?users=3&servers=5&seed=1")
    >>> isinstance(snapshot, fo.workloads.Snapshot), snapshot.cluster.shape
    (True, (3, 5, 2))
    """

    cluster: Cluster
    source: str
    report: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    placement: Array | None = None
    waiting: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    capped: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    leaving: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    queues: Queues | None = None
    combine: Combine = "sum"

    @cached_property
    def tree(self) -> tuple[Tree | None, tuple[str, ...]]:
        """Mechanism of the declared queues, and a remark if not all quotas can be met; (None, ()) without queues.

        If not all quotas can be met, they are multiplied by a common factor, the largest at which all can be met, which
        bisection finds with an error of at most 1/128.
        """
        if self.queues is None:
            return None, ()
        low, high, message = 0.0, 2.0, ""
        for _ in range(8):
            part = (low + high) / 2
            try:
                Tree(self.queues.lowered(part), combine=self.combine).solve(self.cluster, throw=False)
                low = part
            except DataError as error:
                high, message = part, f"Entitlements are for {{:.0%}} of each quota, since the {error}."
            if low == 1:
                break
        return Tree(self.queues.lowered(low), combine=self.combine), (message.format(low),) if message else ()

    @cached_property
    def running(self) -> Allocation | None:
        """Running tasks as an allocation; None if the source does not state running tasks.

        The allocation is flagged if tasks exceed capacities, for example after a change of nodes, or limits, for
        example while tasks are being deleted.
        """
        known = self.placement is not None
        return Allocation.of(self.cluster, self.placement, "running", throw=False) if known else None

    @property
    def dropped(self) -> dict[str, int]:
        """Positive counts of excluded data in `report`, without the words "left out" in their names."""
        counts = {what: count for what, count in self.report.items() if "left out" in what and count}
        return {what.replace(", left out", "").replace(" left out", ""): count for what, count in counts.items()}

    def __str__(self) -> str:
        n, i, r = self.cluster.shape
        counts = "".join(f"\n  {what}: {count:,}" for what, count in self.report.items())
        return f"{self.source}\n  {n} users, {i} servers, {r} resources{counts}"


@dataclass
class Shape:
    """Tasks of one owner with equal requests and placement constraints, which become a user of the cluster.

    A task is wanted if it runs and is not being deleted, or if it waits. Numbers of tasks are in units of `asks`: a
    task that uses twice this demand counts as two.

    Attributes
    ----------
    owner : str
        Namespace or account.
    asks : mapping of str to float
        Demand of one task by resource.
    eligible : tuple of bool
        Nodes that may run the tasks.
    weight : float
        Weight relative to the other children of `queue`.
    queue : Key or None
        Parent in the tree of queues; None: the root.
    held : Counter
        Running tasks by node, including tasks that are being deleted.
    leaving : float
        Number of tasks in `held` that are being deleted.
    waiting : Counter
        Tasks that wait, by the reason that the system states; "" if it states none.
    capped : Counter
        Tasks that could not run even on an empty cluster, by reason; not included in `waiting`.
    """

    owner: str
    asks: Mapping[str, float]
    eligible: tuple[bool, ...]
    weight: float = 1.0
    queue: Key | None = None
    held: Amounts = field(default_factory=Counter)
    leaving: float = 0.0
    waiting: Amounts = field(default_factory=Counter)
    capped: Amounts = field(default_factory=Counter)

    @property
    def wanted(self) -> float:
        """Number of wanted tasks: running, unless they are being deleted, and waiting."""
        return float(self.held.total() - self.leaving + self.waiting.total())

    def cap(self, most: float, reason: str) -> None:
        """Move waiting tasks to `capped` until at most `most` tasks are wanted; running tasks are not affected."""
        for why in list(self.waiting):
            moved = min(self.waiting[why], self.wanted - most)
            if moved > 0:
                self.waiting[why] -= moved
                self.capped[reason] += moved
        self.waiting = +self.waiting


def objects(found: object, key: str, path: Path, remedy: str) -> list[Any]:
    """List of objects under a key of a parsed file.

    Raises
    ------
    DataError
        There is no such list; the message has the remedy.
    """
    listed = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise DataError(f"{path} has no list {key!r} of objects; {remedy}")
    return listed


def quantity(value: object) -> Decimal:
    """Parse a quantity of Kubernetes exactly: `100m`, `1Gi`, `2e3`, `1.5`.

    Raises
    ------
    DataError
        The text is not a quantity, or the value is not in [0, 10^21].
    """
    return _amount(str(value))


@lru_cache(10_000)
def _amount(value: str) -> Decimal:
    found = _QUANTITY.fullmatch(value)
    if found is None:
        raise DataError(f"{value[:40]!r} is not a quantity, such as 500m, 2 or 1.5Gi")
    number, power, unit = found.groups()
    if power is not None and abs(int(power[1:])) > 30:
        raise DataError(f"the quantity {value[:40]!r} is beyond the range of numbers")
    amount = Decimal(number + (power or ""))
    if unit in _BINARY:
        amount *= _BINARY[unit]
    elif unit:
        amount = amount.scaleb(_UNITS[unit])
    if not 0 <= amount <= _MOST:
        raise DataError(f"the quantity {value[:40]!r} must be between 0 and 10^21")
    return amount


def of_shapes(
    shapes: Sequence[Shape], nodes: Sequence[str], has: Sequence[Mapping[str, float]], limited: bool, about: str,
    report: Mapping[str, int], separator: str, why: str, nobody: str, entries: Entries | None = None,
    combine: Combine = "sum",
) -> Snapshot:  # fmt: skip
    """Build the cluster of users with these shapes; users without requests or feasible nodes are excluded.

    Parameters
    ----------
    shapes : sequence of Shape
    nodes : sequence of str
        Names of nodes.
    has : sequence of mappings
        Capacities of each node. Resources without requests are omitted, except CPU, memory and pods.
    limited : bool
        Limit users to the tasks of their shapes.
    about : str
        Description of the source, with a placeholder for the number of users.
    report : mapping
        Counts of the source, for `Snapshot.report`.
    separator : str
        Text between owner and requests in names of users.
    why : str
        Reason why users without feasible nodes are excluded.
    nobody : str
        Error message if no user remains.
    entries : mapping of Key to mapping, optional
        Queues above the shapes; a missing queue has the default values. None: there are no queues.
    combine : str
        See `Snapshot`.
    """
    asked = {what for shape in shapes for what, amount in shape.asks.items() if amount}
    always = [what for what in ("cpu", "memory", "pods") if any(one.get(what) for one in has)]
    resources = sorted(asked.union(always), key=lambda what: (what == "pods", what not in ("cpu", "memory"), what))
    capacity = [[one.get(what, 0.0) for what in resources] for one in has]
    demand = np.array([[shape.asks.get(what, 0.0) for what in resources] for shape in shapes])
    eligible = np.array([shape.eligible for shape in shapes], dtype=bool)
    names = _names(shapes, separator)
    lacks = ["they ask for nothing" if not asks.any() else "" if may.any() else why
             for asks, may in zip(demand, eligible, strict=True)]  # fmt: skip
    kept = [n for n, reason in enumerate(lacks) if not reason]
    if not kept:
        raise DataError(nobody)
    some = {names[n]: shapes[n] for n in kept}
    place, placement, away = {name: i for i, name in enumerate(nodes)}, np.zeros((len(kept), len(nodes))), {}
    for (user, shape), row in zip(some.items(), placement, strict=True):
        for node in shape.held.keys() & place.keys():
            row[place[node]] = shape.held[node]
        away[user] = shape.held.total() - row.sum()
    limits = [_limit(shape, demand[n], np.array(capacity)[eligible[n]], resources, limited)
              for n, shape in zip(kept, some.values(), strict=True)]  # fmt: skip
    unlimited = bool(np.isinf(limits).all())
    queues, weights = _tree(some, entries or {}, resources)
    cluster = Cluster(
        capacity, demand[kept], weights, eligible[kept], None if unlimited else limits, resources, list(some), nodes,
    )  # fmt: skip
    left_out = {name: reason for name, reason in zip(names, lacks, strict=True) if reason}
    notes = {
        f"Left out, as {reason}": [user for user, one in left_out.items() if one == reason]
        for reason in left_out.values()
    }
    where = "running on nodes that are left out (drained, not ready) or not named, counted as waiting"
    notes[f"{sum(away.values()):g} {where}"] = _counts(away)
    for reason in dict.fromkeys(reason for shape in some.values() for reason in shape.capped):
        cannot = {user: shape.capped[reason] for user, shape in some.items()}
        notes[f"Cannot run and not counted as wanted: {reason}"] = _counts(cannot)
    return Snapshot(
        cluster, about.format(len(kept)), dict(report), left_out, placement,
        {user: dict(shape.waiting) for user, shape in some.items() if shape.waiting},
        {user: dict(shape.capped) for user, shape in some.items() if shape.capped},
        {user: shape.leaving for user, shape in some.items() if shape.leaving},
        tuple(f"{head}: {listed(found)}." for head, found in notes.items() if found),
        queues,
        combine,
    )  # fmt: skip


def path(key: Key | None, entries: Entries) -> Iterator[Key]:
    """Yield the keys of a queue and of the queues above it, each once, even if the declared parents form a cycle."""
    passed = set[Key]()
    while key is not None and key not in passed:
        passed.add(key)
        yield key
        key = entries.get(key, {}).get("parent")


def _tree(users: Mapping[str, Shape], entries: Entries, resources: Sequence[str]) -> tuple[Queues | None, list[float]]:
    r"""Tree of the queues above users, None if there are none, and weights of users for mechanisms without a tree.

    The weight of a user is the rate at which its share increases at first, while the shares of all users increase,

    .. math:: \phi_n = \Phi \prod_{q \ni n} \frac{w_q}{\sum_{p \text{ beside } q} w_p},

    where q runs over the user and the queues above it, p over q and its siblings, w are weights, and :math:`\Phi` is
    the sum of the weights of the uppermost queues. If a queue has a single user of the same name, the user replaces the
    queue.
    """
    parent: dict[Any, Key | None] = {user: shape.queue for user, shape in users.items()}
    for shape in users.values():
        line = [*path(shape.queue, entries)]
        parent |= zip(line, [*line[1:], None], strict=False)
    below, text = Counter(parent.values()), {key: "/".join(filter(None, key[1:])) for key in parent if key not in users}
    alone = {user: key for user, key in parent.items() if user in users and below[key] == 1 and text.get(key) == user}
    for user, key in alone.items():
        parent[user] = parent.pop(key)
    taken = Counter([*users, *(text[key] for key in parent if key in text)])
    names = {key: name if taken[name] == 1 else f"{name} ({key[0]})" for key, name in text.items()}
    made, part, total = dict[str, dict[str, Any]](), dict[Any, float](), defaultdict[Key | None, float](float)
    for node, above in parent.items():
        own = entries.get(alone.get(node) or node, {"weight": users[node].weight} if node in users else {})
        part[node] = weight = own.get("weight", 1.0)
        one = made[names.get(node, node)] = {"weight": weight or 1.0, "parent": names.get(above)}
        one["priority"] = own.get("priority", 0.0) - (0.0 if weight else _BELOW)
        for bound in ("quota", "limit"):
            one[bound] = {what: amount for what, amount in own.get(bound, {}).items() if what in resources}
    least = _LAST * min(filter(None, part.values()), default=1.0)
    for node, above in parent.items():
        part[node] = part[node] or least
        total[above] += part[node]
    weights = [part[user] for user in users]
    for n, at in enumerate([parent[user] for user in users]):
        while at is not None:
            weights[n] *= part[at] / total[at]
            at = parent[at]
    return (Queues(made) if alone or len(parent) > len(users) else None), weights


def _counts(tasks: Mapping[str, float]) -> list[str]:
    """Format users with their numbers of tasks, the largest first; users without tasks are omitted."""
    order = sorted(tasks, key=lambda user: -tasks[user])
    return [f"{user} {tasks[user]:g}" for user in order if tasks[user] > _ROUNDED]


def _limit(shape: Shape, asks: Array, rows: Array, resources: Sequence[str], limited: bool) -> float:
    """Task limit of a user, infinite unless `limited`; waiting tasks larger than every eligible node become capped."""
    fit = (rows >= asks * (1 - _ROUNDED)).all(axis=1)
    if fit.any():
        return shape.wanted if limited else float("inf")
    most = rows.max(axis=0)
    short = [f"{what} {asks[r]:.10g} of at most {most[r]:.10g}" for r, what in enumerate(resources)
             if asks[r] > most[r]] or ["no node has all of it"]  # fmt: skip
    shape.cap(0.0, f"a task is larger than every node that may run it ({', '.join(short)})")
    return shape.wanted


def _names(shapes: Sequence[Shape], separator: str) -> list[str]:
    """Names of users: the owner, with the requests if it has several shapes, and an index if names coincide."""
    several, names = Counter(shape.owner for shape in shapes), []
    for shape in shapes:
        asks = ", ".join(f"{amount:g}{'GiB' if what == 'memory' else ' ' + what.rpartition('/')[2]}"
                         for what, amount in sorted(shape.asks.items()) if amount and what != "pods")  # fmt: skip
        names.append(shape.owner if several[shape.owner] == 1 else f"{shape.owner}{separator}{asks or 'nothing'}")
    seen, again = Counter[str](), Counter(names)
    for k, name in enumerate(names):
        seen[name] += 1
        names[k] = name if again[name] == 1 else f"{name} #{seen[name]}"
    return names
