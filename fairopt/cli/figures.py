"""`fairopt tables` and `fairopt figures`: from stored results; nothing is solved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import report, sweeps
from ..errors import DataError
from ..report import figures as drawing
from ..sweeps.experiment import known
from . import _screen
from ._open import existing
from ._screen import print_json
from .sweeps import add_store

#: Widths of figures, in inches.
_LEAST_WIDTH, _MOST_WIDTH = 1, 40


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of the two commands."""
    made = commands["tables"]
    made.add_argument("names", nargs="*", metavar="NAME", help="experiments; default: those that are stored")
    made.add_argument("--json", action="store_true", help="print JSON instead of tables")
    made.add_argument("--single", action="store_true", help="LaTeX for one column of two; default: the page's width")
    _reading(made, "results, and results/smoke with --smoke")

    made = commands["figures"]
    made.add_argument("names", nargs="*", metavar="NAME|FILE", help="figures, or files of figures; default: all stored")
    made.add_argument("--list", action="store_true", help="list the figures and the experiments they need")
    made.add_argument(
        "--width", type=float, metavar="INCHES", help="3.4 for one column, 7 for two; default: as it fits"
    )
    made.add_argument(
        "--style", default=drawing.PAPER, metavar="NAME",
        help="paper (the default), none for your matplotlibrc, a style of matplotlib, or a file .mplstyle",
    )  # fmt: skip
    _reading(made, f"{drawing.out()}, and {drawing.out()}/smoke with --smoke")


def _reading(made: argparse.ArgumentParser, out: str) -> None:
    made.add_argument("--out", metavar="DIR", help=f"where to write; default: {out}")
    made.add_argument("--smoke", action="store_true", help="from the tiny versions of the experiments, marked as such")
    add_store(made)


def _out(options: argparse.Namespace, usual: str) -> Path:
    """Where to write: tiny versions, which are no results, by themselves."""
    if options.out is not None:
        return Path(options.out)
    return Path(usual, "smoke") if options.smoke else Path(usual)


def _store(options: argparse.Namespace) -> Path:
    return sweeps.store_of(options.store, options.smoke).folder


def _results(options: argparse.Namespace) -> report.Results:
    store = None if options.store is None else Path(options.store)
    return report.Results(store, options.smoke, options.traces, options.accept_older)


def tables(options: argparse.Namespace) -> int:
    """`fairopt tables`; exit 1 if an experiment asked for by name lacks cells, or all do, 2 if there is no store."""
    results, out = _results(options), _out(options, "results")
    shown: dict[str, object] = {}

    def give(table: report.Table) -> None:
        written = report.write(table.frame, out, table.name, table.caption, options.single)
        if options.json:
            shown[table.name] = table.frame.to_dict(orient="records")
            return
        print(f"\n## {table.title}\n\n{_screen.table(table.frame, 56)}")
        print(*(f"- {note}" for note in table.notes), f"-> {', '.join(map(str, written))}", sep="\n", flush=True)

    def make(name: str) -> None:
        for table in report.tables_of(name, results):
            give(table)

    if not options.names:
        existing(_store(options))
        give(report.mechanism_table())
    status = _each(options, list(known()), make)
    if options.json:
        print_json(shown)
    return status


def figures(options: argparse.Namespace) -> int:
    """`fairopt figures`; exit 1 if a figure asked for by name lacks cells, or all do, 2 if there is no store."""
    if options.list:
        for name in options.names or drawing.known():
            module = drawing.module(name)
            print(f"{name}: {(module.__doc__ or '').splitlines()[0]} [{', '.join(module.NEEDS)}]")
        return 0
    if options.width is not None and not _LEAST_WIDTH <= options.width <= _MOST_WIDTH:
        raise DataError(f"--width must be from {_LEAST_WIDTH} to {_MOST_WIDTH} inches; got {options.width:g}")
    if not options.names:
        existing(_store(options))
    results, out = _results(options), _out(options, drawing.out())

    def make(name: str) -> None:
        figure = drawing.draw(name, results, options.width, options.style)
        written = drawing.save(figure, out, drawing.title(name), drawing.caption(name), options.style)
        print(f"{name} -> {', '.join(str(path) for path in written)}", flush=True)
        for need in drawing.module(name).NEEDS:
            for note in results.of(need).notes:
                print(f"- {note}")

    return _each(options, list(drawing.known()), make)


def _each(options: argparse.Namespace, every: list[str], make: Callable[[str], None]) -> int:
    """Make what is asked for, or everything; what lacks cells is named, and the rest is made all the same.

    Without a store it is the command that is wrong: `DataError`.
    """
    requested, missing = options.names, 0
    for name in requested or every:
        try:
            make(name)
        except report.MissingCells as error:
            existing(_store(options), str(error))
            print(f"fairopt: {name}: {error}", file=sys.stderr)
            missing += 1
    return int(missing > 0 and (bool(requested) or missing == len(every)))
