"""`fairopt reproduce PAPER`: a paper's tables, figures and claims from nothing, in a folder with a manifest."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import _clock, papers, report, sweeps
from .._libraries import pd
from ..model import _files
from ..report import figures as drawing
from ..report.stored import manifest
from ..report.typeset import PAGE
from ..sweeps.experiment import known
from ._screen import warn
from .figures import check_width
from .sweeps import STOPPED, outlook

#: Papers by what they are called here: the key of their claims. Their experiments begin with the name,
PAPERS = {"drf": "DRF", "drfh": "DRFH", "mqdrf": "MQDRF", "pf": "PF", "lecture": "LEC"}
#: or are these: the lecture draws what two users can have.
_OTHERS = {"lecture": ("two_users",)}


def experiments_of(paper: str) -> list[str]:
    """Its experiments, by name."""
    return [name for name in known() if name.startswith(f"{paper}_") or name in _OTHERS.get(paper, ())]


def figures_of(paper: str) -> list[str]:
    """The figures that are drawn from its experiments."""
    mine = set(experiments_of(paper))
    return [name for name in drawing.known() if set(drawing.module(name).NEEDS) <= mine]


def reproduce(options: argparse.Namespace) -> int:
    """`fairopt reproduce`; exit 1 if a cell failed or a claim is not reproduced, 130 after Ctrl-C."""
    check_width(options.width)
    folder = Path(options.out or Path("reproduced", options.paper))
    store = folder / "store"
    arguments = {"store": store, "smoke": options.smoke, "traces": options.traces}
    names = experiments_of(options.paper)
    if options.dry_run:
        for name in names:
            print(outlook(sweeps.plan(name, **arguments), options.jobs, False))
        return 0
    seconds: dict[str, float] = {}
    failed = 0
    for name in names:
        with _timed(seconds, f"experiment {name}"):
            try:
                frame = sweeps.sweep(
                    name, **arguments, jobs=options.jobs, threads=1, progress=sys.stderr.isatty(), say=warn
                )
            except sweeps.Interrupted as interrupted:
                warn(str(interrupted))
                warn("the same command goes on")
                return STOPPED
        failed += int((frame["status"] == "failed").sum())
        print(f"{name}: {_cells(frame['status'])} in {seconds[f'experiment {name}']:.1f} s", flush=True)
    results, inches = report.Results(store, options.smoke, options.traces), options.width or PAGE
    with _timed(seconds, "tables"):
        made = [table for name in names for table in report.tables_of(name, results)]
        files = [path for table in made for path in table.write(folder / "tables", inches)]
    with _timed(seconds, "figures"):
        for name in figures_of(options.paper):
            figure = drawing.draw(name, results, options.width)
            files += drawing.save(figure, folder / "figures", name, drawing.caption(name))
    with _timed(seconds, "claims"):
        verdicts, written = _claims(PAPERS[options.paper], folder, inches)
        files += written
    said = manifest(options.paper, names, results, files, folder, verdicts, seconds)
    _files.write(folder / "manifest.json", json.dumps(said, indent=1) + "\n", "manifest")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    print(
        f"claims: {counts}\n{len(files)} files -> {folder}, {folder / 'manifest.json'}; {sum(seconds.values()):.0f} s"
    )
    return int(failed > 0 or papers.NOT_REPRODUCED in verdicts)


def _cells(status: pd.Series[str]) -> str:
    """Number of cells, and of those without a certified answer."""
    missed, failed = ((status == kind).sum() for kind in ("missed", "failed"))
    parts = [f"{missed} missed their tolerance"] * bool(missed) + [f"{failed} failed"] * bool(failed)
    return f"{len(status)} cells" + f" ({', '.join(parts)})" * bool(parts)


def _claims(key: str, folder: Path, inches: float) -> tuple[dict[str, int], list[Path]]:
    """Every claim, computed now: how many of each verdict, and the files of the table."""
    frame = papers.check(papers.claims(key), progress=sys.stderr.isatty())
    columns = ["item", "where", "claim", "printed", "ours", "correct", "verdict", "note"]
    kinds = frame["verdict"].str.split(",").str[0].value_counts()
    verdicts = {str(kind): int(count) for kind, count in kinds.items()}
    label = f"claims-{key.lower()}"  # of which a document may have several
    return verdicts, report.write(frame[columns], folder, "claims", f"Claims of {key}, checked", inches, label)


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    begun = _clock.now()
    yield
    seconds[step] = _clock.now() - begun
