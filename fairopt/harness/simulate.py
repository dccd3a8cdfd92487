"""`Simulate`: a policy on a workload over time, and the row of numbers that comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from ..scheduling.setup import Thrashing
from ..scheduling.simulator import simulate
from ..scheduling.workload import Workload
from . import code, origin
from .cell import Cell, Named, Row
from .schema import SIMULATIONS, Schema
from .solve import named

#: What a cell may keep besides its row and the use of resources.
MEASURES = ("timeline", "shares", "jobs", "users", "demands")
FLUID, DEDICATED = "fluid:", "dedicated:"
#: Seconds from solve to solve of fluid allocations: PF, section 6.
EVERY = 300.0
#: What summaries say that is a column of a row.
_SAID = (
    "jobs done",
    "tasks done",
    "tasks waiting",
    "restarts",
    "mean response",
    "median response",
    "end",
    "certificate",
)
#: Steps of a decade to which demands are rounded.
_DIGITS = 8


@dataclass(frozen=True)
class Alone:
    """Every user by itself on servers of its own: simulations by user."""

    schedules: dict[str, Schedule]

    @property
    def interrupted(self) -> bool:
        """Was one of them stopped by Ctrl-C?"""
        return any(one.interrupted for one in self.schedules.values())

    @property
    def jobs(self) -> pd.DataFrame:
        """Jobs of all users, as `Schedule.jobs`."""
        return pd.concat([one.jobs for one in self.schedules.values()])

    @property
    def users(self) -> pd.DataFrame:
        """All of them, as `Schedule.users`; dominant shares are those of their own servers."""
        return pd.concat([one.users for one in self.schedules.values()])

    @property
    def tasks(self) -> pd.DataFrame:
        """Tasks of all users, as `Schedule.tasks`."""
        return pd.concat([one.tasks for one in self.schedules.values()])

    @property
    def timeline(self) -> pd.DataFrame:
        """By user, as `Schedule.timeline`."""
        return pd.concat({user: one.timeline for user, one in self.schedules.items()}, names=["user"])

    @property
    def utilization(self) -> pd.Series:
        """The mean used part of every resource of all these servers."""
        each = [(one.utilization, one.workload.total * one.end) for one in self.schedules.values()]
        total = sum(weight for _, weight in each)
        return sum(use.fillna(0.0) * weight for use, weight in each) / total

    def summary(self) -> pd.Series:
        """Everybody's counts together, as `Schedule.summary`; mean times are of jobs."""
        each, response = [one.summary() for one in self.schedules.values()], self.jobs["response"]
        found = {name: sum(one[name] for one in each) for name in _SAID[:4]}
        times = {"mean response": float(response.mean()), "median response": float(response.median())}
        return pd.Series(found | times | {"end": max(one["end"] for one in each)}, dtype=object)


#: What comes of a workload.
Ran = Schedule | FluidSchedule | Alone


def _prefixed(text: str) -> tuple[str, str]:
    prefix = next((one for one in (FLUID, DEDICATED) if text.startswith(one)), "")
    return prefix, text.removeprefix(prefix)


def parse(text: str) -> Policy | Mechanism:
    """The policy of `POLICY` or `dedicated:POLICY`, or the mechanism of `fluid:MECHANISM`.

    Raises
    ------
    DataError
        The text stands for nothing that runs, or for several.
    """
    prefix, inside = _prefixed(text)
    return mechanisms.one(inside) if prefix == FLUID else policies.one(inside)


@dataclass(frozen=True)
class Simulate:
    """A policy and how it is run.

    `every`: seconds between samples of timelines, and between decisions of fluid allocations; None: 500 samples, and
    300 s. `thrashing`: how many times longer tasks take on a server that is over-committed; None: no longer.
    """

    what: Named[Policy | Mechanism]
    until: float | None
    every: float | None
    impossible: str
    thrashing: float | None

    schema: ClassVar[Schema] = SIMULATIONS
    random: ClassVar[bool] = False

    @classmethod
    def of(cls, text: str, *how: Any) -> Simulate:
        """Parse the text of a policy, in canonical form."""
        made = parse(text)
        inside = named(made).text if isinstance(made, Mechanism) else str(made)
        return cls(Named(_prefixed(text)[0] + inside, parse), *how)

    @property
    def fields(self) -> Row:
        """Fields of the question."""
        return {"policy": self.what.text} | {name: value for name, value in vars(self).items() if name != "what"}

    @property
    def asked(self) -> Row:
        """Columns of a row."""
        asked = self.fields
        options = {"impossible": asked.pop("impossible"), "thrashing": self.thrashing}
        return asked | {"name": self.what.text.partition("(")[0], "options": options}

    def code(self, measures: tuple[str, ...]) -> str:
        """The digest of what simulates, and of the policy, or of what solves and the mechanism."""
        rooms: tuple[str, ...] = code.SIMULATING
        if self.what.text.startswith(FLUID):
            rooms = tuple(sorted({*rooms, *code.solving()}))
        kind: type = type(self.what.made)
        return code.of(kind, *rooms)

    def warm(self) -> None:
        """Nothing: seconds of simulations do not contain compilation."""

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Columns of a row."""
        begun = clock.now()
        workload = origin.workload(cell.origin, cell.seed, cell.repetition, traces)
        drawing, watch = clock.now() - begun, clock.Watch()
        found = self.run(workload)
        if found.interrupted:
            raise KeyboardInterrupt  # half a simulation is not a result
        took = {"drawing": drawing, "simulate": watch.cpu, "wall": watch.seconds}
        return _of_workload(workload) | took | numbers(found) | _long(found, cell.measures)

    def run(self, workload: Workload, progress: bool = False) -> Ran:
        """Run the policy on a workload."""
        what: Any = self.what.made
        if self.what.text.startswith(FLUID):
            if self.thrashing is not None:
                raise DataError(f"{self.what} never over-commits servers; leave out thrashing")
            every = EVERY if self.every is None else self.every
            return fluid(workload, what, every=every, until=self.until, throw=False, progress=progress)
        how: dict[str, Any] = {
            "until": self.until,
            "thrashing": None if self.thrashing is None else Thrashing(self.thrashing),
            "timeline": self.every,
            "progress": progress,
        }
        if self.what.text.startswith(DEDICATED):
            return Alone(dedicated(workload, what, **how))
        return simulate(workload, what, impossible="report" if self.impossible == "report" else "raise", **how)


def jobs(values: Mapping[str, tuple[Any, ...]]) -> Iterator[Simulate]:
    """Every way of a grid to run a policy."""
    until, every, thrashing = (
        None if values[key][0] is None else float(values[key][0]) for key in ("until", "every", "thrashing")
    )
    for text in values["policies"]:
        yield Simulate.of(text, until, every, values["impossible"][0], thrashing)


def numbers(found: Ran) -> Row:
    """Measures of a simulation in one row, of either kind."""
    said = found.summary()
    row: Row = {"status": "missed" if said.get("flagged") else "ok"}
    row |= {name.replace(" ", "_"): said[name] for name in _SAID if name in said}
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
    """Histogram of tasks by demand of the first two resources, relative to the average server.

    Amounts are rounded to `_DIGITS` a decade on a logarithmic scale.
    """
    w = found.workload
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
