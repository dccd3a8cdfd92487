"""The fluid model: a mechanism re-solved over time, tasks served at the rates that it allocates (PF section 6)."""

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
from ..model._arrays import Array, Mask, ratio
from .schedule import Outcome, used_parts
from .workload import NEVER, SECOND, By, Workload, one_of, owner, players

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Groups that end within this time [s] end together: times of workloads are whole numbers of it.
_TOGETHER = 1 / SECOND


#: Columns of the timeline that a step has of its solve, if it begins with one.
_OF_SOLVES = ("build", "solve", "certify", "rounds", "engine", "certificate", "flagged", "warm")


@dataclass
class FluidRun:
    """A fluid simulation under way: `run(until)` goes on with it, after an interruption too. See `fluid`."""

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
    #: Intervals at the rates of one allocation, as rows of the timeline; amounts times seconds used meanwhile,
    #: and there; what everybody had after each solve.
    steps: list[dict[str, Any]] = field(default_factory=list)
    use: list[tuple[Array, Array]] = field(default_factory=list)
    shares: list[pd.DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        w = self.workload
        _validate.number(self.every, "every", "seconds > 0", lambda every: 0 < every < math.inf)
        seconds = np.add.reduceat(w.duration / SECOND, w.first[:-1]) if w.groups else np.zeros(0)
        self.work: Array = seconds  # (groups,), tasks times seconds
        self.left = seconds.copy()
        self.rate = np.zeros(w.groups)
        self.begun, self.ended = np.full(w.groups, np.nan), np.full(w.groups, np.nan)
        # (groups,): who has arrived, who has left with its user, who took part in the last solve
        self.came, self.departed, self.served = np.zeros((3, w.groups), dtype=bool)
        self.arrival: Array = w.arrival / SECOND
        self.leaves: Array = np.where(w.leaves == NEVER, np.inf, w.leaves / SECOND)[w.user]
        self.change: Array = w.change_time / SECOND
        self._changed = 0
        self.up = w.there.copy()
        self.now = float(self.arrival.min(initial=np.inf)) if w.groups else 0.0
        self.forced = False  # servers have changed since the last solve: another one is due at once
        self.interrupted = False
        self._start: OtherUsers | None = None  # the last answer that offers others a start

    def run(self, until: float = math.inf, progress: bool = False) -> FluidRun:
        """Run until all work is done, nobody can go on, or the time `until` in seconds; Ctrl-C ends it earlier."""
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
        """(groups,): who has work left, and whose users are there."""
        return np.asarray(self.came & ~self.departed & np.isnan(self.ended))

    @property
    def due(self) -> bool:
        """True if servers or those who are present have changed since the last solve."""
        return self.forced or bool((self.served != self.present).any())

    def once(self, until: float = math.inf) -> bool:
        """One step: what happens now, a solve if one is due, and on to the next instant; False at the end."""
        self._happens()
        everybody = self.forced or self.events or abs(self._tick(self.now) - self.now) < _TOGETHER
        released = not self.idle and bool((self.served & ~self.present).any())
        solved = {}
        if self.due and (everybody or released):  # between the times for a solve it is for those of the last
            solved = self._solve(self.present if everybody else self.present & self.served)
        after = min(self._next(), until)
        if not math.isfinite(after):
            return False
        self._advance(after, solved)
        return True

    def _happens(self) -> None:
        """Arrivals, users that leave, and servers that come and go, up to now."""
        self.came = self.arrival <= self.now
        self.departed = self.came & (self.leaves <= self.now) & np.isnan(self.ended)
        before, self._changed = self._changed, int(np.searchsorted(self.change, self.now, side="right"))
        for k in range(before, self._changed):
            self.up[self.workload.change_server[k]] = self.workload.change_up[k]
            self.forced = True

    def _tick(self, time: float) -> float:
        """The first multiple of `every` from a time on, to a microsecond."""
        return self.every * math.ceil((time - _TOGETHER) / self.every)

    def _solve(self, those: Mask) -> dict[str, Any]:
        """The mechanism's allocation to these groups; how long it took, and how good it is."""
        here = np.flatnonzero(those)
        rate, about = np.zeros(len(those)), {}
        if len(here) and self.up.any():
            begun = clock.now()
            sharing = players(self.workload, here, self.up, self.by, self.limits)
            start = self._start if self.warm else None
            build = clock.now() - begun
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
        # Not before: the solve may be interrupted.
        self.forced, self.served, self.rate = False, those, rate
        self.begun[(rate > 0) & np.isnan(self.begun)] = self.now
        return about

    def _next(self) -> float:
        """When something happens next that the rates do not tell; infinite if nothing ever does."""
        here, due = self.present, self.due
        ends = self._ends()[here]
        arrival, change = (float(times[times > self.now].min(initial=np.inf)) for times in (self.arrival, self.change))
        end, last = float(ends.min(initial=np.inf)), float(ends.max(initial=self.now))
        certain = min(change, float(self.leaves[here].min(initial=np.inf)))
        if not here.any() and not math.isfinite(arrival):
            return math.inf  # servers may come and go, but nobody is there
        if self.events:
            return min(certain, arrival, end)
        if not self.idle:
            certain = min(certain, end)
        # Nothing is solved anew before something has changed, and then at the next multiple of `every`.
        first = self.now if due else min(arrival, end, certain)
        tick = self._tick(first) if math.isfinite(first) else np.inf
        tick += self.every * (tick <= self.now + _TOGETHER)
        # `last` is of all: nobody has to wait for what follows.
        return min(certain, tick if math.isfinite(arrival) or due else min(tick, last))

    def _ends(self) -> Array:
        """(groups,): when they end at their rates; infinite where they do not run."""
        return self.now + ratio(self.left, self.rate, np.inf)

    def _advance(self, after: float, solved: dict[str, Any]) -> None:
        """Serve until then; who ends before leaves what it had."""
        here, span, end = self.present, after - self.now, self._ends()
        done = here & (end <= after + _TOGETHER)
        served = np.where(done, self.left, self.rate * span) * here
        used = served @ (self.workload.demand * self.workload.unit)
        capacity = self.workload.capacity[self.up].sum(axis=0) * self.workload.unit
        known = len(np.unique(owner(self.workload, self.by)[here]))
        waiting = int(np.isnan(self.begun[here]).sum())
        step = {"time": self.now, "span": span, "players": known, "present": int(here.sum()), "waiting": waiting}
        self.steps.append(step | {"solved": bool(solved)} | dict.fromkeys(_OF_SOLVES) | solved)
        self.use.append((used, span * capacity))
        self.left -= served
        self.ended[done] = end[done]
        self.now = after


#: States of a job, as in a discrete schedule: "to come" arrives after the end, "gone" went with its user.
STATES = ("done", "running", "waiting", "gone", "to come")


@dataclass(frozen=True, eq=False, repr=False)
class FluidSchedule(Outcome):
    """Frames of a fluid simulation; times in seconds, work in tasks times seconds, NaN for what did not happen.

    Attributes
    ----------
    run : FluidRun
        Its state: `run.run(until)` goes on with it, and `FluidSchedule(run)` has the frames of that.
    """

    run: FluidRun

    @property
    def workload(self) -> Workload:
        """Workload that was served."""
        return self.run.workload

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
        """A row per user: weight; jobs, and those done; tasks, work and what is left of it; the mean response time of
        jobs that are done; the mean dominant share from the first arrival of anybody to the end."""
        jobs, user, many = self.jobs, self.workload.job_user, len(self.workload.users)
        counts = {name: np.bincount(user, jobs[name], many) for name in ("tasks", "work", "left")}
        counts["tasks"] = counts["tasks"].astype(np.int64)
        return self._per_user(counts, {"mean_dominant_share": self._dominant_shares()})

    @property
    def _use(self) -> tuple[Array, Array]:
        """Amounts times seconds that were used, and that were there, (steps, resources) each."""
        each = np.reshape(self.run.use, (-1, 2, len(self.workload.resources)))
        return each[:, 0], each[:, 1]

    def _dominant_shares(self) -> Array:
        """(users,): `max_r` of what a user had of every resource over the whole run, in parts of all servers."""
        run, w = self.run, self.workload
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
        columns = ["time", "span", "players", "present", "waiting", "solved", *_OF_SOLVES]
        steps = pd.DataFrame(self.run.steps, columns=columns).astype({"time": float}).set_index("time")
        use = pd.DataFrame(ratio(*self._use, np.nan), steps.index, list(self.workload.resources))
        return pd.concat([use, steps], axis=1)

    @property
    def shares(self) -> pd.DataFrame:
        """A row per solve and player: `time`, `player`, `tasks`, `share`: its dominant share of the servers there."""
        none = pd.DataFrame(columns=["time", "player", "tasks", "share"])
        return pd.concat(self.run.shares, ignore_index=True) if self.run.shares else none

    @property
    def utilization(self) -> pd.Series:
        """The part of every resource that is in use on average, from the first arrival to the end of the run."""
        used, there = self._use
        part = ratio(used.sum(axis=0), there.sum(axis=0), np.nan)
        return used_parts()(part, index=pd.Index(self.workload.resources, name="resource"), name="utilization")

    def summary(self) -> pd.Series:
        """Numbers about it: what is done, response times, use, solves and their seconds, the worst certificate."""
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
        """Use of resources and players over time, and the distribution of completion times; `ax` are three axes."""
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
    progress: bool = False,
) -> FluidSchedule:
    """Serve a workload at the rates of a mechanism: the semi-dynamic model of PF section 6.

        x = the mechanism's tasks of those present, solved anew at multiples of `every` seconds if anything has changed
        dW_g/dt = -x_n k_g / sum_h k_h      W_g: work of group g of player n, k_g its tasks, h its groups present

    At first `W_g` is the sum of the durations of the group's tasks: as much as they need at one second per second. A
    group ends when no work is left. A player, all of whose tasks run at one speed, asks for the mean demand of its
    unfinished groups, weighted by their tasks, and leaves with the last of them. What is released before the next
    multiple is reallocated among those who remain, as PF's, by a solve for them; those who arrive wait for that.

    PF's users arrive with one demand and an amount of work, and leave once it is done: that is a job here (`by="job"`,
    with the weight of its user). Its normalised demands, `d_n / max_r d_nr` with `q_n = 300 max_r d_nr` tasks of these
    to run for a second, are in our units tasks of 300 seconds: both give the same resources, and `q_n / x_n` seconds.

    Parameters
    ----------
    workload : whose jobs, and when servers come and go
    mechanism : its name, such as `"alphapf-vds(alpha=3)"`, or itself
    every : seconds from solve to solve, at multiples of this; where servers come or go is always solved anew
    events : solve whenever anybody arrives or ends as well
    by : who a user of the mechanism is: every `"job"`, or a `"user"` with all its jobs there
    limits : may nobody run more tasks than it has in unfinished groups, so that no task runs faster than on its own?
        PF has no such limit
    until : seconds; default: until all work is done, or nobody who is left can run anything
    tol, throw : as `Mechanism.solve`: a solve that misses its tolerance is an error, or flagged in the timeline
    warm : may engines start from the solve before
    idle : does what is released stay idle until the next multiple of `every`?
    progress : show a bar of the work done. Ctrl-C ends the run with what has happened until then; the schedule says so
        (`interrupted`), and `schedule.run.run()` goes on.

    Raises
    ------
    DataError
        The mechanism is not defined on this workload, or an option is none; the message says what to change.
    SolverError, NotConverged, CertificateError
        As `Mechanism.solve`.

    Source: Khamse-Ashari et al., arXiv 1712.10114, section 6 ("semi-dynamic"); what it leaves open: docs/fluid.md.
    """
    if not isinstance(workload, Workload):
        raise DataError(f"fluid takes a Workload; got a {type(workload).__name__} (Workload.from_frames makes one)")
    if (workload.after >= 0).any():
        raise DataError("here jobs come at given times, and some of these come after others (`after`): simulate them")
    end = math.inf if until is None else _validate.number(until, "until", "seconds >= 0", lambda end: end >= 0)
    run = FluidRun(
        workload, mechanisms.one(mechanism), every, events, one_of(by, "by", By), limits, tol, throw, warm, idle
    )
    return FluidSchedule(run.run(end, progress))
