"""The argument FILE of commands: opening the cluster, source or allocation that it names."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import DataError
from ...base.names import plain
from ...mechanisms.tree import Tree
from ...model.cluster import Cluster
from ...model.queues import Queues

if TYPE_CHECKING:
    from ...mechanisms import Mechanism
    from ...result.allocation import Allocation
    from ...workloads import Snapshot


@dataclass(frozen=True)
class Named:
    """Cluster, the argument of the command line that names it, and its source and snapshot, if known."""

    cluster: Cluster
    file: str
    source: str | None = None
    snapshot: Snapshot | None = None

    def __post_init__(self) -> None:
        for name in (*self.cluster.users, *self.cluster.servers, *self.cluster.resources):
            if name != plain(name):
                raise DataError(f"{self.file} calls something {name!r}: no terminal shows that as it is; rename it")

    @property
    def running(self) -> Allocation | None:
        """Running tasks, or None if unknown."""
        return None if self.snapshot is None else self.snapshot.running

    @property
    def tree(self) -> Tree | None:
        """Mechanism of the queues that the source declares; None if it declares no queues."""
        return None if self.snapshot is None else self.snapshot.tree[0]

    def declared(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism; a tree without queues gets the queues that the source declares."""
        if isinstance(mechanism, Tree) and self.tree is not None and isinstance(self.tree.queues, Queues):
            return mechanism.declared(self.tree.queues, self.tree.combine)
        return mechanism

    @property
    def called(self) -> str:
        """Description of the source, or the name of the file."""
        return self.source or Path(self.file).name


def existing(store: Path, remedy: str = "fairopt sweep NAME makes one, and --store DIR names another") -> None:
    """Raise `DataError` with a remedy unless the store exists."""
    if not store.is_dir():
        raise DataError(f"there is no store at {store}; {remedy}")


def opened(options: argparse.Namespace) -> Named:
    """Open FILE: a worked example of a paper, a source, or a cluster or allocation file.

    Raises
    ------
    DataError
        There is no such source or file, or its content is invalid.
    """
    text: str = options.file
    kind, _, name = text.partition(":")
    if kind == "paper":
        from ...harness import papers

        cluster, found = papers.instance(name), papers.instances()[name]
        return Named(cluster, text, f"{name}: {found.description} ({found.paper}, {found.where})")
    from ...workloads import open_source
    from ...workloads.sources import CLUSTERS

    ending = Path(text).suffix.lower() if CLUSTERS.reads(text) is None else ""
    if ending in (".toml", ".json", ".csv"):
        return _of_file(text)
    if ending in (".yaml", ".yml"):
        raise DataError(f"{text} is YAML, which is read as what kubectl prints: name it kubernetes:{text}")
    snapshot = open_source(text, traces=options.traces)
    return Named(snapshot.cluster, text, str(snapshot), snapshot)


def _of_file(file: str) -> Named:
    """Open a cluster file, or an allocation file, whose tasks count as running."""
    from ...result import allocation_file

    path = Path(file)
    if not allocation_file.is_one(path):
        return Named(Cluster.load(path), file)
    from ...result.allocation import Allocation
    from ...workloads import Snapshot

    found = Allocation.load(path)
    source = f"{path.name}: {plain(found.mechanism)}"
    return Named(found.cluster, file, source, Snapshot(found.cluster, source, placement=found.tasks))
