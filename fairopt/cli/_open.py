"""FILE on the command line: its option, and the cluster that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError
from ..model.cluster import Cluster

if TYPE_CHECKING:
    from ..workloads import Snapshot


@dataclass(frozen=True)
class Named:
    """A cluster, where it is from if that is more than a file, and the snapshot that it is of, if it is of one."""

    cluster: Cluster
    source: str | None = None
    snapshot: Snapshot | None = None


def existing(store: Path, remedy: str = "fairopt sweep NAME makes one, and --store DIR names another") -> None:
    """Raise `DataError` if there is no such store."""
    if not store.is_dir():
        raise DataError(f"there is no store at {store}; {remedy}")


def open_cluster(text: str, traces: str | None) -> tuple[Cluster, str | None]:
    """The cluster that FILE stands for, and where it is from if that is more than a file."""
    found = open_named(text, traces)
    return found.cluster, found.source


def open_named(text: str, traces: str | None) -> Named:
    """The same with all that its source says."""
    kind, _, name = text.partition(":")
    if kind == "paper":
        from .. import papers

        found = papers.instances().get(name)
        cluster = papers.instance(name)
        said = None if found is None else f"{name}: {found.description} ({found.paper}, {found.where})"
        return Named(cluster, said)
    from ..workloads._sources import CLUSTERS

    if text.lower().endswith((".toml", ".json", ".csv")) and not CLUSTERS.names(text):
        return _of_file(Path(text))
    from ..workloads import open_source

    if text.lower().endswith((".yaml", ".yml")) and not CLUSTERS.names(text):
        raise DataError(f"{text} is YAML, which is read as what kubectl prints: name it kubernetes:{text}")
    snapshot = open_source(text, traces=traces)
    return Named(snapshot.cluster, str(snapshot), snapshot)


def _of_file(path: Path) -> Named:
    """A cluster file, or an allocation file: its tasks are those that run."""
    from ..result import allocation_file

    if not allocation_file.is_one(path):
        return Named(Cluster.load(path))
    from ..result.allocation import Allocation
    from ..workloads import Snapshot

    found = Allocation.load(path)
    source = f"{path.name}: {found.mechanism}"
    return Named(found.cluster, source, Snapshot(found.cluster, source, placement=found.tasks))
