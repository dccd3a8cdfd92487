"""`FluidSchedule`: what a fluid simulation gave, as frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._libraries import pd
from ..model._arrays import ratio
from .fluid_run import FluidRun, Solved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

#: States of a job, as in a discrete schedule: "to come" arrives after the end, "gone" went with its user.
STATES = ("done", "running", "waiting", "gone", "to come")
#: Columns of the timeline that a step has, and a solve.
_OF_STEPS = ("span", "players", "present", "waiting")
_OF_SOLVES = {"build": float, "solve": float, "certify": float, "rounds": float, "engine": object,
              "certificate": float, "flagged": object, "warm": object}  # fmt: skip


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
    def interrupted(self) -> bool:
        """Was it stopped by Ctrl-C? Then it is what had happened until `end`."""
        return self.run.interrupted

    @property
    def end(self) -> float:
        """Seconds at which it stopped: `until`, or the last thing that happened."""
        return self.run.now

    @property
    def jobs(self) -> pd.DataFrame:
        """A row per job: user, arrival, start, end and response time (once all is done), tasks, work, what is left of
        it, state (`STATES`)."""
        run, w = self.run, self.run.workload
        frame = _summed(run, w.job, len(w.jobs))
        frame.insert(0, "user", pd.Categorical.from_codes(w.job_user, categories=list(w.users)))
        return frame.set_index(pd.Index(w.jobs, name="job"))

    @property
    def users(self) -> pd.DataFrame:
        """A row per user: weight; jobs, and those done; tasks, work and what is left of it; the mean response time of
        jobs that are done; the mean dominant share from the first arrival of anybody to the end."""
        run, w = self.run, self.run.workload
        jobs, many = self.jobs, len(w.users)
        frame = _summed(run, w.user, many)[["tasks", "work", "left"]]
        whole = jobs["end"].notna().to_numpy()
        done = np.bincount(w.job_user[whole], minlength=many)
        response = np.bincount(w.job_user[whole], jobs["response"].to_numpy()[whole], many)
        frame.insert(0, "weight", w.weight)
        frame.insert(1, "jobs", np.bincount(w.job_user, minlength=many))
        frame.insert(2, "jobs_done", done)
        frame["mean_response"] = ratio(response, done, np.nan)
        frame["mean_dominant_share"] = self._dominant_shares()
        return frame.set_index(pd.Index(w.users, name="user"))

    def _dominant_shares(self) -> Array:
        """(users,): `max_r` of what a user had of every resource over the whole run, in parts of all servers."""
        run, w = self.run, self.run.workload
        had = (run.work - run.left)[:, None] * w.demand
        span = max(run.now - float(run.arrival.min(initial=np.inf)), 0.0)
        if not span > 0:
            return np.zeros(len(w.users))
        mine = np.stack([np.bincount(w.user, column, len(w.users)) for column in had.T], axis=1)
        return np.asarray((mine / w.total).max(axis=1) / span)

    @property
    def timeline(self) -> pd.DataFrame:
        """A row from each instant (the index) at which something is solved or changes to the next, `span` seconds.

        The used part of every resource of the servers that are there, on average over the span; `players`, and groups
        of tasks that are `present` and `waiting`, which have never run; `solved`, and if so seconds to `build`, to
        `solve` and to `certify`, `rounds`, `engine`, `certificate`, `flagged`, and `warm`: started from the solve
        before.
        """
        steps, resources = self.run.steps, self.run.workload.resources
        capacity = _rows([step.capacity * step.span for step in steps], len(resources))
        used = _rows([step.used for step in steps], len(resources))
        use = ratio(used, capacity, np.nan)
        columns: dict[str, object] = {name: use[:, r] for r, name in enumerate(resources)}
        columns |= {name: [getattr(step, name) for step in steps] for name in _OF_STEPS}
        columns["solved"] = [step.solved is not None for step in steps]
        for name, kind in _OF_SOLVES.items():
            values = [None if step.solved is None else getattr(step.solved, name) for step in steps]
            columns[name] = np.array(values, dtype=kind)
        return pd.DataFrame(columns, index=pd.Index([step.time for step in steps], name="time", dtype=float))

    @property
    def shares(self) -> pd.DataFrame:
        """A row per solve and player: `time`, `player`, `tasks`, `share`: its dominant share of the servers there."""
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
        part = ratio(used, there, np.nan)
        return pd.Series(part, index=pd.Index(self.run.workload.resources, name="resource"), name="utilization")

    def use_in(self, edges: ArrayLike) -> pd.DataFrame:
        """The used part of every resource of the servers that are there, on average from each edge [s] to the next.

        Indexed by where intervals begin; NaN before the first arrival and after the end.
        """
        steps, times = self.run.steps, np.asarray(edges, dtype=float)
        width = len(self.run.workload.resources)
        ends = np.array([steps[0].time, *(step.time + step.span for step in steps)]) if steps else np.zeros(1)
        used, there = (
            np.cumsum(np.vstack([np.zeros(width), rows]), axis=0)
            for rows in (_rows([step.used for step in steps], width),
                         _rows([step.span * step.capacity for step in steps], width))
        )  # fmt: skip
        sums = [np.stack([np.interp(times, ends, column) for column in of.T], axis=1) for of in (used, there)]
        over, under = (np.diff(of, axis=0) for of in sums)
        part = ratio(over, under, np.nan)
        columns = pd.Index(self.run.workload.resources, name="resource")
        return pd.DataFrame(part, index=pd.Index(times[:-1], name="time"), columns=columns)

    def summary(self) -> pd.Series:
        """Numbers about it: what is done, response times, use, solves and their seconds, the worst certificate."""
        jobs, solves = self.jobs, [one for _, one in self.solves]
        response = jobs["response"].dropna()
        found: dict[str, object] = {"jobs": len(jobs)}
        found |= {f"jobs {name}": int((jobs["state"] == name).sum()) for name in STATES}
        found |= {"mean response": float(response.mean()), "median response": float(response.median())}
        found |= {"end": self.end} | {f"mean use of {name}": float(part) for name, part in self.utilization().items()}
        found |= {"solves": len(solves), "warm": sum(one.warm for one in solves)}
        found |= {"seconds": sum(one.build + one.solve + one.certify for one in solves)}
        found |= {"certificate": max((one.certificate for one in solves), default=0.0)}
        found |= {"flagged": sum(one.flagged for one in solves)}
        return pd.Series(found, name=str(self.run.mechanism), dtype=object)

    def plot(self) -> Figure:
        """Use of resources and players over time, and the distribution of completion times."""
        from ._plot import fluid

        run = self.run
        return fluid(self.timeline, self.jobs, run.workload.resources, run.by, str(run.mechanism))

    def __repr__(self) -> str:
        s = self.summary()
        used = ", ".join(f"{name} {part:.1%}" for name, part in self.utilization().items())
        states = ", ".join(f"{s[f'jobs {name}']} {name}" for name in STATES if s[f"jobs {name}"])
        stopped = " (interrupted)" if self.interrupted else ""
        text = f"jobs {states}; {self.end:g} s{stopped}, mean use {used}; {s['solves']} solves"
        return f"FluidSchedule({self.run.mechanism}: {text}, certificates <= {s['certificate']:.1e})"


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
    departed = np.bincount(of, run.departed, count) > 0
    to_come = np.bincount(of, ~run.came, count) == np.bincount(of, minlength=count)
    state = np.select(
        [departed, ~unfinished, ~np.isnan(start), to_come], ["gone", "done", "running", "to come"], "waiting"
    )
    return pd.DataFrame(
        {
            "arrival": arrival,
            "start": start,
            "end": end,
            "response": end - arrival,
            "tasks": np.bincount(of, np.diff(w.first), count).astype(np.int64),
            "work": np.bincount(of, run.work, count),
            "left": np.bincount(of, run.left, count),
            "state": pd.Categorical(state, categories=list(STATES)),
        }
    )
