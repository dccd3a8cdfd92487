"""`Snapshot`: the result of readers and generators of clusters, and its construction from groups of tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from ..base.errors import DataError
from ..base.names import listed
from ..model._arrays import Array, Index, numbered
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from ..scheduling.workload import one_of
from ._draw import probability

#: What a user is barred from at random: single servers, or all servers of a type.
Unit = Literal["server", "type"]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?")
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
        Tasks that run at this instant, if the source states them.
    gated : mapping of str to int
        Tasks by user that wait for a gate or a limit of their owner instead of capacity.
    notes : tuple of str
        Remarks on running and wanted tasks.

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
    gated: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def running(self) -> Allocation | None:
        """Running tasks as an allocation, flagged if they exceed capacities (as after a change of nodes); or None."""
        known = self.placement is not None
        return Allocation.of(self.cluster, self.placement, "running", throw=False) if known else None

    @property
    def dropped(self) -> dict[str, int]:
        """Counts of `report` on excluded data, by their names without "left out"."""
        counts = {what: count for what, count in self.report.items() if "left out" in what and count}
        return {what.replace(", left out", "").replace(" left out", ""): count for what, count in counts.items()}

    def __str__(self) -> str:
        n, i, r = self.cluster.shape
        counts = "".join(f"\n  {what}: {count:,}" for what, count in self.report.items())
        return f"{self.source}\n  {n} users, {i} servers, {r} resources{counts}"


def placed(
    snapshot: Snapshot,
    rng: np.random.Generator,
    density: Annotated[float, probability] = 1.0,
    density_by: Unit = "server",
) -> Snapshot:
    """Restrict every user to random servers, or to random types of servers, among those that it can use.

    Parameters
    ----------
    snapshot : Snapshot
    rng : Generator
    density : float
        Probability in (0, 1] that a server, or a type, is open to a user. One more, drawn uniformly, always is.
    density_by : str
        `server`, or `type`: servers with equal CPU and memory, or equal capacities where resources have other names.

    Raises
    ------
    DataError
        `density` is not in (0, 1], or `density_by` is unknown.
    """
    probability(density, "density")
    one_of(density_by, "density_by", Unit)
    if density == 1:
        return snapshot
    cluster = snapshot.cluster
    users, servers, _ = cluster.shape
    unit: Index = np.arange(servers)
    if density_by == "type":
        told = [r for r, name in enumerate(cluster.resources) if name in ("cpu", "memory")]
        unit = numbered(cluster.capacity[:, told] if told else cluster.capacity)
    possible = np.zeros((users, unit.max() + 1), dtype=bool)
    np.logical_or.at(possible.T, unit, cluster.usable.T)
    # The units that a user can use come first, so that a number modulo their count draws one of them.
    of_user, one = np.argsort(~possible, axis=1, kind="stable"), np.arange(users)
    drawn = np.less(rng.random(possible.shape), density)
    always = rng.integers(possible.shape[1], size=users) % np.maximum(possible.sum(axis=1), 1)
    drawn[one, of_user[one, always]] = True
    said = f"{snapshot.source}, density {density:g} by {density_by}"
    return replace(snapshot, cluster=cluster.replace(eligible=cluster.eligible & drawn[:, unit]), source=said)


@dataclass
class Shape:
    """Tasks of one owner with equal requests and placement constraints, which become a user of the cluster."""

    owner: str
    asks: Mapping[str, float]
    eligible: tuple[bool, ...]
    weight: float
    tasks: int = 0
    gated: int = 0
    on: Counter[str] = field(default_factory=Counter)  # running tasks by node


def objects(found: object, key: str, path: Path, remedy: str) -> list[Any]:
    """List of objects under a key of a parsed file.

    Raises
    ------
    DataError
        There is none; the message has the remedy.
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
    found = _QUANTITY.fullmatch(str(value))
    if found is None:
        raise DataError(f"{str(value)[:40]!r} is not a quantity, such as 500m, 2 or 1.5Gi")
    number, power, unit = found.groups()
    if power is not None and abs(int(power[1:])) > 30:
        raise DataError(f"the quantity {str(value)[:40]!r} is beyond the range of numbers")
    amount = Decimal(number + (power or ""))
    if unit in _BINARY:
        amount *= _BINARY[unit]
    elif unit:
        amount = amount.scaleb(_UNITS[unit])
    if not 0 <= amount <= _MOST:
        raise DataError(f"the quantity {str(value)[:40]!r} must be between 0 and 10^21")
    return amount


def of_shapes(
    shapes: Sequence[Shape], nodes: Sequence[str], has: Sequence[Mapping[str, float]], limited: bool, about: str,
    report: Mapping[str, int], separator: str, why: str, nobody: str,
) -> Snapshot:  # fmt: skip
    """Build the cluster of users with these shapes; those without requests or feasible nodes are excluded.

    Parameters
    ----------
    shapes : sequence of Shape
    nodes : sequence of str
        Names.
    has : sequence of mappings
        Capacities of each node. Resources without requests are omitted, except CPU, memory and pods.
    limited : bool
        Limit users to the tasks of their shapes.
    about : str
        Description, with a placeholder for the number of users.
    report : mapping
        Counts.
    separator : str
        Text between owner and requests in names of users.
    why : str
        Reason for users without feasible nodes.
    nobody : str
        Error if no user remains.
    """
    asked = {what for shape in shapes for what, amount in shape.asks.items() if amount}
    always = [what for what in ("cpu", "memory", "pods") if any(one.get(what) for one in has)]
    resources = sorted(asked.union(always), key=lambda what: (what == "pods", what not in ("cpu", "memory"), what))
    capacity = [[one.get(what, 0.0) for what in resources] for one in has]
    demand = np.array([[shape.asks.get(what, 0.0) for what in resources] for shape in shapes])
    eligible = np.array([shape.eligible for shape in shapes], dtype=bool)
    names = _names(shapes, separator)
    lacks = ["its jobs ask for nothing" if not asks.any() else "" if may.any() else why
             for asks, may in zip(demand, eligible, strict=True)]  # fmt: skip
    kept = [n for n, reason in enumerate(lacks) if not reason]
    if not kept:
        raise DataError(nobody)
    some = [shapes[n] for n in kept]
    cluster = Cluster(
        capacity, demand[kept], [shape.weight for shape in some], eligible[kept],
        [float(shape.tasks) for shape in some] if limited else None, resources, [names[n] for n in kept], nodes,
    )  # fmt: skip
    left_out = {name: reason for name, reason in zip(names, lacks, strict=True) if reason}
    place, placement = {name: i for i, name in enumerate(nodes)}, np.zeros(cluster.shape[:2])
    for row, shape in zip(placement, some, strict=True):
        for node in shape.on.keys() & place.keys():
            row[place[node]] = shape.on[node]
    away = Counter({user: shape.on.total() - int(row.sum())
                    for user, shape, row in zip(cluster.users, some, placement, strict=True)})  # fmt: skip
    gated = {user: shape.gated for user, shape in zip(cluster.users, some, strict=True) if shape.gated}
    notes = [f"Left out, as {why}: {listed(list(left_out))}."] if left_out else []
    if away.total():
        counted = listed([f"{user} {count}" for user, count in away.most_common() if count])
        where = "on nodes that are left out (drained, not ready) or not named, counted as waiting"
        notes.append(f"{away.total()} running {where}: {counted}.")
    return Snapshot(cluster, about.format(len(kept)), dict(report), left_out, placement, gated, tuple(notes))


def _names(shapes: Sequence[Shape], separator: str) -> list[str]:
    """Names of users: the owner, with the requests if it has several shapes, and with a number if these coincide."""
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
