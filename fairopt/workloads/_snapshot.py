"""`Snapshot`: what every reader and generator returns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..base.names import listed
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..result.allocation import Allocation

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?")
_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {unit: 1024 ** (k + 1) for k, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
#: No amount of anything is larger: an exabyte of bytes, in thousandths.
_MOST = Decimal(10) ** 21
GIB = Decimal(1024**3)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A cluster with the story of how it came about.

    Parameters
    ----------
    cluster : Cluster
        The users, demands and servers.
    source : str
        One line for people: which trace or generator, which instant, what was drawn.
    report : mapping of str to int
        Counts: rows read, rows skipped as malformed, tasks, users and servers found and left out.
    left_out : mapping of str to str
        Every user that was found and could not be used, with the reason. Users that were merely
        not drawn are counted in `report` and not listed here.
    placement : (users, servers) array or None
        Tasks that run at this instant, where the source says so.
    gated : mapping of str to int
        Tasks that wait for a gate or a limit of their owner, and not for room, by user.
    notes : tuple of str
        What is to be known of what runs and of what is wanted.
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
        """Tasks that run, as an allocation: flagged where they exceed what there is, as after a change of nodes."""
        known = self.placement is not None
        return Allocation.of(self.cluster, self.placement, "running", throw=False) if known else None

    @property
    def dropped(self) -> dict[str, int]:
        """Parts of the source that the cluster lacks: counts of `report` that say "left out", without these words."""
        counts = {what: count for what, count in self.report.items() if "left out" in what and count}
        return {what.replace(", left out", "").replace(" left out", ""): count for what, count in counts.items()}

    def __str__(self) -> str:
        n, i, r = self.cluster.shape
        counts = "".join(f"\n  {what}: {count:,}" for what, count in self.report.items())
        return f"{self.source}\n  {n} users, {i} servers, {r} resources{counts}"


@dataclass
class Shape:
    """Pods or jobs of one owner that ask for the same and may run on the same nodes: a user of the cluster."""

    owner: str
    asks: Mapping[str, float]
    eligible: tuple[bool, ...]
    weight: float
    tasks: int = 0
    gated: int = 0
    on: Counter[str] = field(default_factory=Counter)  # tasks that run, by node


def objects(found: object, key: str, path: Path, remedy: str) -> list[Any]:
    """The list of objects that a file has by this key."""
    listed = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise DataError(f"{path} has no list {key!r} of objects; {remedy}")
    return listed


def quantity(value: object) -> Decimal:
    """`100m`, `1Gi`, `2e3`, `1.5`: exactly.

    Raises
    ------
    DataError
        It is none, is below 0 or beyond all measure.
    """
    found = _QUANTITY.fullmatch(str(value))
    if found is None:
        raise DataError(f"{str(value)[:40]!r} is not a quantity, such as 500m, 2 or 1.5Gi")
    number, power, unit = found.groups()
    if power is not None and abs(int(power[1:])) > 30:
        raise DataError(f"the quantity {str(value)[:40]!r} is beyond all measure")
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
    """The cluster of users with these shapes; those that no node may run, or that ask for nothing, are left out.

    `has`: what each node has of resources; those that nobody asks for are not shared, but for CPU, memory and pods
    where there are any. `limited`: a user has no more than its tasks; `about` has a place for the number of users;
    `why` no node may run somebody, and `nobody` is the error where nobody is left.
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
    """The owner where it has one shape, else with what a task asks for, and a number where that is not enough."""
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
