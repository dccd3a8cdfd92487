"""The fluid model: tasks are served at the rates of a mechanism that is solved repeatedly (PF section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import mechanisms
from ..base import clock
from ..base.errors import DataError
from ..base.libraries import pd
from ..base.progress import tqdm
from ..mechanisms import Mechanism
from ..mechanisms._earlier import OtherUsers
from ..model import _validate
from ..model._arrays import Array, Index, Mask, ratio
from ..model.cluster import Cluster
from . import memory
from .schedule import Outcome
from .workload import NEVER, SECOND, By, Workload, one_of, owner, players

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Time resolution in seconds, equal to that of workloads; completions within this time are simultaneous.
_TOGETHER = 1 / SECOND


#: Columns of the timeline about the solve at the beginning of a step.
_OF_SOLVES = ("build", "solve", "certify", "rounds", "engine", "certificate", "flagged", "warm")


@dataclass
class FluidRun:
    """State of a fluid simulation with the options of `fluid`; `run(until)` continues it, also after an interruption.

    Times (`now`, and by group `begun` and `ended`) are in seconds, work (by group `work` and `left`) in task seconds.
    """

    workload: Workload
    mechanism: Mechanism
    every: float
    events: bool = False
    by: By = "job"
    limits: bool = False
    tol: float | None = None
    throw: bool = True
    warm: bool = True
    idle: bool = False
    half_life: float | None = None
    #: Rows of the timeline, each an interval of constant rates.
    steps: list[dict[str, Any]] = field(default_factory=list)
    #: Integrals over time of used and of available amounts of resources, for each interval.
    use: list[tuple[Array, Array]] = field(default_factory=list)
    #: Tasks and dominant shares of players after every solve.
    shares: list[pd.DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        w = self.workload
        _validate.number(self.every, "every", "seconds > 0", lambda every: 0 < every < math.inf)
        seconds = np.add.reduceat(w.duration / SECOND, w.first[:-1]) if w.groups else np.zeros(0)
        self.work: Array = seconds  # (groups,), in task seconds
        self.left = seconds.copy()
        self.rate = np.zeros(w.groups)
        self.begun, self.ended = np.full(w.groups, np.nan), np.full(w.groups, np.nan)
        # Masks (groups,) of groups that have arrived, that departed with their users, and that the last solve included.
        self.came, self.departed, self.served = np.zeros((3, w.groups), dtype=bool)
        self.arrival: Array = w.arrival / SECOND
        self.leaves: Array = np.where(w.leaves == NEVER, np.inf, w.leaves / SECOND)[w.user]
        self.change: Array = w.change_time / SECOND
        self._changed = 0
        self.up = w.there.copy()
        self.now = float(self.arrival.min(initial=np.inf)) if w.groups else 0.0
        self.forced = False  # True if servers have changed since the last solve, so that a solve is needed at once
        self.interrupted = False
        #: Dominant shares of users, (users,), averaged over past time with weights that decay (`memory.decayed`).
        self.usage: Array = np.zeros(len(w.users))
        self._start: OtherUsers | None = None  # the last allocation from which a solve can start

    def run(self, until: float = math.inf, progress: bool = False) -> FluidRun:
        """Run until all work is done, no group can progress, the time is `until` [s], or Ctrl-C; return the run."""
        self.interrupted = False
        with tqdm(total=float(self.work.sum()), unit="task s", unit_scale=True, disable=not progress) as bar:
            try:
                while self.now < until and self.once(until):
                    bar.update(float((self.work - self.left).sum()) - bar.n)
            except KeyboardInterrupt:
                self.interrupted = True
        return self

    @property
    def present(self) -> Mask:
        """Mask (groups,) of groups that have arrived and have work left, without departed users."""
        return np.asarray(self.came & ~self.departed & np.isnan(self.ended))

    @property
    def due(self) -> bool:
        """True if a solve is needed: servers or present groups have changed, or weights depend on use (`half_life`)."""
        return self.forced or self.half_life is not None or bool((self.served != self.present).any())

    def once(self, until: float = math.inf) -> bool:
        """Process events, solve if `due`, and advance to the next instant; False at the end of the simulation."""
        self._happens()
        everybody = self.forced or self.events or abs(self._tick(self.now) - self.now) < _TOGETHER
        released = not self.idle and bool((self.served & ~self.present).any())
        solved = {}
        # Between regular solves only released capacity is reallocated, among the groups of the last solve.
        if self.due and (everybody or released):
            solved = self._solve(self.present if everybody else self.present & self.served)
        after = min(self._next(), until)
        if not math.isfinite(after):
            return False
        self._advance(after, solved)
        return True

    def _happens(self) -> None:
        """Process arrivals, departures of users, and changes of servers up to the present time."""
        self.came = self.arrival <= self.now
        self.departed = self.came & (self.leaves <= self.now) & np.isnan(self.ended)
        before, self._changed = self._changed, int(np.searchsorted(self.change, self.now, side="right"))
        for k in range(before, self._changed):
            self.up[self.workload.change_server[k]] = self.workload.change_up[k]
            self.forced = True

    def _tick(self, time: float) -> float:
        """First multiple of `every` that is at least the time, up to a microsecond."""
        return self.every * math.ceil((time - _TOGETHER) / self.every)

    def _solve(self, those: Mask) -> dict[str, Any]:
        """Solve the mechanism for the groups of a mask, and set the rates; return statistics, {} if nothing can run."""
        here = np.flatnonzero(those)
        rate, about = np.zeros(len(those)), {}
        if len(here) and self.up.any():
            begun = clock.cpu()
            sharing = players(self.workload, here, self.up, self.by, self.limits)
            sharing = sharing._replace(cluster=self._remembered(sharing.cluster, here))
            start = self._start if self.warm else None
            build = clock.cpu() - begun
            found = self.mechanism.solve(sharing.cluster, self.tol, throw=self.throw, start=start)
            offered = OtherUsers(found)
            self._start = self._start if offered.earlier is None else offered
            tasks, cluster, stats = found.arrays.user_tasks, sharing.cluster, found.stats
            rate[here] = tasks[sharing.player] * sharing.part
            share = tasks * cluster.dominant_share_per_task
            self.shares.append(
                pd.DataFrame({"time": self.now, "player": cluster.users, "tasks": tasks, "share": share})
            )
            numbers = (build + stats.build, stats.compile + stats.solve, stats.certify, stats.rounds, stats.engine,
                       found.certificate.residual, found.flagged, start is not None)  # fmt: skip
            about = dict(zip(_OF_SOLVES, numbers, strict=True))
        # The state changes only after the solve, which may be interrupted.
        self.forced, self.served, self.rate = False, those, rate
        self.begun[(rate > 0) & np.isnan(self.begun)] = self.now
        return about

    def _remembered(self, cluster: Cluster, groups: Index) -> Cluster:
        """Cluster with weights reduced by the usage of the users of `groups`; unchanged without a half-life."""
        if self.half_life is None:
            return cluster
        w = self.workload
        users, factor = np.unique(w.user[groups]), np.ones(len(w.users))
        factor[users] = memory.reduced(w.weight[users], self.usage[users]) / w.weight[users]
        present = np.unique(owner(w, self.by)[groups])
        who = present if self.by == "user" else w.job_user[present]
        return cluster.replace(weight=cluster.weight * factor[who])

    def _next(self) -> float:
        """Time of the next event or solve; infinite if there is neither."""
        here, due = self.present, self.due
        ends = self._ends()[here]
        arrival, change = (float(times[times > self.now].min(initial=np.inf)) for times in (self.arrival, self.change))
        end, last = float(ends.min(initial=np.inf)), float(ends.max(initial=self.now))
        certain = min(change, float(self.leaves[here].min(initial=np.inf)))
        if not here.any() and not math.isfinite(arrival):
            return math.inf  # changes of servers are irrelevant without users
        if self.events:
            return min(certain, arrival, end)
        if not self.idle:
            certain = min(certain, end)
        # Solves follow a change, at the next multiple of `every`.
        first = self.now if due else min(arrival, end, certain)
        tick = self._tick(first) if math.isfinite(first) else np.inf
        tick += self.every * (tick <= self.now + _TOGETHER)
        # After the last completion no group waits for a further solve.
        return min(certain, tick if math.isfinite(arrival) or due else min(tick, last))

    def _ends(self) -> Array:
        """Completion times at the present rates, (groups,); infinite for groups that do not run."""
        return self.now + ratio(self.left, self.rate, np.inf)

    def _advance(self, after: float, solved: dict[str, Any]) -> None:
        """Serve all groups until the time `after`; the capacity of groups that complete before remains idle."""
        here, span, end = self.present, after - self.now, self._ends()
        done = here & (end <= after + _TOGETHER)
        served = np.where(done, self.left, self.rate * span) * here
        used = served @ (self.workload.demand * self.workload.unit)
        capacity = self.workload.capacity[self.up].sum(axis=0) * self.workload.unit
        known = len(np.unique(owner(self.workload, self.by)[here]))
        waiting = int(np.isnan(self.begun[here]).sum())
        if self.half_life is not None and span > 0:
            amounts = np.zeros((len(self.workload.users), len(capacity)))
            np.add.at(amounts, self.workload.user, served[:, None] * self.workload.demand * self.workload.unit)
            part = ratio(amounts, span * capacity).max(axis=1)
            self.usage = memory.decayed(self.usage, part, span, self.half_life)
        step = {"time": self.now, "span": span, "players": known, "present": int(here.sum()), "waiting": waiting}
        self.steps.append(step | {"solved": bool(solved)} | dict.fromkeys(_OF_SOLVES) | solved)
        self.use.append((used, span * capacity))
        self.left -= served
        self.ended[done] = end[done]
        self.now = after


#: States of a job: a job "to come" arrives after the end of the simulation, a job "gone" departed with its user.
STATES = ("done", "running", "waiting", "gone", "to come")


@dataclass(frozen=True, eq=False, repr=False)
class FluidSchedule(Outcome):
    """Result of a fluid simulation; times in seconds, work in task seconds, NaN for events that did not occur.

    Attributes
    ----------
    run : FluidRun
        State of the simulation: `run.run(until)` continues it, and `FluidSchedule(run)` has the new result.
    """

    run: FluidRun

    @property
    def workload(self) -> Workload:
        """The simulated workload."""
        return self.run.workload

    @property
    def interrupted(self) -> bool:
        """True if the simulation was interrupted by Ctrl-C at `end`."""
        return self.run.interrupted

    @property
    def end(self) -> float:
        """End of the simulation in seconds: `until`, or the last event."""
        return self.run.now

    @property
    def jobs(self) -> pd.DataFrame:
        """Frame by job: `user`, `arrival`, `start`, `end` and `response` time [s], `tasks`, `work`, `left`, `state`.

        `tasks` is their number, `left` the part of `work` that remains, and `state` one of `STATES`. `end` and
        `response` are NaN unless all tasks of the job are completed.
        """
        run, w = self.run, self.workload
        groups = {"arrival": run.arrival, "start": run.begun, "end": run.ended, "tasks": np.diff(w.first),
                  "work": run.work, "left": run.left, "over": ~np.isnan(run.ended), "gone": run.departed,
                  "came": run.came}  # fmt: skip
        of = pd.DataFrame(groups).groupby(w.job)
        first, last, total = of[["arrival", "start"]].min(), of["end"].max(), of[["tasks", "work", "left"]].sum()
        over = of["over"].all()
        state = np.select(
            [of["gone"].any(), over, first["start"].notna(), ~of["came"].any()],
            ["gone", "done", "running", "to come"], "waiting",
        )  # fmt: skip
        columns = {**first, "end": last.where(over), **total}
        states = {"state": pd.Categorical(state, categories=list(STATES))}
        return self._per_job({name: values.to_numpy() for name, values in columns.items()} | states)

    @property
    def users(self) -> pd.DataFrame:
        """Frame by user of weights, numbers of jobs and tasks, work, mean response times and mean dominant shares.

        Columns: `weight`, `jobs`, `jobs_done`, `tasks`, `work` and work `left`, `mean_response` [s] of completed jobs,
        and `mean_dominant_share`, the average over the time from the first arrival of any user to the end.
        """
        jobs, user, many = self.jobs, self.workload.job_user, len(self.workload.users)
        counts = {name: np.bincount(user, jobs[name], many) for name in ("tasks", "work", "left")}
        counts["tasks"] = counts["tasks"].astype(np.int64)
        return self._per_user(counts, {"mean_dominant_share": self._dominant_shares()})

    @property
    def _use(self) -> tuple[Array, Array]:
        """Integrals of used and of available amounts over time, (steps, resources) each."""
        each = np.reshape(self.run.use, (-1, 2, len(self.workload.resources)))
        return each[:, 0], each[:, 1]

    def _dominant_shares(self) -> Array:
        """Mean dominant shares, (users,): for each user the largest mean used fraction of a resource of all servers."""
        run, w = self.run, self.workload
        had = (run.work - run.left)[:, None] * w.demand
        span = max(run.now - float(run.arrival.min(initial=np.inf)), 0.0)
        if not span > 0:
            return np.zeros(len(w.users))
        mine = np.stack([np.bincount(w.user, column, len(w.users)) for column in had.T], axis=1)
        return np.asarray((mine / w.total).max(axis=1) / span)

    @property
    def timeline(self) -> pd.DataFrame:
        """Frame of intervals of constant rates, by start time, with their length `span` in seconds.

        Columns: mean used fraction of every resource of available servers; numbers of `players`, of groups of tasks
        that are `present`, and of groups `waiting` for their first start; `solved`, whether the interval begins with a
        solve, and if so its seconds to `build`, `solve` and `certify`, and its `rounds`, `engine`, `certificate`
        (residual), `flagged` and `warm` (started from an earlier solve).
        """
        columns = ["time", "span", "players", "present", "waiting", "solved", *_OF_SOLVES]
        steps = pd.DataFrame(self.run.steps, columns=columns).astype({"time": float}).set_index("time")
        use = pd.DataFrame(ratio(*self._use, np.nan), steps.index, list(self.workload.resources))
        return pd.concat([use, steps], axis=1)

    @property
    def shares(self) -> pd.DataFrame:
        """Frame by solve and player: `time`, `player`, `tasks`, and dominant `share` of available servers."""
        none = pd.DataFrame(columns=["time", "player", "tasks", "share"])
        return pd.concat(self.run.shares, ignore_index=True) if self.run.shares else none

    @property
    def utilization(self) -> pd.Series:
        """Mean used fraction of every resource of available servers, from the first arrival to the end."""
        used, there = self._use
        part = ratio(used.sum(axis=0), there.sum(axis=0), np.nan)
        return pd.Series(part, index=pd.Index(self.workload.resources, name="resource"), name="utilization")

    def summary(self) -> pd.Series:
        """Series of numbers of jobs, response times, utilization, and statistics of solves.

        The latter are the numbers of `solves` and of `warm` and `flagged` solves, their CPU `seconds`, and the largest
        residual, `certificate`.
        """
        solves = [step for step in self.run.steps if step["solved"]]
        states = {f"jobs {name}": count for name, count in self._counts().items()}
        found = self._summary(str(self.run.mechanism), {"jobs": 0} | states, {})
        found["solves"], found["warm"] = len(solves), sum(one["warm"] for one in solves)
        found["seconds"] = sum(one["build"] + one["solve"] + one["certify"] for one in solves)
        found["certificate"] = max((one["certificate"] for one in solves), default=0.0)
        found["flagged"] = sum(one["flagged"] for one in solves)
        return found

    def _counts(self) -> dict[str, int]:
        return dict(self.jobs["state"].value_counts(sort=False)[list(STATES)])

    def plot(self, *, ax: Any = None) -> Figure:
        """Plot utilization and players over time, and the distribution of response times, on three axes `ax`."""
        from ..result.plot import schedule

        over_time, what = self.timeline, f"{self.run.by}s present"
        over_time.loc[self.end] = over_time.iloc[-1]
        lines = {what: over_time["players"]}
        return schedule(over_time, self.jobs, self.workload.resources, lines, what, str(self.run.mechanism), ax)

    def __repr__(self) -> str:
        said = self.summary()
        more = f"; {said['solves']} solves, certificates <= {said['certificate']:.1e}"
        return self._shown(f"{self.run.mechanism}: jobs", self._counts(), more)


def fluid(
    workload: Workload,
    mechanism: str | Mechanism,
    *,
    every: float = 300.0,
    events: bool = False,
    by: str = "job",
    limits: bool = False,
    until: float | None = None,
    tol: float | None = None,
    throw: bool = True,
    warm: bool = True,
    idle: bool = False,
    half_life: float | str | None = None,
    progress: bool = False,
) -> FluidSchedule:
    r"""Simulate a workload served at the rates of a mechanism: the semi-dynamic model of PF section 6.

    .. math:: \frac{dW_g}{dt} = -x_n \frac{k_g}{\sum_{h \text{ of } n} k_h}

    where :math:`W_g` is the remaining work of group g of player n, :math:`k_g` the number of tasks of group g, h runs
    over the present groups of n, and :math:`x_n` are the tasks that the mechanism allocates to n among the present
    players, solved at the first multiple of `every` seconds after a change.

    Initially :math:`W_g` is the sum of the durations of the tasks of g; group g ends when :math:`W_g = 0`. All tasks
    of a player run at one speed, so that its demand is the mean over the tasks of its unfinished groups; the player
    leaves when the last group ends. Capacity that is released before the next multiple is reallocated among the
    remaining players by another solve, as in PF; arriving players wait.

    A user of PF arrives with one demand and an amount of work, and leaves when the work is completed; such a user is a
    job here (`by="job"`, with the weight of the user). In PF the demand of a user is normalised,
    :math:`d_n / \max_r d_{nr}`, and the work is :math:`q_n = 300 \max_r d_{nr}` tasks of one second; here the tasks
    last 300 seconds. The allocated resources and the duration are the same.

    Parameters
    ----------
    workload : Workload
    mechanism : Mechanism or str
        A mechanism, or its name with parameters, such as `alphapf-vds(alpha=3)`.
    every : float
        Interval between solves in seconds; a change of servers always causes a solve.
    events : bool
        Also solve at every arrival and completion.
    by : str
        Players are single jobs ("job"), or users with all their present jobs ("user").
    limits : bool
        Limit the tasks of a player to the number of tasks of its unfinished groups, so that no task runs faster than on
        its own. PF has no such limit.
    until : float, optional
        End in seconds. Default: when all work is done, or no remaining player can run tasks.
    tol, throw
        As in `Mechanism.solve`; with `throw=False` inaccurate solves are flagged in the timeline.
    warm : bool
        Start each solve from the previous one.
    idle : bool
        Leave released capacity idle until the next multiple of `every`.
    half_life : float or str, optional
        Half-life of the memory of use, in seconds or as a text such as `12h` or `7d`: at each multiple of `every` the
        weights of users are reduced by their past use (`fairopt.scheduling.memory`). Default: no memory.
    progress : bool
        Show a progress bar of the work done. Ctrl-C ends the simulation; the schedule is then `interrupted`, and
        `schedule.run.run()` continues it.

    Returns
    -------
    FluidSchedule

    Raises
    ------
    DataError
        The mechanism is not defined on this workload, a job has a predecessor, or an option is invalid.
    SolverError, NotConverged, CertificateError
        A solve fails, as in `Mechanism.solve`.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 6 (arXiv:1712.10114), "semi-dynamic"; details
    that the paper leaves open are in docs/fluid.md.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 5.0], "cpu": [1, 1]})
    >>> workload = fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [2]}))
    >>> fo.fluid(workload, "drf").jobs["end"].round(3).tolist()
    [7.5, 5.0]
    """
    if not isinstance(workload, Workload):
        raise DataError(f"fluid takes a Workload; got a {type(workload).__name__} (Workload.from_frames makes one)")
    if (workload.after >= 0).any():
        raise DataError("here jobs come at given times, and some of these come after others (`after`): simulate them")
    end = math.inf if until is None else _validate.number(until, "until", "seconds >= 0", lambda end: end >= 0)
    run = FluidRun(
        workload, mechanisms.one(mechanism), every, events, one_of(by, "by", By), limits, tol, throw, warm, idle,
        None if half_life is None else memory.half_life(half_life),
    )  # fmt: skip
    return FluidSchedule(run.run(end, progress))
