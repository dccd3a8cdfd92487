"""What a cell of a simulation does: make the workload, run the policy, keep what was asked for."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ... import _clock, _plugins
from ..._libraries import pd
from ...errors import DataError
from ...model import _files
from ...scheduling.fluid_schedule import FluidSchedule
from ...scheduling.schedule import Schedule
from ...scheduling.workload import Workload
from .._ends import Elsewhere
from ..provenance import provenance
from ..schema import SIMULATIONS
from . import runners, workloads
from .cells import Simulation

Row = dict[str, Any]
#: Steps of a decade to which demands are rounded.
_DIGITS = 8


def run(cell: Simulation, traces: str | None = None, threads: int | None = 1) -> Row:
    """The row of a cell: numbers, or the error.

    Raises
    ------
    Elsewhere
        This process cannot answer: its code, its data or its plug-ins are other than where the sweep was started.
    """
    _check(cell)
    watch = _clock.Watch()
    try:
        row = requested(cell) | _simulated(cell, traces)
    except Elsewhere:
        raise
    except Exception as error:  # a row, not the end of a sweep of hundreds
        row = failed(cell, error)
    return row | _here(threads) | {"elapsed": watch.seconds, "loops": watch.loops}


def failed(cell: Simulation, error: BaseException) -> Row:
    """The row of a cell that has only an error."""
    text = _files.unplaced(f"{type(error).__name__}: {' '.join(str(error).split())}")
    return requested(cell) | _here(None) | {"status": "failed", "error": text}


def requested(cell: Simulation) -> Row:
    """What the row says of the question."""
    options = {name: getattr(cell, name) for name in ("impossible", "thrashing", "measures")}
    plugged = {"plugins": dict(cell.plugins)} if cell.plugins else {}
    return {
        "key": cell.key, "experiment": cell.experiment, "workload": cell.workload, "source": cell.origin.named,
        "data": cell.origin.kind, "digest": cell.origin.digest, "seed": cell.seed, "repetition": cell.repetition,
        "policy": cell.policy, "name": runners.name(cell.policy), "until": cell.until, "every": cell.every,
        "thrashing": cell.thrashing,
        "options": json.dumps(options | plugged, sort_keys=True), "question": cell.question, "code": cell.code,
    }  # fmt: skip


def _check(cell: Simulation) -> None:
    """Is here what the sweep was started with?"""
    try:
        _plugins.needed(cell.plugins)
        here = runners.digest(cell.policy)
    except DataError as error:
        raise Elsewhere(str(error)) from None
    if here != cell.code:
        raise Elsewhere(f"a worker on {platform.node()} has other code for {cell.policy}; install the same")


def _here(threads: int | None) -> Row:
    return provenance() | {"process": os.getpid(), "threads": threads or 0, "finished": datetime.now(UTC)}


def _simulated(cell: Simulation, traces: str | None) -> Row:
    begun = _clock.now()
    workload = workloads.build(cell.origin, cell.seed, cell.repetition, traces)
    drawing, watch = _clock.now() - begun, _clock.Watch()
    found = runners.run(cell.policy, workload, cell.options)
    if found.interrupted:
        raise KeyboardInterrupt  # half a simulation is not a result
    took = {"drawing": drawing, "simulate": watch.cpu, "wall": watch.seconds}
    return _of_workload(workload) | took | numbers(found) | _long(found, cell)


def numbers(found: runners.Ran) -> Row:
    """What is said of a simulation in one row, whichever kind it is of."""
    if isinstance(found, runners.Alone):
        return _of_users(found)
    return _of_fluid(found) if isinstance(found, FluidSchedule) else _of_schedule(found)


def _of_users(found: runners.Alone) -> Row:
    """Everybody's counts together; mean times are of jobs."""
    each = [_of_schedule(one) for one in found.schedules.values()]
    counts = ("jobs_done", "tasks_done", "tasks_waiting", "restarts")
    response = found.jobs["response"]
    return {"status": "ok", "end": max(one["end"] for one in each)} | {
        "mean_response": _number(response.mean()), "median_response": _number(response.median()),
        "utilization": float(found.utilization().mean()),
    } | {name: sum(one[name] for one in each) for name in counts}  # fmt: skip


def _of_workload(workload: Workload) -> Row:
    users, servers, resources = workload.shape
    return {
        "about": workload.source, "report": json.dumps(workload.report), "users": users, "servers": servers,
        "resources": resources, "jobs": len(workload.jobs), "tasks": workload.tasks,
        "load": workload.load() if workload.span else None,
    }  # fmt: skip


def _of_schedule(found: Schedule) -> Row:
    said = found.summary()
    wait = (found.tasks["start"] - found.tasks["arrival"]).dropna()
    return {
        "status": "ok", "jobs_done": said["jobs done"], "tasks_done": said["tasks done"],
        "tasks_waiting": said["tasks waiting"], "restarts": said["restarts"],
        "mean_response": _number(said["mean response"]), "median_response": _number(said["median response"]),
        "mean_wait": _number(wait.mean()), "utilization": float(found.utilization().mean()), "end": found.end,
    }  # fmt: skip


def _of_fluid(found: FluidSchedule) -> Row:
    said = found.summary()
    return {
        "status": "missed" if said["flagged"] else "ok", "jobs_done": said["jobs done"],
        "mean_response": _number(said["mean response"]), "median_response": _number(said["median response"]),
        "utilization": float(found.utilization().mean()), "end": found.end, "certificate": said["certificate"],
    }  # fmt: skip


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _long(found: runners.Ran, cell: Simulation) -> Row:
    use = found.utilization()
    tables = {"use": pd.DataFrame({"resource": use.index, "utilization": use.to_numpy()})}
    if not isinstance(found, runners.Alone):
        makers = {"timeline": _timeline, "shares": _shares, "demands": _demands}
        tables |= {name: make(found) for name, make in makers.items() if name in cell.measures}
    if "jobs" in cell.measures:
        frame = found.jobs.reset_index()
        if "tasks_done" not in frame:
            frame["tasks_done"] = np.where(frame["state"] == "done", frame["tasks"], 0)
        tables["each_job"] = frame
    if "users" in cell.measures:
        tables["each_user"] = found.users.reset_index()
    return {name: _records(table, list(SIMULATIONS.long[name])) for name, table in tables.items()}


def _demands(found: Schedule | FluidSchedule) -> pd.DataFrame:
    """How many tasks ask for how much of the first two resources, in parts of what servers have of it on average.

    Amounts are rounded to `_DIGITS` a decade on a logarithmic scale.
    """
    w = found.run.workload if isinstance(found, FluidSchedule) else found.workload
    part = w.demand[:, :2] / (w.total[:2] / len(w.servers))
    with np.errstate(divide="ignore"):
        rounded = np.where(part > 0, 10 ** (np.rint(np.log10(part) * _DIGITS) / _DIGITS), 0.0)
    frame = pd.DataFrame(rounded, columns=["first", "second"][: part.shape[1]]).assign(tasks=np.diff(w.first))
    return frame.groupby([name for name in frame if name != "tasks"], as_index=False)["tasks"].sum()


def _records(table: pd.DataFrame, columns: list[str]) -> list[Row]:
    """Rows for the store: columns that a table lacks are missing, as are numbers that are none."""
    some = table.reindex(columns=columns).astype(object)
    rows: list[Row] = some.where(some.notna(), None).to_dict(orient="records")
    return rows


def _timeline(found: Schedule | FluidSchedule) -> pd.DataFrame:
    """Time, what, value: the use of every resource, and numbers of tasks or jobs."""
    workload = found.run.workload if isinstance(found, FluidSchedule) else found.workload
    use = {name: f"use_{name}" for name in workload.resources}
    frame = found.timeline
    if isinstance(found, FluidSchedule):
        frame = frame[[*use, "players", "waiting", "span"]]
    frame = frame.rename(columns=use).astype(float)
    frame.index.name = "time"
    frame.columns.name = "what"
    return frame.stack().rename("value").reset_index()


def _shares(found: Schedule | FluidSchedule) -> pd.DataFrame:
    if isinstance(found, FluidSchedule):
        return found.shares.rename(columns={"player": "user"})
    frame = found.shares
    frame.index.name, frame.columns.name = "time", "user"
    return frame.stack().rename("share").reset_index()
