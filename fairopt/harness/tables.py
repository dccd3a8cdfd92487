"""The comparison tables: which clusters, which mechanisms, which numbers. As data, and computed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from .. import mechanisms, papers
from ..cluster import Cluster
from ..errors import FairoptError
from ..workloads import open_source
from .compare import compare

_POOL = ("drf", "asset-fairness", "ceei", "task-maxmin", "alpha-fair(alpha=2)", "utilitarian", "fds(beta=5)")
_SERVERS = ("per-server-drf", "drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)")
_TRACE = ("drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)")


@dataclass(frozen=True)
class Spec:
    """One table: a cluster by name (`paper:...`, or a trace), and mechanisms.

    `by_user` shows the tasks of every user, for small instances; otherwise the summary of `compare`.
    """

    name: str
    title: str
    cluster: str
    mechanisms: tuple[str, ...]
    by_user: bool = False


@dataclass(frozen=True)
class Table:
    """A computed table, with the lines that belong below it."""

    name: str
    title: str
    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)


SPECS = (
    Spec("drf-4-1", "9 CPU and 18 GB shared by A (1, 4) and B (3, 1): DRF 4.1, 5.1, 5.2", "paper:drf-4.1", _POOL, True),
    Spec("drfh-fig1", "Two servers, two users: DRFH figures 1 to 3", "paper:drfh-fig1", _SERVERS, True),
    Spec("pf-fig1", "Two servers, placement by bandwidth: PF figure 1 (base)", "paper:pf-fig1", _SERVERS, True),
    Spec("pf-fig1-variant", "The variant of PF figure 1", "paper:pf-fig1-variant", _SERVERS, True),
    Spec(
        "bitbrains",
        "100 virtual machines on 20 servers of PF section 6's types",
        "bitbrains?vms=100&servers=20",
        _TRACE,
    ),
    Spec("google", "60 users on Google's machines (DRFH table I), merged", "google?users=60", _TRACE),
)


def tables(traces: Path | None = None) -> Iterator[Table]:
    """Every table in turn; trace tables stand on generators where there is no trace, and say so."""
    yield mechanism_table()
    for spec in SPECS:
        yield compute(spec, traces)
    claims = papers.check()
    columns = ["item", "paper", "instance", "claim", "printed", "ours", "verdict"]
    yield Table("claims", "Claims of the papers, checked", claims[columns])


def mechanism_table() -> Table:
    """Every registered mechanism with its properties and source."""
    rows = [
        {"name": name, "mechanism": kind.title, "properties": kind.properties, "source": kind.source}
        for name, kind in sorted(mechanisms.REGISTRY.items())
    ]
    return Table("mechanisms", "The mechanisms", pd.DataFrame(rows))


def compute(spec: Spec, traces: Path | None = None) -> Table:
    """Solve one table's cluster with its mechanisms."""
    notes: list[str] = []
    if spec.cluster.startswith("paper:"):
        cluster = papers.instance(spec.cluster.removeprefix("paper:"))
    else:
        snapshot = open_source(spec.cluster, traces=traces)
        cluster = snapshot.cluster
        servers = len(cluster.servers)
        cluster = cluster.merge(users=False).cluster
        notes.append(f"Cluster: {snapshot.source}; {servers} servers, {len(cluster.servers)} after merging")
    if spec.by_user:
        return Table(spec.name, spec.title, _by_user(cluster, spec.mechanisms), notes)
    frame = compare(cluster, spec.mechanisms)
    notes += [f"{name}: {status}" for name, status in frame["status"].items() if status != "ok"]
    return Table(spec.name, spec.title, frame.drop(columns=["status", "notes"]).reset_index(), notes)


def _by_user(cluster: Cluster, chosen: tuple[str, ...]) -> pd.DataFrame:
    rows = []
    for mechanism in (one for text in chosen for one in mechanisms.parse(text)):
        row: dict[str, object] = {"mechanism": str(mechanism)}
        try:
            allocation = mechanism.solve(cluster)
        except FairoptError as error:
            rows.append(row | {"error": str(error)})
            continue
        row |= dict(zip(cluster.users, allocation.user_tasks.tolist(), strict=True))
        summary = allocation.summary()
        rows.append(row | {name: summary[name] for name in summary if name.startswith("use_")})
        rows[-1] |= {"certificate": summary["certificate"], "seconds": summary["seconds"]}
    return pd.DataFrame(rows)
