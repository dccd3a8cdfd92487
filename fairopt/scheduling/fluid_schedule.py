"""`FluidSchedule`: what a fluid simulation gave, as frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from .fluid_run import FluidRun, Solved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class FluidSchedule:
    """Frames of a fluid simulation; times in seconds, work in tasks times seconds, NaN for what did not happen.

    Attributes
    ----------
    run : FluidRun
        Its state: `run.run(until)` goes on with it, and `FluidSchedule(run)` has the frames of that.
    """

    run: FluidRun

    @property
    def jobs(self) -> pd.DataFrame:
        """A row per job: `user`, `arrival`, `start`, `end` of its last task, `completion_time` (end less arrival),
        `tasks`, `work`, `left`; `status`: `done`, `running`, `waiting` (has not run) or `left` (with its user).
        """
        run, w = self.run, self.run.workload
        frame = _summed(run, w.job, len(w.jobs))
        frame.insert(0, "user", np.array(w.users, dtype=object)[w.job_user])
        return frame.set_index(pd.Index(w.jobs, name="job"))

    @property
    def users(self) -> pd.DataFrame:
        """A row per user: `jobs`, `jobs_done`, their mean `completion_time`, `arrival` of the first task, `end` of the
        last, `tasks`, `work`, `left`, `status` as of jobs.
        """
        run, w = self.run, self.run.workload
        frame = _summed(run, w.user, len(w.users)).drop(columns=["start", "completion_time"])
        jobs = self.jobs
        mean = jobs.groupby("user", sort=False)["completion_time"].mean()
        done = (jobs["status"] == "done").groupby(jobs["user"], sort=False).sum()
        frame.insert(0, "jobs", np.bincount(w.job_user, minlength=len(w.users)))
        frame.insert(1, "jobs_done", done.reindex(w.users, fill_value=0).to_numpy())
        frame.insert(2, "completion_time", mean.reindex(w.users).to_numpy())
        return frame.set_index(pd.Index(w.users, name="user"))

    @property
    def timeline(self) -> pd.DataFrame:
        """A row from each instant at which something is solved, arrives or changes to the next.

        `time` and `span`; `players` and `groups` of tasks present, `waiting` ones that have never run; `use_...`, the
        part of every resource of the servers there in use, on average over the span; `solved`, and if so seconds to
        `build`, to `solve` and to `certify`, `rounds`, `engine`, `certificate`, `flagged`, and `warm`: started from
        the solve before.
        """
        steps = self.run.steps
        frame = pd.DataFrame({name: [getattr(step, name) for step in steps] for name in _OF_STEPS})
        capacity = _rows([step.capacity * step.span for step in steps], len(self.run.workload.resources))
        used = _rows([step.used for step in steps], len(self.run.workload.resources))
        use = np.divide(used, capacity, out=np.full(used.shape, np.nan), where=capacity > 0)
        for r, name in enumerate(self.run.workload.resources):
            frame[f"use_{name}"] = use[:, r]
        frame["solved"] = [step.solved is not None for step in steps]
        for name, kind in _OF_SOLVES.items():
            values = [None if step.solved is None else getattr(step.solved, name) for step in steps]
            frame[name] = pd.Series(values, dtype="float" if kind is float else "object")
        return frame

    @property
    def shares(self) -> pd.DataFrame:
        """A row per solve and player: `time`, `player`, `tasks`, `share`, its dominant share of the servers there."""
        solves = self.solves
        shares = [one.tasks * one.cluster.dominant_share_per_task for _, one in solves]
        size = [len(one.tasks) for _, one in solves]
        return pd.DataFrame(
            {
                "time": np.repeat([time for time, _ in solves], size),
                "player": [name for _, one in solves for name in one.cluster.users],
                "tasks": np.concatenate([one.tasks for _, one in solves]) if solves else np.zeros(0),
                "share": np.concatenate(shares) if solves else np.zeros(0),
            }
        )

    @property
    def solves(self) -> list[tuple[float, Solved]]:
        """When what was solved."""
        return [(step.time, step.solved) for step in self.run.steps if step.solved is not None]

    def utilization(self) -> pd.Series:
        """The part of every resource that is in use on average, from the first arrival to the end of the run."""
        width = len(self.run.workload.resources)
        used = _rows([step.used for step in self.run.steps], width).sum(axis=0)
        there = _rows([step.span * step.capacity for step in self.run.steps], width).sum(axis=0)
        part = np.divide(used, there, out=np.full(width, np.nan), where=there > 0)
        return pd.Series(part, index=list(self.run.workload.resources), name="utilization")

    def summary(self) -> dict[str, object]:
        """One row of a comparison: utilization, jobs done and their completion times, solves and their seconds."""
        jobs, solves = self.jobs, [one for _, one in self.solves]
        times = jobs["completion_time"].dropna()
        row: dict[str, object] = {"mechanism": str(self.run.mechanism), "end": self.run.now}
        row |= {f"use_{name}": float(part) for name, part in self.utilization().items()}
        row |= {"jobs": len(jobs), "jobs_done": int((jobs["status"] == "done").sum())}
        row |= {"completion_time": float(times.mean()), "median_completion_time": float(times.median())}
        row |= {"solves": len(solves), "warm": sum(one.warm for one in solves)}
        row |= {"seconds": sum(one.build + one.solve + one.certify for one in solves)}
        row |= {"certificate": max((one.certificate for one in solves), default=0.0)}
        return row | {"flagged": sum(one.flagged for one in solves)}

    def plot(self) -> Figure:
        """Use of resources and players over time, and the distribution of completion times."""
        from ._fluid_plot import plot

        return plot(self)

    def __repr__(self) -> str:
        s = self.summary()
        used = ", ".join(f"{name} {part:.1%}" for name, part in self.utilization().items())
        text = f"{s['jobs_done']} of {s['jobs']} jobs done by {self.run.now:,.0f} s; used: {used}; {s['solves']} solves"
        return f"FluidSchedule({s['mechanism']}: {text}, certificates <= {s['certificate']:.1e})"


#: Columns of the timeline that a step has, and a solve.
_OF_STEPS = ("time", "span", "players", "groups", "waiting")
_OF_SOLVES = {"build": float, "solve": float, "certify": float, "rounds": float, "engine": str,
              "certificate": float, "flagged": bool, "warm": bool}  # fmt: skip


def _rows(rows: list[Array], width: int) -> Array:
    return np.array(rows).reshape(len(rows), width)


def _summed(run: FluidRun, of: NDArray[np.int64], count: int) -> pd.DataFrame:
    """Groups of a job, or of a user, as one."""
    w = run.workload
    arrival, start, end = np.full(count, np.inf), np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(arrival, of, run.arrival)
    np.fmin.at(start, of, run.begun)
    unfinished = np.bincount(of, np.isnan(run.ended), count) > 0
    np.fmax.at(end, of, run.ended)
    end = np.where(unfinished, np.nan, end)
    start = np.where(np.isinf(start), np.nan, start)
    gone = np.bincount(of, run.gone, count) > 0
    status = np.select([gone, ~unfinished, ~np.isnan(start)], ["left", "done", "running"], "waiting")
    return pd.DataFrame(
        {
            "arrival": arrival,
            "start": start,
            "end": end,
            "completion_time": end - arrival,
            "tasks": np.bincount(of, np.diff(w.first), count).astype(np.int64),
            "work": np.bincount(of, run.work, count),
            "left": np.bincount(of, run.left, count),
            "status": status,
        }
    )
