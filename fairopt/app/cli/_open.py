"""FILE on the command line: its option, and the cluster that it stands for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import DataError
from ...base.names import plain
from ...model.cluster import Cluster

if TYPE_CHECKING:
    from ...result.allocation import Allocation
    from ...workloads import Snapshot


@dataclass(frozen=True)
class Named:
    """A cluster, where it is from if that is more than a file, and the snapshot that it is of, if it is of one."""

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
        """Running tasks, where known."""
        return None if self.snapshot is None else self.snapshot.running

    @property
    def called(self) -> str:
        """Its source, or the name of its file."""
        return self.source or Path(self.file).name


def existing(store: Path, remedy: str = "fairopt sweep NAME makes one, and --store DIR names another") -> None:
    """Raise `DataError` if there is no such store."""
    if not store.is_dir():
        raise DataError(f"there is no store at {store}; {remedy}")


def opened(options: argparse.Namespace) -> Named:
    """Open FILE with all data of its source."""
    text: str = options.file
    kind, _, name = text.partition(":")
    if kind == "paper":
        from ...harness import papers

        cluster, found = papers.instance(name), papers.instances()[name]
        return Named(cluster, text, f"{name}: {found.description} ({found.paper}, {found.where})")
    from ...workloads.sources import CLUSTERS

    if text.lower().endswith((".toml", ".json", ".csv")) and CLUSTERS.reads(text) is None:
        return _of_file(text)
    from ...workloads import open_source

    if text.lower().endswith((".yaml", ".yml")) and CLUSTERS.reads(text) is None:
        raise DataError(f"{text} is YAML, which is read as what kubectl prints: name it kubernetes:{text}")
    snapshot = open_source(text, traces=options.traces)
    return Named(snapshot.cluster, text, str(snapshot), snapshot)


def _of_file(file: str) -> Named:
    """A cluster file, or an allocation file: its tasks are those that run."""
    from ...result import allocation_file

    path = Path(file)
    if not allocation_file.is_one(path):
        return Named(Cluster.load(path), file)
    from ...result.allocation import Allocation
    from ...workloads import Snapshot

    found = Allocation.load(path)
    source = f"{path.name}: {plain(found.mechanism)}"
    return Named(found.cluster, file, source, Snapshot(found.cluster, source, placement=found.tasks))
