"""What FILE stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import DataError
from ..model.cluster import Cluster


def existing(store: Path, remedy: str = "fairopt sweep NAME makes one, and --store DIR names another") -> None:
    """Raise `DataError` if there is no such store."""
    if not store.is_dir():
        raise DataError(f"there is no store at {store}; {remedy}")


def open_cluster(text: str, traces: str | None) -> tuple[Cluster, str | None]:
    """The cluster that FILE stands for, and where it is from if that is more than a file."""
    return open_named(text, traces)[:2]


def open_named(text: str, traces: str | None) -> tuple[Cluster, str | None, Mapping[str, int]]:
    """The same, and tasks that run now by user, where that is known."""
    kind, _, name = text.partition(":")
    if kind == "paper":
        from .. import papers

        found = papers.instances().get(name)
        cluster = papers.instance(name)
        said = None if found is None else f"{name}: {found.description} ({found.paper}, {found.where})"
        return cluster, said, {}
    from ..workloads._registry import CLUSTERS

    if text.lower().endswith((".toml", ".json", ".csv")) and not CLUSTERS.names(text):
        return Cluster.load(text), None, {}
    from ..workloads import open_source

    snapshot = open_source(text, traces=traces)
    return snapshot.cluster, str(snapshot), snapshot.running
