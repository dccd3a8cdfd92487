"""`fairopt mechanisms`, `instances`, `sources`, `policies` and `workloads`: what there is, by name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from .. import papers, report
from .._libraries import pd
from ..workloads import known, known_workloads
from . import _screen
from ._json import print_json


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    for name in ("mechanisms", "instances", "sources", "policies", "workloads"):
        made = commands[name]
        made.add_argument("--json", action="store_true", help="print JSON instead of a table")
        made.add_argument("--out", metavar="FILE", help="write .csv, .json, .md, .tex or .parquet as well")


def mechanisms(options: argparse.Namespace) -> int:
    """`fairopt mechanisms`."""
    return give(report.mechanism_table().frame, options)


def instances(options: argparse.Namespace) -> int:
    """`fairopt instances`."""
    rows = [
        {"name": f"paper:{name}", "paper": one.paper, "where": one.where, "what": one.description}
        for name, one in sorted(papers.instances().items())
    ]
    return give(pd.DataFrame(rows), options)


def sources(options: argparse.Namespace) -> int:
    """`fairopt sources`."""
    return give(named(known()), options)


def policies(options: argparse.Namespace) -> int:
    """`fairopt policies`."""
    from ..scheduling.policies import REGISTRY

    rows = [{"name": name, "policy": kind.title, "source": kind.source} for name, kind in sorted(REGISTRY.items())]
    return give(pd.DataFrame(rows), options)


def workloads(options: argparse.Namespace) -> int:
    """`fairopt workloads`."""
    return give(named(known_workloads()), options)


def named(sources: Mapping[str, str]) -> pd.DataFrame:
    """Sources by name, with their options apart."""
    rows = []
    for name, text in sources.items():
        about, _, of = text.partition("; options ")
        rows.append({"name": name, "what": about, "options": of})
    return pd.DataFrame(rows)


def give(frame: pd.DataFrame, options: argparse.Namespace) -> int:
    """Print a table, and write it where that is asked for."""
    if options.out:
        report.export(frame, Path(options.out))
    if options.json:
        print_json(frame.to_dict(orient="records"))
    elif _screen.width() is None:
        print(_screen.table(frame))
    else:  # a terminal: nothing is cut off
        for row in frame.to_dict(orient="records"):
            _screen.say([": ".join([row.pop("name"), "; ".join(str(text) for text in row.values() if text)])])
    return 0
