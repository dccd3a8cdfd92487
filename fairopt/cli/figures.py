"""`fairopt tables` and `fairopt figures`: from stored results; nothing is solved."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from .. import report, sweeps
from ..errors import DataError
from ..model._names import meant
from ..report import figures as drawing
from ..sweeps.experiment import known
from . import _screen
from ._open import existing
from ._screen import print_json
from ._slips import listed

#: Widths of figures and tables, in inches.
_LEAST_WIDTH, _MOST_WIDTH = 1, 40


def check_width(width: float | None) -> None:
    """Raise DataError for a width that nothing is drawn or set in."""
    if width is not None and not _LEAST_WIDTH <= width <= _MOST_WIDTH:
        raise DataError(f"--width must be from {_LEAST_WIDTH} to {_MOST_WIDTH} inches; got {width:g}")


def _out(options: argparse.Namespace, usual: str) -> Path:
    """Folder to write to; tiny versions, which are no results, are kept apart."""
    return Path(options.out or usual, "smoke" if options.smoke and options.out is None else "")


def _store(options: argparse.Namespace) -> Path:
    return sweeps.store_of(options.store, options.smoke).folder


def _results(options: argparse.Namespace) -> report.Results:
    store = None if options.store is None else Path(options.store)
    return report.Results(store, options.smoke, options.traces, options.accept_older)


def tables(options: argparse.Namespace) -> int:
    """`fairopt tables`; exit 1 if an experiment asked for by name lacks cells, or all do, 2 if there is no store."""
    check_width(options.width)
    results, out = _results(options), _out(options, "results")
    columns, rows = listed(options.columns), listed(options.rows)
    shown: dict[str, object] = {}
    seen: list[report.Table] = []

    def give(whole: report.Table) -> None:
        seen.append(whole)
        if (table := whole.chosen(columns, rows)) is None:
            return
        written = table.write(out, options.width)
        if options.json:
            shown[table.name] = table.frame.to_dict(orient="records")
            return
        print(f"\n## {table.title}\n\n{_screen.table(table.frame, 56)}")
        notes = (*table.details, *table.notes)
        print(*(f"- {note}" for note in notes), f"-> {', '.join(map(str, written))}", sep="\n", flush=True)

    def make(name: str) -> None:
        for table in report.tables_of(name, results):
            give(table)

    if not options.names:
        existing(_store(options))
        give(report.mechanism_table())
    status = _each(options, list(known()), make)
    asked = [*(columns or ()), *(rows or ())] if status == 0 else []  # tables that lack cells may have them
    if never := [one for one in asked if not any(t.chosen([one], None) or t.chosen(None, [one]) for t in seen)]:
        columns = [str(name) for table in seen for name in table.frame]
        _screen.warn(f"no table here has {', '.join(never)}{meant(never[0], columns)}")
        status = 1
    if options.json:
        print_json(shown)
    return status


def figures(options: argparse.Namespace) -> int:
    """`fairopt figures`; exit 1 if a figure asked for by name lacks cells, or all do, 2 if there is no store."""
    if options.list:
        for name in options.names or drawing.known():
            module = drawing.module(name)
            print(f"{name}: {next(iter((module.__doc__ or '').splitlines()), '')} [{', '.join(module.NEEDS)}]")
        return 0
    check_width(options.width)
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
            _screen.warn(f"{name}: {error}")
            missing += 1
    return int(missing > 0 and (bool(requested) or missing == len(every)))
