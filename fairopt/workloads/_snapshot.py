"""`Snapshot`: what every reader and generator returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model.cluster import Cluster


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


def numbered(names: Sequence[str]) -> list[str]:
    """The same names, with a number behind those that stand several times."""
    several = {name for name, number in Counter(names).items() if number > 1}
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} #{seen[name]}" if name in several else name)
    return found
