"""The commands tables and figures, from stored results, and reproduce, which computes all results of a paper."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ... import harness
from ...base import clock
from ...base import files as _files
from ...base.errors import DataError
from ...base.libraries import pd
from ...base.names import meant
from ...harness import papers, report
from ...harness.experiment import known
from ...harness.report import figures as drawing
from ...harness.report import judging
from ...harness.report.stored import manifest
from ...harness.report.typeset import PAGE
from . import _screen
from ._open import existing
from ._screen import print_json
from ._slips import listed
from .sweeps import STOPPED, computed


def _out(options: argparse.Namespace, usual: str) -> Path:
    """Output folder; results of tiny versions (`--smoke`) go to its subfolder `smoke` unless `--out` names a folder."""
    return Path(options.out or usual, "smoke" if options.smoke and options.out is None else "")


def _store(options: argparse.Namespace) -> Path:
    return harness.store_of(options.store, options.smoke).folder


def _results(options: argparse.Namespace) -> report.Results:
    store = None if options.store is None else Path(options.store)
    return report.Results(store, options.smoke, options.traces, options.accept_older)


def tables(options: argparse.Namespace) -> int:
    """`fairopt tables`: write and print the tables of experiments.

    The exit status is 1 if a requested experiment, or every experiment, lacks cells, or if no table has a requested
    column or row, and 2 if there is no store.
    """
    results, out = _results(options), _out(options, "results")
    columns, rows = listed(options.columns), listed(options.rows)
    shown: dict[str, object] = {}
    seen: list[report.Table] = []

    def give(whole: report.Table) -> None:
        """Select columns and rows of a table, write its files, and print it; a table without matches is skipped."""
        seen.append(whole)
        if (table := whole.chosen(columns, rows)) is None:
            return
        with _screen.remarks() as said:
            written = table.write(out, options.width)
        if options.json:
            shown[table.name] = table.frame.to_dict(orient="records")
            return
        print(f"\n## {table.title}\n\n{_screen.table(table.frame, 56)}")
        notes = (*table.details, *table.notes, *said)
        print(*(f"- {note}" for note in notes), f"-> {', '.join(map(str, written))}", sep="\n", flush=True)

    def make(name: str) -> None:
        for table in report.tables_of(name, results):
            give(table)

    if not options.names:
        existing(_store(options))
        give(report.mechanism_table())
    status = _each(options, list(known()), make)
    # If cells are missing, their tables might have the requested names, so nothing is reported as absent.
    asked = [*(columns or ()), *(rows or ())] if status == 0 else []
    if never := [one for one in asked if not any(t.chosen([one], None) or t.chosen(None, [one]) for t in seen)]:
        columns = [str(name) for table in seen for name in table.frame]
        _screen.warn(f"no table here has {', '.join(never)}{meant(never[0], columns)}")
        status = 1
    if options.json:
        print_json(shown)
    return status


def figures(options: argparse.Namespace) -> int:
    """`fairopt figures`: draw figures from stored results, or list the figures.

    The exit status is 1 if a requested figure, or every figure, lacks cells, and 2 if there is no store.
    """
    if options.list:
        for name in options.names or drawing.known():
            module = drawing.module(name)
            print(f"{name}: {next(iter((module.__doc__ or '').splitlines()), '')} [{', '.join(module.NEEDS)}]")
        return 0
    if not options.names:
        existing(_store(options))
    results, out = _results(options), _out(options, drawing.out())

    def make(name: str) -> None:
        figure = drawing.draw(name, results, options.width, options.style)
        written = drawing.save(figure, out, drawing.title(name), judging.caption(name, results), options.style)
        print(f"{name} -> {', '.join(str(path) for path in written)}", flush=True)
        for need in drawing.module(name).NEEDS:
            for note in results.of(need).notes:
                print(f"- {note}")

    return _each(options, list(drawing.known()), make)


def _each(options: argparse.Namespace, every: list[str], make: Callable[[str], None]) -> int:
    """Produce the requested items, or all items, and report items that lack cells.

    Returns the exit status: 1 if a requested item, or every item, lacks cells, and otherwise 0.

    Raises
    ------
    DataError
        There is no store.
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


#: Keys of the papers' claims, by the name of the paper on the command line.
PAPERS = {"drf": "DRF", "drfh": "DRFH", "mqdrf": "MQDRF", "pf": "PF", "lecture": "LEC"} | {
    name: name for name in ("gavel", "pop", "soroush")
}
#: Experiments of a paper whose names do not begin with the name of the paper.
_OTHERS = {"lecture": ("two_users",)}


def experiments_of(paper: str) -> list[str]:
    """Names of the experiments of a paper."""
    return [name for name in known() if name.startswith(f"{paper}_") or name in _OTHERS.get(paper, ())]


def figures_of(paper: str) -> list[str]:
    """Names of the figures that use only experiments of a paper."""
    mine = set(experiments_of(paper))
    return [name for name in drawing.known() if set(drawing.module(name).NEEDS) <= mine]


def reproduce(options: argparse.Namespace) -> int:
    """`fairopt reproduce`: compute the experiments of a paper, with its tables, figures, verdicts and claims.

    The exit status is 1 if a cell failed or a computed value of a claim is wrong, and 130 after Ctrl-C.
    """
    folder = Path(options.out or Path("reproduced", options.paper))
    judged = papers.judged(PAPERS[options.paper])
    chosen = judging.of_figure(judged, options.explain) if options.explain else []
    if options.explain and not chosen:
        figures = [name for name in drawing.known() if judging.of_figure(judged, name)]
        raise DataError(
            f"no statement of {options.paper} is judged by {options.explain!r}; known: {', '.join(figures)}"
        )
    names = list(dict.fromkeys(judging.wide(one.experiment) for one in chosen)) or experiments_of(options.paper)
    store, status = folder / "store", 0
    # These are the defaults of `fairopt sweep`, except the store.
    vars(options).update(store=store, threads=1, retry=False, accept_older=False, dask=None)
    seconds: dict[str, float] = {}
    for name in names:
        with _timed(seconds, f"experiment {name}"):
            status = max(status, computed(name, options))
        if status == STOPPED:
            return STOPPED
    if options.dry_run:
        return 0
    results, inches = report.Results(store, options.smoke, options.traces), options.width or PAGE
    if options.explain:
        return _explain(options.explain, chosen, results, folder, inches)
    with _timed(seconds, "tables"):
        made = [table for name in names for table in report.tables_of(name, results)]
        with _screen.remarks() as remarks:
            files = [path for table in made for path in table.write(folder / "tables", inches)]
    frame = pd.DataFrame()
    with _timed(seconds, "verdicts"):
        if (mine := [one for one in judged if one.experiment in names]) and not options.smoke:
            frame = judging.verdicts(mine, results)
            with _screen.remarks() as more:
                files += judging.table(options.paper, frame).write(folder / "tables", inches)
            remarks += more
            once = frame.drop_duplicates("claim")[["where", "claim", "verdict"]]
            _screen.say(": ".join(row) for row in once.itertuples(index=False, name=None))
    with _timed(seconds, "figures"):
        for name in figures_of(options.paper):
            figure = drawing.draw(name, results, options.width)
            files += drawing.save(figure, folder / "figures", name, judging.caption(name, results, frame))
    with _timed(seconds, "claims"):
        checked, written = _claims(PAPERS[options.paper], folder, inches)
        files += written
    if not names:  # without experiments only claims are computed
        print(_screen.table(checked[["claim", "printed", "ours", "verdict", "seconds"]], 56))
    said = manifest(options.paper, names, results, files, folder, papers.counts(checked), seconds)
    _files.write(folder / "manifest.json", json.dumps(said, indent=1) + "\n", "manifest")
    notes = dict.fromkeys(f"{name}: {note}" for name in names for note in results.of(name).notes)
    _screen.say(f"- {remark}" for remark in (*remarks, *notes))
    _screen.say([f"claims: {papers.summary(checked)}"])
    print(f"{len(files)} files -> {folder}, {folder / 'manifest.json'}; {sum(seconds.values()):.0f} s")
    return int(status > 0 or checked["verdict"].str.startswith(papers.NOT_REPRODUCED).any())


def _explain(name: str, chosen: list[papers.Judged], results: report.Results, folder: Path, inches: float) -> int:
    """Print the assumptions about a figure, the outcomes, and which statements hold under the same assumptions."""
    frame = judging.verdicts(chosen, results, judging.wide)
    print(_screen.table(judging.assumptions(chosen), 60), "", sep="\n")
    print(_screen.table(frame[["where", "claim", "assuming", "ours", "+- ours", "n", "outcome"]], 60), "", sep="\n")
    for one, verdict in zip(chosen, frame.drop_duplicates("claim")["verdict"], strict=True):
        print(f"{one.where}: {one.statement} ({one.printed}): {verdict}")
    same, under = judging.together(frame)
    if len(same) > 1:
        print(f"\nThese {len(same)} statements come out together: {' | '.join(under) or 'under no combination'}",
              *(f"- {claim}" for claim in same), sep="\n")  # fmt: skip
    with _screen.remarks():
        files = judging.table(name, frame).write(folder / "explained", inches)
    notes = dict.fromkeys(note for one in chosen for note in results.of(judging.wide(one.experiment)).notes)
    print(*(f"- {note}" for note in notes), f"-> {', '.join(map(str, files))}", sep="\n")
    return 0


def _claims(key: str, folder: Path, inches: float) -> tuple[pd.DataFrame, list[Path]]:
    """Check all claims of a paper; returns the table of claims, and the files written."""
    frame = papers.check(papers.claims(key), progress=True)
    columns = ["item", "statement", "where", "claim", "printed", "ours", "correct", "verdict", "note"]
    label = f"claims-{key.lower()}"  # the label must be unique in a document with tables of several papers
    with _screen.remarks():  # remarks on the table are not printed
        caption = f"Claims of {'the lecture' if key == 'LEC' else key}: {papers.summary(frame)}"
        written = report.write(frame[columns], folder, "claims", caption, inches, label, keep=papers.KEPT)
    return frame, written


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    begun = clock.cpu()
    yield
    seconds[step] = clock.cpu() - begun
