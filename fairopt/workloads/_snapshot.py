"""`Snapshot`: what every reader and generator returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model.cluster import Cluster

Array = NDArray[np.float64]


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
    running : mapping of str to int
        Tasks that run at this instant, by user, where the source says so.
    """

    cluster: Cluster
    source: str
    report: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)

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
    running: int = 0


def of_shapes(
    shapes: Sequence[Shape], resources: Sequence[str], nodes: Sequence[str], capacity: Array, limited: bool, about: str,
    report: Mapping[str, int], separator: str, why: str, nobody: str,
) -> Snapshot:  # fmt: skip
    """The cluster of users with these shapes; those that no node may run, or that ask for nothing, are left out.

    `limited`: a user has no more than its tasks; `about` has a place for the number of users; `why` no node may run
    somebody, and `nobody` is the error where nobody is left.
    """
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
    running = {names[n]: shapes[n].running for n in kept}
    return Snapshot(cluster, about.format(len(kept)), dict(report), left_out, running)


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
