"""`fairopt figures` and `fairopt tables NAME`: from stored results; nothing is solved."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import harness, report
from ..errors import DataError
from ..report import figures as drawing


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command."""
    text = "draw the figures from stored results, as PDF and PNG; exit 1 if cells are missing"
    made = commands.add_parser("figures", help=text, description=text)
    made.add_argument("names", nargs="*", metavar="NAME", help="figures; default: all of them")
    made.add_argument("--list", action="store_true", help="list the figures and the experiments they need")
    made.add_argument("--out", default="paper_figures/out", metavar="DIR", help="where to write; default: %(default)s")
    made.add_argument(
        "--width", type=float, metavar="INCHES", help="3.4 for one column, 7 for two; default: as it fits"
    )
    made.add_argument("--smoke", action="store_true", help="from the tiny versions of the experiments")
    made.add_argument("--store", default=str(harness.STORE), metavar="DIR", help="default: %(default)s")
    made.add_argument("--traces", metavar="DIR", help="folder of the real traces; default: FAIROPT_TRACES")


def figures(options: argparse.Namespace) -> int:
    """`fairopt figures`; exit 1 if a figure lacks cells."""
    names = options.names or list(drawing.known())
    if options.list:
        for name in names:
            module = drawing.module(name)
            print(f"{name}: {(module.__doc__ or '').splitlines()[0]} [{', '.join(module.NEEDS)}]")
        return 0
    results = report.Results(Path(options.store), options.smoke, options.traces)
    missing = 0
    for name in names:
        try:
            written = drawing.save(drawing.draw(name, results, options.width), Path(options.out), name)
        except report.MissingCells as error:
            print(f"fairopt: {name}: {error}", file=sys.stderr)
            missing += 1
            continue
        print(f"{name} -> {', '.join(str(path) for path in written)}", flush=True)
        for need in drawing.module(name).NEEDS:
            print(
                *(f"- {note}" for note in results.of(need).notes), sep="\n", end="\n" if results.of(need).notes else ""
            )
    return int(missing > 0)


def stored_tables(options: argparse.Namespace) -> int:
    """`fairopt tables NAME...`: means with 95% confidence intervals; exit 1 if cells are missing."""
    if options.json:
        raise DataError("tables of stored results have no --json; the CSV has every digit")
    results = report.Results(Path(options.store), options.smoke, options.traces)
    missing = 0
    for name in options.names:
        try:
            found = results.of(name)
        except report.MissingCells as error:
            print(f"fairopt: {error}", file=sys.stderr)
            missing += 1
            continue
        stem, table = Path(name).stem, report.means(found)
        caption = ". ".join([f"{harness.load(name).title}: means with 95% confidence intervals", *found.notes])
        written = report.write(table, Path(options.out), stem, caption)
        print(f"\n## {caption}\n\n{report.for_people(table).to_string(index=False, max_colwidth=56)}")
        print(f"-> {', '.join(str(path) for path in written)}", flush=True)
    return int(missing > 0)
