"""`fairopt mechanisms`, `instances` and `sources`: what there is, by name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from .. import papers, report
from .._libraries import pd
from ..workloads import known
from . import _screen
from ._json import print_json


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of the three commands."""
    for name in ("mechanisms", "instances", "sources"):
        made = commands[name]
        made.add_argument("--json", action="store_true", help="print JSON instead of a table")
        made.add_argument("--out", metavar="FILE", help="write .csv, .json, .md, .tex or .parquet as well")


def mechanisms(options: argparse.Namespace) -> int:
    """`fairopt mechanisms`."""
    return _give(report.mechanism_table().frame, options)


def instances(options: argparse.Namespace) -> int:
    """`fairopt instances`."""
    rows = [
        {"name": f"paper:{name}", "paper": one.paper, "where": one.where, "what": one.description}
        for name, one in sorted(papers.instances().items())
    ]
    return _give(pd.DataFrame(rows), options)


def sources(options: argparse.Namespace) -> int:
    """`fairopt sources`."""
    rows = []
    for name, text in known().items():
        about, _, of = text.partition("; options ")
        rows.append({"name": name, "what": about, "options": of})
    return _give(pd.DataFrame(rows), options)


def _give(frame: pd.DataFrame, options: argparse.Namespace) -> int:
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
