"""The commands sweep and results: computation of experiments into the store, and rows of the store."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from ... import harness
from ...base.errors import DataError, FairoptError
from ...base.libraries import pd
from ...base.names import alike
from ...harness import report
from ...harness.executors import dask
from ...harness.experiment import known
from ...harness.schema import CELLS, SIMULATIONS, Schema
from ...model import _validate
from ...study.compare import NOTE, marked
from ...study.metrics import KNOWN
from ._open import existing
from ._screen import warn
from ._slips import listed

#: Default columns of `fairopt results` for allocations.
_SHOWN = ["cluster", "mechanism", "answered", "order", "status", "utilization", "min_share", "jain", "certificate",
          "rounds", "seconds"]  # fmt: skip
#: Default columns of `fairopt results` for simulations.
_SHOWN_OF_SIMULATIONS = ["workload", "policy", "repetition", "status", "utilization", "jobs", "jobs_done",
                         "mean_response", "tasks_waiting", "simulate"]  # fmt: skip
#: Formats for human readers; files in these formats have only the displayed columns.
_FOR_PEOPLE = (".md", ".tex")

#: Exit status after Ctrl-C.
STOPPED = 130


def sweep(options: argparse.Namespace) -> int:
    """`fairopt sweep`: compute experiments one after another; exit status 1 if cells failed, 130 after Ctrl-C."""
    _validate.whole(options.jobs, "--jobs")
    _validate.whole(options.threads, "--threads", 0)
    if options.list:
        return _list(options)
    names = [*options.experiments, *_needed(options.purpose)]
    if not names:
        raise DataError(f"name an experiment or its file; known: {', '.join(known()) or 'none here'}")
    for name in names:
        harness.load(name, options.smoke)  # all files are validated before hours of computation
    status = 0
    for name in dict.fromkeys(names):
        status = max(status, computed(name, options))
        if status == STOPPED:
            break
    return status


def _needed(purpose: str | None) -> list[str]:
    """Names of experiments for "tables" (of quick experiments) or "figures"; none without a purpose."""
    if purpose == "tables":
        return [name for name in known() if harness.load(name).quick]
    if purpose == "figures":
        from ...harness.report import figures as drawing  # deferred, as Matplotlib is needed for this purpose only

        return [need for name in drawing.known() for need in drawing.module(name).NEEDS]
    return []


def _wanted(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("store", "smoke", "traces", "accept_older")}


def computed(name: str, options: argparse.Namespace) -> int:
    """Compute an experiment, or print its plan (`--dry-run`); exit status 1 if cells failed, 130 after Ctrl-C."""
    arguments = _wanted(options) | {"retry": options.retry}
    if options.dry_run:
        print(outlook(harness.plan(name, **arguments), options.jobs, options.accept_older))
        return 0
    try:
        with dask(options.dask) if options.dask else nullcontext((None, options.jobs)) as (executor, jobs):
            frame = harness.sweep(
                name, **arguments, jobs=jobs, executor=executor, threads=options.threads or None,
                progress=sys.stderr.isatty(), say=warn,
            )  # fmt: skip
    except harness.Interrupted as interrupted:
        warn(str(interrupted))
        return STOPPED
    named = "policy" if "policy" in frame else "mechanism"
    failed = frame[frame["status"] == "failed"]
    missed = int((frame["status"] == "missed").sum())
    folder = harness.store_of(options.store, options.smoke, harness.load(name, options.smoke).schema).folder
    print(f"{Path(name).stem}: {len(frame)} cells in {folder}: {len(frame) - len(failed) - missed} ok, "
          f"{missed} missed their tolerance, {len(failed)} failed")  # fmt: skip
    kinds = failed.groupby("error", sort=False).agg(cells=("key", "size"), first=(named, "first"))
    for error, row in kinds.iterrows():
        print(f"- {row.cells} x {error} (such as {row.first})")
    if len(failed):
        print("fairopt sweep --retry computes failed cells again")
    return int(len(failed) > 0)


def results(options: argparse.Namespace) -> int:
    """`fairopt results`: print or export rows of the store."""
    store = harness.store_of(options.store, options.smoke, _schema(options))
    contents = store.read()
    for key in contents.damaged:
        warn(f"not read: row {key}, damaged on the disk")
    cells = _chosen(contents, options)
    frame, shown = _columns(contents, cells, options)
    if options.experiment is None:
        existing(store.folder)
    note = NOTE if "pooled" in cells and cells["pooled"].any() else None
    if options.export:
        report.export(frame[shown], options.export, note)
        print(f"{len(frame)} rows -> {options.export}")
    else:
        print(report.for_people(frame[shown]).to_string(index=False, max_colwidth=72) if len(frame) else "no cells")
        if note:
            print(note)
    return 0


def _chosen(contents: harness.Contents, options: argparse.Namespace) -> pd.DataFrame:
    """Select cells by the options; cells that were solved on pooled servers are marked, and come last."""
    frame = _stored(contents, options)
    if contents.schema is CELLS:
        frame = contents.with_measures(frame)
    if options.failed:
        frame = frame[frame["status"] == "failed"]
    for condition in listed(options.where) or []:
        frame = _filtered(frame, condition)
    if contents.schema is CELLS:
        frame = frame.sort_values("pooled", kind="stable")
        frame["mechanism"] = marked(frame["mechanism"], frame["pooled"])
    return frame


def _columns(
    contents: harness.Contents, cells: pd.DataFrame, options: argparse.Namespace
) -> tuple[pd.DataFrame, list[str]]:
    """Build the selected table of the given cells, with the names of the columns to show."""
    schema = contents.schema
    whole = options.export is not None and options.export.suffix not in _FOR_PEOPLE
    frame, shown = cells, list(cells.columns) if whole else _shown(cells, options.experiment)
    if options.table != "cells":
        long = contents.long(options.table, cells["key"])
        simulated = schema is SIMULATIONS
        labels = ["workload", "policy", "repetition"] if simulated else ["cluster", "mechanism", "order", "repetition"]
        left = cells[["key", *labels]].drop(columns=[name for name in labels if name in schema.long[options.table]])
        frame, shown = left.merge(long, on="key"), [*labels, *schema.long[options.table]]
    elif options.failed and not whole:
        what = ["workload", "policy"] if schema is SIMULATIONS else ["cluster", "mechanism", "engine"]
        shown = ["key", *what, "error"]
    if columns := listed(options.columns):
        shown = list(frame.columns) if columns == ["all"] else columns
        if strange := [name for name in shown if name not in frame]:
            raise DataError(f"there is no column {strange[0]!r}; there are {', '.join(frame.columns)}")
    return frame, list(dict.fromkeys(["key"] * whole + shown))


def _stored(contents: harness.Contents, options: argparse.Namespace) -> pd.DataFrame:
    """Rows of the experiment or of the whole store; `this_code` is False for rows computed by another code version."""
    if options.experiment is None:
        frame = contents.frame()
    else:
        every = harness.cells_of(harness.load(options.experiment, options.smoke), options.traces)
        matched = harness.match(every, contents, accept_older=True)
        frame = contents.frame(matched.answered)
        if older := matched.warning(options.accept_older):
            warn(older)
        if len(frame) < len(every):
            missing = f"{len(every) - len(frame)} of {len(every)} cells are missing"
            warn(f"{missing}: fairopt sweep {options.experiment}{' --smoke' * options.smoke}")
    return frame.assign(this_code=harness.by_this_code(frame))


def _shown(frame: pd.DataFrame, experiment: str | None) -> list[str]:
    """Default columns, the measures of an experiment, and `this_code` if another code version computed some rows."""
    usual = _SHOWN_OF_SIMULATIONS if "policy" in frame else _SHOWN
    if experiment is not None:
        usual = [*usual, *(name for name in frame if name in KNOWN and name not in CELLS.columns)]
    return usual if frame["this_code"].all() else [*usual[:2], "this_code", *usual[2:]]


def _schema(options: argparse.Namespace) -> Schema:
    """Schema of the selected cells: allocations or simulations."""
    named = options.experiment is not None and harness.load(options.experiment, options.smoke).schema is SIMULATIONS
    return SIMULATIONS if named or options.simulations else CELLS


def _list(options: argparse.Namespace) -> int:
    for name in known():
        try:
            plan = harness.plan(name, **_wanted(options))
        except FairoptError as error:
            print(f"{name}: {error}")
            continue
        print(f"{name}: {plan.experiment.title} [{len(plan.cells) - len(plan.missing)}/{len(plan.cells)} cells]")
    return 0


def outlook(plan: harness.Plan, jobs: int, accepted: bool) -> str:
    """Summary of a plan: number of cells, and estimated time of missing cells."""
    seconds, unknown = plan.seconds()
    stored, known = len(plan.cells) - len(plan.missing), len(plan.missing) - unknown
    text = f"{plan.experiment.name}: {len(plan.cells)} cells, {stored} stored ({len(plan.failed)} failed), "
    text += f"{len(plan.missing)} to compute"
    if known:
        text += f"; about {timedelta(seconds=round(seconds / jobs))} h for {known} of them with {jobs} process(es)"
    if unknown:
        text += f"; no similar cells are stored to estimate the time of {unknown} of them"
        if minutes := plan.experiment.minutes * unknown / len(plan.cells) / jobs * (not plan.experiment.smoke):
            text += f", which once took {timedelta(seconds=round(60 * minutes))} h"
    if line := plan.matched.warning(accepted):
        text += f"\n{plan.experiment.name}: {line}"
    return "\n".join([text, *plan.damaged])


def _filtered(frame: pd.DataFrame, condition: str) -> pd.DataFrame:
    name, equals, value = condition.partition("=")
    if not equals or name not in frame:
        raise DataError(f"--where {condition!r}: write COLUMN=VALUE, with a column of {', '.join(frame.columns)}")
    if pd.api.types.is_numeric_dtype(frame[name]):
        try:
            return frame[frame[name] == float(value)]
        except ValueError:
            raise DataError(f"--where {condition!r}: {name} is a number") from None
    return frame[frame[name].map(alike) == alike(value)]
