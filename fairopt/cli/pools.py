"""`fairopt dynamic-drf` and `fairopt hug`: rules that share the pool of all servers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from .. import report, scheduling
from .._libraries import pd
from . import _FILE_HELP, _out, _screen
from ._json import print_json
from ._open import open_cluster


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of these commands."""
    for name in ("dynamic-drf", "hug"):
        made = commands[name]
        made.formatter_class, made.epilog = argparse.RawDescriptionHelpFormatter, _FILE_HELP
        made.add_argument("file", metavar="FILE", help="see below; its servers are pooled")
        made.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")
        made.add_argument("--json", action="store_true", help="print JSON instead of a table")
        _out(made, "the table")
    commands["dynamic-drf"].add_argument(
        "--order", nargs="+", metavar="USER", help="users by arrival; default: the order of FILE"
    )


def dynamic_drf(options: argparse.Namespace) -> int:
    """`fairopt dynamic-drf FILE [--order USER ...]`: every user's tasks after each arrival."""
    cluster, _ = open_cluster(options.file, options.traces)
    return _give(scheduling.dynamic_drf(cluster, options.order).tasks, options)


def hug(options: argparse.Namespace) -> int:
    """`fairopt hug FILE`: every tenant's progress, and its part of each link in the link's units."""
    cluster, _ = open_cluster(options.file, options.traces)
    return _give(scheduling.hug(cluster).to_frame(), options)


def _give(frame: pd.DataFrame, options: argparse.Namespace) -> int:
    index = frame.index.name
    flat = frame.reset_index(allow_duplicates=True)
    if options.out:
        report.export(flat, Path(options.out))
    if options.json:
        print_json([{index: name, **frame.loc[name].to_dict()} for name in frame.index])
    else:
        print(_screen.table(flat))
    return 0
