"""`Schedule`: result of a simulation, as frames of tasks, jobs, users and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import DataError
from ..base.libraries import pd
from ..model import _intake
from ..model._arrays import Array, Mask, ratio
from .engine import Runs
from .loop.tables import DONE, EVICTED, GONE
from .workload import NEVER, SECOND, Whole, Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: States of a task: a task "to come" arrives after the end of the simulation, a task "gone" departed with its user.
STATES = ("done", "running", "waiting", "gone", "impossible", "to come")


class Outcome:
    """Common base of discrete and fluid schedules, which define `workload`, `jobs`, `end` and `utilization`."""

    def _summary(self: Any, name: str, first: dict[str, Any], more: dict[str, Any]) -> pd.Series:
        """Series of the `first` entries, statistics of jobs, `more` entries, and utilization."""
        response = self.jobs["response"].dropna()
        done = {"jobs": len(self.jobs), "jobs done": len(response)}
        times = {"mean response": float(response.mean()), "median response": float(response.median())}
        used = {f"mean use of {resource}": part for resource, part in self.utilization.items()}
        return pd.Series(first | done | times | more | {"end": self.end} | used, name=name, dtype=object)

    def _shown(self: Any, what: str, states: dict[str, int], more: str = "") -> str:
        counts = ", ".join(f"{count} {name}" for name, count in states.items() if count)
        used = ", ".join(f"{name} {part:.1%}" for name, part in self.utilization.items())
        stopped = " (interrupted)" if self.interrupted else ""
        return f"{type(self).__name__}({what} {counts}; {self.end:g} s{stopped}, mean use {used}{more})"

    def _per_user(self: Any, counts: dict[str, Any], means: dict[str, Any]) -> pd.DataFrame:
        """Frame by user of weights, jobs, `counts`, mean response times, and further `means`."""
        w, many = self.workload, len(self.workload.users)
        whole = self.jobs["end"].notna().to_numpy()
        response = _mean(w.job_user[whole], self.jobs["response"].to_numpy()[whole], many)
        every, done = (np.bincount(of, minlength=many) for of in (w.job_user, w.job_user[whole]))
        columns = {"weight": w.weight, "jobs": every, "jobs_done": done} | counts
        return pd.DataFrame(columns | {"mean_response": response} | means, index=pd.Index(w.users, name="user"))

    def _per_job(self: Any, columns: dict[str, Any]) -> pd.DataFrame:
        """Frame by job of the given columns, with users and response times inserted."""
        frame = pd.DataFrame(columns, index=pd.Index(self.workload.jobs, name="job"))
        frame.insert(0, "user", _named(self.workload.job_user, self.workload.users))
        frame.insert(4, "response", frame["end"] - frame["arrival"])
        return frame


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(Outcome):
    """Result of a simulation. Frames are computed on access, in seconds and fractions of capacity.

    Attributes
    ----------
    workload : Workload
    policy : str
        Name of the policy, with its parameters.
    runs : Runs
        Runs of tasks in the order of their starts, with servers and ends.
    possible : (groups,) of bool
        False where tasks can never start (`impossible="report"`).
    sampled : float, "events" or None
        Sampling interval of `timeline` in seconds; None: 500 samples.
    engine : str
        "plain" or "compiled".
    seconds : float
        CPU seconds of the simulation, without compilation.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 5.0], "tasks": [2, 2], "cpu": [1, 1]})
    >>> schedule = fo.scheduling.simulate(fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [2]})), "fifo")
    >>> isinstance(schedule, fo.scheduling.Schedule), schedule.users["mean_response"].to_dict()
    (True, {'ann': 10.0, 'bob': 15.0})
    """

    workload: Workload
    policy: str
    runs: Runs
    possible: Mask
    sampled: float | Literal["events"] | None
    engine: str
    seconds: float

    @property
    def interrupted(self) -> bool:
        """True if the simulation was interrupted by Ctrl-C at `end`."""
        return self.runs.interrupted

    @property
    def end(self) -> float:
        """End of the simulation in seconds: `until`, or the last event."""
        return self.runs.time / SECOND

    @cached_property
    def _last(self) -> Whole:
        """Index of the last run of every task, (tasks,); -1 for tasks without a run."""
        last = np.full(self.workload.tasks, -1, dtype=np.int64)
        last[self.runs.task] = np.arange(len(self.runs.task))
        return last

    @cached_property
    def arrival(self) -> Whole:
        """Arrival times of groups in microseconds, (groups,), not before the completion of the preceding job."""
        w = self.workload
        before = w.after[w.job] if len(w.after) else w.after
        if not (before >= 0).any():
            return w.arrival
        return np.where(before >= 0, np.maximum(w.arrival, self._job_ends[2][before]), w.arrival)

    @cached_property
    def _job_ends(self) -> tuple[Whole, Whole, Whole]:
        """Numbers of tasks and of completed tasks, and completion times in microseconds or `NEVER`, (jobs,) each."""
        w, done = self.workload, self.runs.how == DONE
        job = w.job[w.group_of_task]
        count, finished = (np.bincount(of, minlength=len(w.jobs)) for of in (job, job[self.runs.task[done]]))
        end = np.zeros(len(w.jobs), dtype=np.int64)
        np.maximum.at(end, job[self.runs.task[done]], self.runs.end[done])
        return count, finished, np.where(finished == count, end, NEVER)

    @cached_property
    def _first_start(self) -> Whole:
        first = np.full(self.workload.tasks, NEVER, dtype=np.int64)
        first[self.runs.task[::-1]] = self.runs.start[::-1]
        return first

    @cached_property
    def _how(self) -> NDArray[np.int8]:
        """Outcome of the last run of every task (`loop.tables`), (tasks,); tasks without a run count as evicted."""
        return np.append(self.runs.how, np.int8(EVICTED))[self._last]

    @cached_property
    def state(self) -> NDArray[np.int8]:
        """Index of the state of every task in `STATES`, (tasks,)."""
        w, how = self.workload, self._how
        group = w.group_of_task
        arrival, leaves = self.arrival[group], w.leaves[w.user[group]]
        left = leaves <= self.runs.time
        found = np.select(
            [how == DONE, how == GONE, ~self.possible[group], (how == EVICTED) & (arrival > self.runs.time),
             (how == EVICTED) & left, how == EVICTED],
            [0, 3, 4, 5, 3, 2], 1,
        )  # fmt: skip
        return found.astype(np.int8)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Frame by task: `job`, `user`, `arrival` [s], `restarts`, `state`; `server`, `start`, `end` of the last run.

        `server` is missing and the times are NaN for tasks that never ran; `end` is NaN for running tasks.
        """
        w, last, group = self.workload, self._last, self.workload.group_of_task
        start, end = (np.append(_seconds(each), np.nan)[last] for each in (self.runs.start, self.runs.end))
        server = np.append(self.runs.server, -1)[last]
        evicted = self.runs.task[self.runs.how == EVICTED]
        return pd.DataFrame(
            {
                "job": _named(w.job[group], w.jobs),
                "user": _named(w.user[group], w.users),
                "server": _named(server, w.servers),
                "arrival": _seconds(self.arrival[group]),
                "start": start,
                "end": end,
                "restarts": np.bincount(evicted, minlength=w.tasks),
                "state": _named(self.state, STATES),
            },
            index=pd.RangeIndex(w.tasks, name="task"),
        )

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Frame by job: `user`, `arrival`, `start`, `end` and `response` time [s], numbers `tasks` and `tasks_done`.

        `start` is that of the first task. `end` and `response` are NaN unless all tasks of the job are completed.
        """
        w, (count, finished, end) = self.workload, self._job_ends
        times = pd.DataFrame({"arrival": self.arrival[w.group_of_task], "start": self._first_start})
        first = times.groupby(w.job[w.group_of_task]).min()
        seconds = {name: _seconds(each.to_numpy()) for name, each in first.items()}
        return self._per_job(seconds | {"end": _seconds(end), "tasks": count, "tasks_done": finished})

    @cached_property
    def users(self) -> pd.DataFrame:
        """Frame by user of weights, numbers of jobs and tasks, mean times in seconds, and mean dominant shares.

        Columns: `weight`, `jobs`, `jobs_done`, `tasks`, `tasks_done`, `mean_response` of completed jobs, `mean_wait` of
        started tasks, and `mean_dominant_share`, the average over the time from the first arrival of any user to the
        end.
        """
        w = self.workload
        user, many = w.user[w.group_of_task], len(w.users)
        wait = (self._first_start - self.arrival[w.group_of_task]) / SECOND
        started = self._first_start < NEVER
        return self._per_user(
            {"tasks": np.bincount(user, minlength=many),
             "tasks_done": np.bincount(user[self.state == 0], minlength=many)},
            {"mean_wait": _mean(user[started], wait[started], many), "mean_dominant_share": self._dominant_shares()},
        )  # fmt: skip

    @cached_property
    def instants(self) -> Array:
        """Times of `timeline` and `shares`, in seconds."""
        begun = float(self.workload.arrival.min()) / SECOND if self.workload.groups else 0.0
        if self.sampled == "events":
            w, runs = self.workload, self.runs
            times = np.concatenate([self.arrival, w.leaves, w.change_time, runs.start, runs.end])
            return np.unique(times[times <= runs.time]) / SECOND
        if self.sampled is None:
            return np.linspace(begun, max(self.end, begun), 500)
        return np.asarray(begun + self.sampled * np.arange(1 + int((max(self.end, begun) - begun) / self.sampled)))

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """Frame of `at` at the `instants`: used fraction of every resource, `running`, `waiting`, `servers`."""
        return self.at(self.instants)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """Frame by instant of the unweighted dominant shares of users (`shares_at`)."""
        return self.shares_at(self.instants)

    def at(self, times: ArrayLike) -> pd.DataFrame:
        """Frame by time in seconds: used fraction of every resource, and numbers of tasks and of available servers.

        The columns `running` and `waiting` have numbers of tasks, `servers` the number of available servers. The values
        hold after all events at a time. Fractions are relative to the capacity of available servers, and NaN if it is
        0.

        Raises
        ------
        DataError
            A time is not a finite number of seconds.
        """
        w, runs = self.workload, self.runs
        seconds, when = _micro(times)
        demand = w.demand[w.group_of_task[runs.task]]
        started, ended = _many_until(when, runs.start), _many_until(when, runs.end)
        there, capacity = _servers(w, when)
        part = ratio(_running(when, runs.start, runs.end, demand), capacity, np.nan)
        frame = pd.DataFrame(part, pd.Index(seconds, name="time"), list(w.resources))
        return frame.assign(running=started - ended, waiting=self._came(when) - started, servers=there)

    def _came(self, when: Whole) -> Whole:
        """Number of tasks that entered the queue by each time, minus waiting tasks that departed with their users."""
        w, group = self.workload, self.workload.group_of_task
        arrival, leaves = self.arrival[group], w.leaves[w.user[group]]
        comes = self.possible[group] & (arrival < NEVER) & (arrival < leaves)
        back = self.runs.end[self.runs.how == EVICTED]
        gone = leaves[comes & (self._how == EVICTED) & (leaves < NEVER)]
        return _many_until(when, arrival[comes]) + _many_until(when, back) - _many_until(when, gone)

    def shares_at(self, times: ArrayLike, users: Sequence[str] | None = None) -> pd.DataFrame:
        """Frame (times [s], users) of dominant shares, the largest used fractions of the total capacity of a resource.

        Raises
        ------
        DataError
            There are more than 10^8 entries, a user is unknown, or a time is not a finite number of seconds.
        """
        names = list(self.workload.users if users is None else users)
        if unknown := [name for name in names if name not in self.workload.users]:
            raise DataError(f"there is no user {unknown[0]!r}")
        when, at = _micro(times)
        if len(names) * len(when) > 1e8:
            raise DataError(f"shares of {len(names)} users at {len(when)} times are too many numbers; name some users, "
                            "or sample: simulate(..., timeline=60)")  # fmt: skip
        w, runs = self.workload, self.runs
        group = w.group_of_task[runs.task]
        order = np.argsort(w.user[group], kind="stable")
        first = np.searchsorted(w.user[group][order], np.arange(len(w.users) + 1))
        share = np.empty((len(when), len(names)))
        for k, n in enumerate(pd.Index(w.users).get_indexer(names)):
            mine = order[first[n] : first[n + 1]]
            demand = w.demand[group[mine]]
            share[:, k] = (_running(at, runs.start[mine], runs.end[mine], demand) / w.total).max(axis=1)
        return pd.DataFrame(share, index=pd.Index(when, name="time"), columns=pd.Index(names, name="user"))

    def _lasted(self) -> tuple[Whole, int]:
        """Durations of runs, (runs,), and time from the first arrival to the end, in microseconds."""
        begun = int(self.workload.arrival.min()) if self.workload.groups else 0
        return np.minimum(self.runs.end, self.runs.time) - self.runs.start, max(self.runs.time - begun, 0)

    def _dominant_shares(self) -> Array:
        """Time averages of dominant shares, (users,)."""
        w, runs = self.workload, self.runs
        lasted, span = self._lasted()
        if span == 0 or not len(runs.task):
            return np.zeros(len(w.users))
        group = w.group_of_task[runs.task]
        user = np.concatenate([w.user[group]] * 2)
        time = np.concatenate([runs.start, runs.start + lasted])
        order = np.lexsort([time, user])
        amounts = np.concatenate([w.demand[group], -w.demand[group]])[order]
        used = np.cumsum(amounts, axis=0)  # amounts of each user sum to 0
        lasts = np.diff(time[order], append=0)
        share = (used / w.total).max(axis=1, initial=0.0)
        same = np.append(user[order][1:] == user[order][:-1], False)
        return np.bincount(user[order][same], (share * lasts)[same], minlength=len(w.users)) / span

    @property
    def utilization(self) -> pd.Series:
        """Mean used fraction of the capacity of all servers, by resource, from the first arrival to the end."""
        w, (lasted, span) = self.workload, self._lasted()
        group = w.group_of_task[self.runs.task]
        # Products of microseconds and amounts would overflow integers, so they are computed in floating point.
        used = np.array([(lasted.astype(float) * column).sum() for column in (w.demand[group] / w.total).T])
        return pd.Series(used / max(span, 1), index=pd.Index(w.resources, name="resource"), name="utilization")

    def summary(self) -> pd.Series:
        """Series of numbers of tasks by state, jobs and restarts, response times [s], the end [s], and utilization."""
        states = {f"tasks {name}": count for name, count in self._counts().items()}
        restarts = int((self.runs.how == EVICTED).sum())
        return self._summary(self.policy, {"tasks": self.workload.tasks} | states, {"restarts": restarts})

    def _counts(self) -> dict[str, int]:
        return dict(zip(STATES, np.bincount(self.state, minlength=len(STATES)).tolist(), strict=True))

    def plot(self, *, ax: Any = None) -> Figure:
        """Plot utilization, numbers of tasks over time, and the distribution of response times, on three axes `ax`."""
        from ..result.plot import schedule

        lines = {name: self.timeline[name] for name in ("running", "waiting")}
        return schedule(self.timeline, self.jobs, self.workload.resources, lines, "tasks", self.policy, ax)

    def __repr__(self) -> str:
        return self._shown(f"{self.policy}: tasks", self._counts())


def _named(codes: ArrayLike, names: Sequence[str]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=list(names))


def _seconds(time: Whole) -> Array:
    """Times in seconds, NaN for `NEVER`."""
    return np.where(time == NEVER, np.nan, time / SECOND)


def _mean(index: Whole, values: Array, many: int) -> Array:
    count = np.bincount(index, minlength=many)
    total = np.bincount(index, values, minlength=many)
    return ratio(total, count, np.nan)


def _micro(times: ArrayLike) -> tuple[Array, Whole]:
    """Times in seconds, and rounded to microseconds."""
    seconds = np.atleast_1d(_intake.plain(times, "the times"))
    if not (np.abs(seconds) < NEVER / SECOND).all():
        raise DataError("the times have one that is no number, or too large to count; give finite seconds")
    return seconds, np.asarray(np.rint(seconds * SECOND), dtype=np.int64)


def _many_until(when: Whole, at: Whole) -> Whole:
    """Number of events at or before each time."""
    return np.searchsorted(np.sort(at), when, side="right")


def _sum_until(when: Whole, at: Whole, amounts: Whole) -> Whole:
    """Sums of amounts at or before each time, (when, ...); sums may overflow, but differences of sums are exact."""
    order = np.argsort(at, kind="stable")
    total = np.zeros((len(at) + 1, *amounts.shape[1:]), dtype=np.int64)
    np.cumsum(amounts[order], axis=0, out=total[1:])
    return total[np.searchsorted(at[order], when, side="right")]


def _running(when: Whole, start: Whole, end: Whole, amounts: Whole) -> Whole:
    """Sums of amounts of runs that have started and not ended by each time, (when, ...)."""
    return _sum_until(when, start, amounts) - _sum_until(when, end, amounts)


def _servers(w: Workload, when: Whole) -> tuple[Whole, Whole]:
    """Number of available servers, (when,), and their total capacity, (when, resources)."""
    sign = np.where(w.change_up, 1, -1)
    there = w.there.sum() + _sum_until(when, w.change_time, sign)
    capacity = w.there @ w.capacity + _sum_until(when, w.change_time, sign[:, None] * w.capacity[w.change_server])
    return there, capacity
