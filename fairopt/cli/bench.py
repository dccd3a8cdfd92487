"""`fairopt bench`: instances that other solvers can run, with certified answers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from ..report import instances


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of the command."""
    made = commands["bench"]
    made.add_argument("action", choices=["export", "list"], help="write the instances, or name them")
    made.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all")
    made.add_argument("--out", metavar="DIR", default=instances.SET, help="where to write; default: %(default)s")


def bench(options: argparse.Namespace) -> int:
    """`fairopt bench`."""
    if options.action == "list":
        print("\n".join(instances.names()))
        return 0
    folder, count = Path(options.out), 0
    for made in instances.export(folder, options.names or None):
        count += 1
        row = made.row
        print(f"{made.name}: {row['users']} x {row['servers']}, certificate {row['certificate']:.1e}", flush=True)
    print(f"{count} instances and index.json in {folder}")
    return 0
