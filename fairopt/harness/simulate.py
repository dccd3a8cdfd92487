"""`Simulate`: jobs of cells that run a scheduling policy on a workload over time, and their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .. import mechanisms
from ..base import clock
from ..base.errors import DataError
from ..base.libraries import pd
from ..mechanisms import Mechanism
from ..scheduling import policies
from ..scheduling.dedicated_servers import dedicated
from ..scheduling.fluid import FluidSchedule, fluid
from ..scheduling.policies import Policy
from ..scheduling.schedule import Schedule
from ..scheduling.setup import Slows, Thrashing
from ..scheduling.simulator import simulate
from ..scheduling.workload import Workload
from . import code, origin
from .cell import Cell, Named, Row
from .schema import SIMULATIONS, Schema
from .solve import named

#: Optional long tables of a cell, beside its row and the utilization by resource.
MEASURES = ("timeline", "shares", "jobs", "users", "demands")
FLUID, DEDICATED = "fluid:", "dedicated:"
#: Default interval in seconds between decisions of fluid allocations, from PF, section 6.
EVERY = 300.0
#: Entries of summaries that are columns of a row.
_SUMMARY = (
    "jobs done",
    "tasks done",
    "tasks waiting",
    "restarts",
    "mean response",
    "median response",
    "end",
    "certificate",
)
#: Significant digits to which demands are rounded; with fewer, demands that a scheduler distinguishes would be equal.
_DIGITS = 3


@dataclass(frozen=True)
class Alone:
    """Simulations of single users, each on dedicated servers."""

    schedules: dict[str, Schedule]

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C stopped one of the simulations."""
        return any(one.interrupted for one in self.schedules.values())

    @property
    def jobs(self) -> pd.DataFrame:
        """Jobs of all users, with the columns of `Schedule.jobs`."""
        return pd.concat([one.jobs for one in self.schedules.values()])

    @property
    def users(self) -> pd.DataFrame:
        """All users, with the columns of `Schedule.users`; dominant shares are relative to the servers of the user."""
        return pd.concat([one.users for one in self.schedules.values()])

    @property
    def tasks(self) -> pd.DataFrame:
        """Tasks of all users, with the columns of `Schedule.tasks`."""
        return pd.concat([one.tasks for one in self.schedules.values()])

    @property
    def timeline(self) -> pd.DataFrame:
        """Timelines of all users, with the columns of `Schedule.timeline`, indexed by user and time."""
        return pd.concat({user: one.timeline for user, one in self.schedules.items()}, names=["user"])

    @property
    def utilization(self) -> pd.Series:
        """Mean utilization by resource over users, weighted by the capacity and duration of each simulation."""
        each = [(one.utilization, one.workload.total * one.end) for one in self.schedules.values()]
        total = sum(weight for _, weight in each)
        return sum(use.fillna(0.0) * weight for use, weight in each) / total

    def summary(self) -> pd.Series:
        """Counts summed over users, mean and median response over jobs, and the latest end of a simulation."""
        each, response = [one.summary() for one in self.schedules.values()], self.jobs["response"]
        found = {name: sum(one[name] for one in each) for name in _SUMMARY[:4]}
        times = {"mean response": float(response.mean()), "median response": float(response.median())}
        return pd.Series(found | times | {"end": max(one["end"] for one in each)}, dtype=object)


#: Result of a simulation on common servers, of a fluid allocation, or of simulations on dedicated servers.
Ran = Schedule | FluidSchedule | Alone


def _prefixed(text: str) -> tuple[str, str]:
    prefix = next((one for one in (FLUID, DEDICATED) if text.startswith(one)), "")
    return prefix, text.removeprefix(prefix)


def parse(text: str) -> Policy | Mechanism:
    """Parse `POLICY` and `dedicated:POLICY` to a policy, and `fluid:MECHANISM` to a mechanism.

    Raises
    ------
    DataError
        The text names no policy or mechanism, or more than one.
    """
    prefix, inside = _prefixed(text)
    return mechanisms.one(inside) if prefix == FLUID else policies.one(inside)


@dataclass(frozen=True)
class Simulate:
    """Policy, with the parameters of its simulation.

    Attributes
    ----------
    what : Named
        The policy, or the mechanism of a fluid allocation.
    until : float or None
        End of the simulation in seconds.
    every : float or None
        Seconds between samples of the timeline, and between decisions of fluid allocations. Default: 500 samples in
        all, and a decision every 300 s.
    impossible : str
        "report" or "raise", for tasks that no server can run.
    thrashing : float or None
        Factor by which tasks on overcommitted servers slow down; None: no slowdown.
    slows : str
        Tasks that slow down, `short` or `all`: the field `slows` of `Thrashing`.
    half_life : str or None
        Half-life of past usage in the weights of fluid allocations; None: past usage has no effect.
    """

    what: Named[Policy | Mechanism]
    until: float | None
    every: float | None
    impossible: str
    thrashing: float | None
    slows: Slows = "short"
    half_life: str | None = None

    schema: ClassVar[Schema] = SIMULATIONS
    random: ClassVar[bool] = False

    @classmethod
    def of(cls, text: str, *how: Any) -> Simulate:
        """Construct from the text of a policy, which is stored in canonical form, and the further fields in order.

        An invalid text raises `DataError`.
        """
        made = parse(text)
        inside = named(made).text if isinstance(made, Mechanism) else str(made)
        return cls(Named(_prefixed(text)[0] + inside, parse), *how)

    @property
    def fields(self) -> Row:
        """Parameters that enter the key of the cell."""
        left = {"what"} | ({"slows"} if self.slows == "short" else set())
        left |= {"half_life"} if self.half_life is None else set()
        return {"policy": self.what.text} | {name: value for name, value in vars(self).items() if name not in left}

    @property
    def asked(self) -> Row:
        """Columns of a row that describe the question; `options` has the parameters without a column of their own."""
        asked = self.fields
        options = {"impossible": asked.pop("impossible"), "thrashing": self.thrashing}
        options |= {name: asked.pop(name) for name in ("slows", "half_life") if name in asked}
        return asked | {"name": self.what.text.partition("(")[0], "options": options}

    def code(self, measures: tuple[str, ...]) -> str:
        """Digest of the code of the simulator and the policy, or of the solvers and the mechanism."""
        rooms: tuple[str, ...] = code.SIMULATING
        if self.what.text.startswith(FLUID):
            rooms = tuple(sorted({*rooms, *code.solving()}))
        kind: type = type(self.what.made)
        return code.of(kind, *rooms)

    def warm(self) -> None:
        """Do nothing, since the seconds of simulations exclude compilation."""

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Simulate, and return the columns of a row that describe the result.

        Raises `KeyboardInterrupt` if Ctrl-C stopped the simulation.
        """
        watch = clock.Watch()
        workload = origin.workload(cell.origin, cell.seed, cell.repetition, traces)
        drawing, watch = watch.cpu, clock.Watch()
        found = self.run(workload)
        if found.interrupted:
            raise KeyboardInterrupt  # an incomplete simulation is not a result
        took = {"drawing": drawing, "simulate": watch.cpu, "wall": watch.seconds}
        return _of_workload(workload) | took | numbers(found) | _long(found, cell.measures)

    def run(self, workload: Workload, progress: bool = False) -> Ran:
        """Run the policy on a workload; an option that does not apply to the kind of simulation raises `DataError`."""
        what: Any = self.what.made
        if self.what.text.startswith(FLUID):
            if self.thrashing is not None:
                raise DataError(f"{self.what} never over-commits servers; leave out thrashing")
            every = EVERY if self.every is None else self.every
            how: dict[str, Any] = {"until": self.until, "half_life": self.half_life, "progress": progress}
            return fluid(workload, what, every=every, throw=False, **how)
        if self.half_life is not None:
            raise DataError(f"{self.what} has no memory of use; a half-life is that of a policy {FLUID}MECHANISM")
        how = {
            "until": self.until,
            "thrashing": None if self.thrashing is None else Thrashing(self.thrashing, self.slows),
            "timeline": self.every,
            "progress": progress,
        }
        if self.what.text.startswith(DEDICATED):
            return Alone(dedicated(workload, what, **how))
        return simulate(workload, what, impossible="report" if self.impossible == "report" else "raise", **how)


def jobs(values: Mapping[str, tuple[Any, ...]]) -> Iterator[Simulate]:
    """Yield the jobs of a grid of policies and parameters, given its values by key."""
    until, every = (None if values[key][0] is None else float(values[key][0]) for key in ("until", "every"))
    for factor, slows in product(values["thrashing"], values["slows"]):
        if slows != values["slows"][0] and factor in (None, 1):
            continue  # no task slows down, so that `slows` has no effect
        for text in values["policies"]:
            thrashing = None if factor is None else float(factor)
            yield Simulate.of(text, until, every, values["impossible"][0], thrashing, slows)


def numbers(found: Ran) -> Row:
    """Measures of a simulation or of a fluid allocation, as columns of a row; NaN becomes None."""
    said = found.summary()
    row: Row = {"status": "missed" if said.get("flagged") else "ok"}
    row |= {name.replace(" ", "_"): said[name] for name in _SUMMARY if name in said}
    if isinstance(found, Schedule):
        row["mean_wait"] = float((found.tasks["start"] - found.tasks["arrival"]).mean())
    row["utilization"] = float(found.utilization.mean())
    return {name: None if value != value else value for name, value in row.items()}


def _of_workload(workload: Workload) -> Row:
    users, servers, resources = workload.shape
    return {
        "about": workload.source, "report": json.dumps(workload.report), "users": users, "servers": servers,
        "resources": resources, "jobs": len(workload.jobs), "tasks": workload.tasks,
        "load": workload.load() if workload.span else None,
    }  # fmt: skip


def _long(found: Ran, asked: tuple[str, ...]) -> Row:
    use = found.utilization
    tables = {"use": pd.DataFrame({"resource": use.index, "utilization": use.to_numpy()})}
    if not isinstance(found, Alone):
        makers = {"timeline": _timeline, "shares": _shares, "demands": _demands}
        tables |= {name: make(found) for name, make in makers.items() if name in asked}
    if "jobs" in asked:
        frame = found.jobs.reset_index()
        if "tasks_done" not in frame:
            frame["tasks_done"] = np.where(frame["state"] == "done", frame["tasks"], 0)
        tables["each_job"] = frame
    if "users" in asked:
        tables["each_user"] = found.users.reset_index()
    return {name: _records(table, list(SIMULATIONS.long[name])) for name, table in tables.items()}


def _demands(found: Schedule | FluidSchedule) -> pd.DataFrame:
    """Numbers of tasks by their demands of the first two resources, relative to the mean capacity of a server.

    Demands are rounded to `_DIGITS` significant digits.
    """
    w = found.workload
    part = w.demand[:, :2] / (w.total[:2] / len(w.servers))
    unit = 10.0 ** (np.floor(np.log10(np.where(part > 0, part, 1.0))) - _DIGITS + 1)
    rounded = np.rint(part / unit) * unit
    frame = pd.DataFrame(rounded, columns=["first", "second"][: part.shape[1]]).assign(tasks=np.diff(w.first))
    return frame.groupby([name for name in frame if name != "tasks"], as_index=False)["tasks"].sum()


def _records(table: pd.DataFrame, columns: list[str]) -> list[Row]:
    """Convert a table to rows for the store; absent columns and NaN become None."""
    some = table.reindex(columns=columns).astype(object)
    rows: list[Row] = some.where(some.notna(), None).to_dict(orient="records")
    return rows


def _timeline(found: Schedule | FluidSchedule) -> pd.DataFrame:
    """Timeline in long format (time, what, value): utilization by resource, and numbers of tasks or jobs."""
    use = {name: f"use_{name}" for name in found.workload.resources}
    frame = found.timeline
    if isinstance(found, FluidSchedule):
        frame = frame[[*use, "players", "waiting", "span"]]
    return _stacked(frame.rename(columns=use).astype(float), "what", "value")


def _shares(found: Schedule | FluidSchedule) -> pd.DataFrame:
    if isinstance(found, FluidSchedule):
        return found.shares.rename(columns={"player": "user"})
    return _stacked(found.shares, "user", "share")


def _stacked(frame: pd.DataFrame, columns: str, values: str) -> pd.DataFrame:
    return frame.rename_axis(index="time", columns=columns).stack().rename(values).reset_index()
