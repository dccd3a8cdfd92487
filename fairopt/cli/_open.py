"""FILE on the command line: its option, and the cluster that it stands for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError
from ..model.cluster import Cluster

if TYPE_CHECKING:
    from ..workloads import Snapshot

_FILE_HELP = """\
FILE is one of
  a cluster file         cluster.toml, cluster.json, cluster.csv (fairopt docs cluster-file)
  paper:NAME             an instance of a source paper, such as paper:drf-4.1 (`fairopt instances` lists them)
  a trace or generator   bitbrains:DIR, google:DIR, alibaba:DIR, bitbrains-like, google-like, alibaba-like, with
                         options: 'bitbrains?vms=50&seed=3' (`fairopt sources` lists them). Without DIR, a trace is
                         looked for below --traces or FAIROPT_TRACES.
  kubernetes:FILE        what `kubectl get nodes,pods,namespaces -A -o json` prints (fairopt docs workloads)
  slurm:DIR              what scontrol, squeue and sshare print as JSON

mechanisms are names (`fairopt mechanisms` lists them), with parameters in brackets: 'alphapf-vds(alpha=3)'; several
stand apart by spaces or commas.
"""


def takes_traces(*commands: argparse.ArgumentParser) -> None:
    """Where traces are looked for."""
    for made in commands:
        made.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")


def takes_file(*commands: argparse.ArgumentParser, about: str = "see below", optional: bool = False) -> None:
    """FILE, what it may be, and where traces are looked for."""
    for made in commands:
        made.formatter_class, made.epilog = argparse.RawDescriptionHelpFormatter, _FILE_HELP
        made.add_argument("file", nargs="?" if optional else None, metavar="FILE", help=about)
    takes_traces(*commands)


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
        return Named(Cluster.load(text))
    from ..workloads import open_source

    if text.lower().endswith((".yaml", ".yml")) and not CLUSTERS.names(text):
        raise DataError(f"{text} is YAML, which is read as what kubectl prints: name it kubernetes:{text}")
    snapshot = open_source(text, traces=traces)
    return Named(snapshot.cluster, str(snapshot), snapshot)
