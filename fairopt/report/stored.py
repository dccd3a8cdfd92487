"""What a store holds of an experiment, for tables and figures. It reads; what is missing is an error that says how."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._libraries import pd
from ..errors import DataError
from ..sweeps.cell import Cell
from ..sweeps.experiment import cells_of, load
from ..sweeps.schema import CELLS
from ..sweeps.store import Contents
from ..sweeps.sweep import match, store_of
from ..workloads._registry import CLUSTERS, WORKLOADS
from ..workloads._sources import Sources


class MissingCells(DataError):
    """The store lacks cells of an experiment; the message names the sweep that computes them."""


@dataclass(frozen=True)
class StoredCells:
    """The cells of one experiment as the store has them.

    `cells` has one row per cell that gave numbers, in the order of the experiment; `experiment` and `cluster` (of
    simulations `workload`) are those of this experiment, whichever computed the cell first, and `alpha` is infinite for
    PS-DSF. `notes` say what a reader must know: stand-ins for traces, cells that failed (left out: they are in
    `failed`) or missed their tolerance (kept).
    """

    cells: pd.DataFrame
    failed: pd.DataFrame
    notes: tuple[str, ...]
    contents: Contents = field(repr=False)

    def long(self, name: str) -> pd.DataFrame:
        """A long table (`use`, `curve`, `reached`, `allocated`), with the columns of its cells beside it."""
        inside = self.contents.long(name, self.cells["key"])
        left = self.cells.drop(columns=[column for column in inside if column != "key" and column in self.cells])
        return left.merge(inside, on="key")


@dataclass
class Results:
    """A store as tables and figures read it: `results.of("frontier")`.

    Parameters
    ----------
    store : its folder; default: `results/store`, and `results/smoke/store` for tiny versions
    smoke : read the tiny versions of the experiments
    traces : folder of the real traces; default: FAIROPT_TRACES. Decides which cells are meant
    accept_older : take answers of other code of fairopt or of the mechanism as well; a note says how many
    """

    store: Path | None = None
    smoke: bool = False
    traces: str | None = None
    accept_older: bool = False
    _contents: dict[str, Contents] = field(default_factory=dict, repr=False)
    _found: dict[str, StoredCells] = field(default_factory=dict, repr=False)

    def of(self, experiment: str | Path) -> StoredCells:
        """All cells of an experiment.

        Raises
        ------
        MissingCells
            The store lacks some, or all of them failed; the message names the sweep.
        DataError
            No such experiment.
        """
        name = str(experiment)
        if name not in self._found:
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> StoredCells:
        experiment = load(name, self.smoke)
        every = cells_of(experiment, self.traces)
        store = store_of(self.store, self.smoke, experiment.schema)
        kind = experiment.schema.format
        if kind not in self._contents:
            self._contents[kind] = store.read()
        contents = self._contents[kind]
        matched = match(every, contents, self.accept_older)
        wanted = matched.answered
        older = matched.warning(self.accept_older)
        if len(wanted) < len(every):
            raise MissingCells(
                f"{len(every) - len(wanted)} of {len(every)} cells of {name} are not in {store.folder}; compute them "
                f"with: {self._command(name)}{f'. {older}' if older else ''}"
            )
        frame = contents.frame(wanted)
        chosen = [wanted[key] for key in frame["key"]]
        frame["experiment"] = [cell.experiment for cell in chosen]
        frame[experiment.schema.source] = [cell.source for cell in chosen]
        if experiment.schema is CELLS:
            frame["alpha"] = frame["alpha"].where(frame["name"] != "ps-dsf", math.inf)
            frame = _with_measures(frame, contents.long("measured", wanted))
        notes = _notes(frame, chosen, f"fairopt sweep {Path(name).name}{' --smoke' * self.smoke} --retry")
        if older and self.accept_older:
            notes = (older, *notes)
        bad = frame["status"] == "failed"
        frame, failed = (part.reset_index(drop=True) for part in (frame[~bad], frame[bad]))
        if frame.empty:
            raise MissingCells(f"every cell of {name} failed; try again with: {self._command(name)} --retry")
        return StoredCells(frame, failed, notes, contents)

    def _command(self, name: str) -> str:
        folder, usual = (store_of(store, self.smoke).folder for store in (self.store, None))
        where = "" if folder == usual else f" --store {folder}"
        traces = f" --traces {self.traces}" if self.traces else ""
        return f"fairopt sweep {name}{' --smoke' if self.smoke else ''}{where}{traces}"


def _with_measures(frame: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Cells with a column for each measure of a plug-in."""
    if measured.empty:
        return frame
    return frame.merge(measured.pivot(index="key", columns="measure", values="value"), on="key", how="left")


def _notes(frame: pd.DataFrame, chosen: list[Cell], retry: str) -> tuple[str, ...]:
    notes = []
    stand_ins = sorted({cell.origin.text for cell in chosen if _stands_in(cell)})
    if stand_ins:
        notes.append(f"no trace here: calibrated generators stand in ({', '.join(stand_ins)})")
    count = Counter(frame["status"])
    if count["failed"]:
        notes.append(f"{count['failed']} of {len(frame)} cells failed and are left out; {retry}")
    if count["missed"]:
        notes.append(f"{count['missed']} of {len(frame)} cells missed their tolerance and are kept")
    return tuple(notes)


def _stands_in(cell: Cell) -> bool:
    """Was a trace asked for, and is there none?"""
    sources: Sources[Any] = CLUSTERS if cell.job.schema is CELLS else WORKLOADS
    kind = cell.origin.text.partition("?")[0].partition(":")[0]
    return cell.origin.kind == "generator" and sources.aliases.get(kind, kind) in sources.stand_ins
