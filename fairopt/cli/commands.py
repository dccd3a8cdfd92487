"""What each command does."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from .. import harness, mechanisms, papers, report
from ..cluster import Cluster
from ..errors import DataError
from ..workloads import open_source
from .figures import figures, stored_tables
from .sweeps import results, sweep

__all__ = ["claims", "compare", "figures", "results", "solve", "sweep", "tables"]


def solve(options: argparse.Namespace) -> int:
    """`fairopt solve FILE --mechanism NAME`."""
    cluster, source = open_cluster(options.file, options.traces)
    mechanism, *more = mechanisms.parse(options.mechanism)
    if more:
        names = ", ".join(f"'{one}'" for one in (mechanism, *more))
        raise DataError(f"{options.mechanism} stands for several mechanisms ({names}); give its parameters")
    allocation = mechanism.solve(cluster, options.tol, solver=options.solver)
    if not options.json:
        print(allocation if source is None else f"{source}\n{allocation}")
        return 0
    _print_json(
        {
            "mechanism": str(mechanism),
            "cluster": source or options.file,
            "users": dict(zip(allocation.cluster.users, allocation.user_tasks.tolist(), strict=True)),
            "servers": list(allocation.cluster.servers),
            "tasks": allocation.tasks.tolist(),
            "prices": None if allocation.prices is None else allocation.prices.tolist(),
            "summary": allocation.summary(),
            "certificate": vars(allocation.certificate),
            "stats": vars(allocation.stats),
            "notes": list(allocation.notes),
        }
    )
    return 0


def compare(options: argparse.Namespace) -> int:
    """`fairopt compare FILE [--mechanisms ...]`; exit 1 if a mechanism that applies failed."""
    cluster, source = open_cluster(options.file, options.traces)
    frame = harness.compare(
        cluster, options.mechanisms, tol=options.tol, solver=options.solver, progress=not options.json
    )
    if options.json:
        _print_json(frame.reset_index().to_dict(orient="records"))
    else:
        table, others = report.comparison(frame)
        print(source or cluster.__repr__().splitlines()[0])
        print(report.for_people(table).to_string(index=False))
        print(*(f"- {line}" for line in others), sep="\n")
    failed = [status for status in frame["status"] if status != "ok" and not status.startswith("not applicable")]
    return 1 if failed else 0


def claims(options: argparse.Namespace) -> int:
    """`fairopt claims`; exit 1 if a claim is neither reproduced nor shown to be in error."""
    frame = papers.check(papers.claims(options.paper, options.item), progress=not options.json)
    if options.json:
        _print_json(frame.to_dict(orient="records"))
    else:
        columns = ["item", "paper", "instance", "claim", "printed", "ours", "verdict"]
        print(frame[columns].to_string(index=False, max_colwidth=48))
        kinds = frame["verdict"].str.split(",").str[0].value_counts()
        print("\n" + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    return int((frame["verdict"] == papers.NOT_REPRODUCED).any())


def tables(options: argparse.Namespace) -> int:
    """`fairopt tables`; exit 1 if a claim failed or a row of a table has no certificate."""
    if options.names:
        return stored_tables(options)
    folder = Path(options.out)
    found: dict[str, Any] = {}
    failed = False
    for table in harness.tables(Path(options.traces) if options.traces else None):
        written = report.write(table.frame, folder, table.name, ". ".join([table.title, *table.notes]))
        if options.json:
            found[table.name] = table.frame.to_dict(orient="records")
        else:
            print(f"\n## {table.title}\n")
            print(report.for_people(table.frame).to_string(index=False, max_colwidth=56))
            print(*(f"- {note}" for note in table.notes), sep="\n")
            print(f"-> {', '.join(str(path) for path in written)}", flush=True)
        if "certificate" in table.frame:
            failed |= bool(table.frame["certificate"].isna().any())
        if "verdict" in table.frame:
            failed |= bool((table.frame["verdict"] == papers.NOT_REPRODUCED).any())
    if options.json:
        _print_json(found)
    return int(failed)


def open_cluster(text: str, traces: str | None) -> tuple[Cluster, str | None]:
    """The cluster that FILE stands for, and where it is from if that is more than a file."""
    kind, _, name = text.partition(":")
    if kind == "paper":
        found = papers.instances().get(name)
        cluster = papers.instance(name)
        return cluster, None if found is None else f"{name}: {found.description} ({found.paper}, {found.where})"
    if text.endswith((".toml", ".json")):
        return Cluster.load(text), None
    snapshot = open_source(text, traces=traces)
    return snapshot.cluster, str(snapshot)


def _print_json(value: Any) -> None:
    def plain(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return item.tolist()
        return item.item() if isinstance(item, np.generic) else str(item)

    print(json.dumps(_finite(value), indent=1, default=plain, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null, and a string."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return None if np.isnan(value) else str(float(value))
    return value
