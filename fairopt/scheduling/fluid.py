"""The fluid model: a mechanism re-solved over time, tasks served at the rates that it allocates (PF section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _clock, mechanisms
from .._libraries import pd
from .._progress import tqdm
from ..errors import DataError
from ..mechanisms import Mechanism
from ..model._arrays import Array, Mask, ratio
from ..model.cluster import Cluster
from ..solving.earlier import OtherUsers
from .schedule import Outcome, used_parts
from .workload import NEVER, SECOND, By, Whole, Workload, choice, owner, players

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Groups that end within this time [s] end together: times of workloads are whole numbers of it.
_TOGETHER = 1 / SECOND


@dataclass
class Step:
    """Interval from `time` for `span` seconds at the rates of one allocation."""

    time: float
    span: float
    players: int
    present: int  # groups
    waiting: int  # of these, those that have never run
    capacity: Array  # (resources,), of servers that are up
    used: Array  # (resources,), amounts times seconds
    solved: Solved | None  # if the step begins with one


@dataclass
class Solved:
    """One solve: how long it took, and how good it is."""

    cluster: Cluster
    tasks: Array  # (players,)
    build: float
    solve: float
    certify: float
    rounds: int
    engine: str
    certificate: float
    flagged: bool
    warm: bool


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
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        w = self.workload
        if not (math.isfinite(self.every) and self.every > 0):
            raise DataError(f"every is {self.every}; it must be a number of seconds > 0")
        seconds = np.add.reduceat(w.duration / SECOND, w.first[:-1]) if w.groups else np.zeros(0)
        self.work: Array = seconds  # (groups,), tasks times seconds
        self.left = seconds.copy()
        self.rate = np.zeros(w.groups)
        self.begun, self.ended = np.full(w.groups, np.nan), np.full(w.groups, np.nan)
        self.departed = np.zeros(w.groups, dtype=bool)
        self.arrival: Array = w.arrival / SECOND
        self.leaves: Array = np.where(w.leaves == NEVER, np.inf, w.leaves / SECOND)
        self.change: Array = w.change_time / SECOND
        self._order = np.argsort(w.arrival, kind="stable")
        self._arrived = self._changed = 0
        self.up = w.there.copy()
        self.present: Whole = np.zeros(0, dtype=np.int64)  # groups, ascending
        self.now = float(self.arrival.min(initial=np.inf)) if w.groups else 0.0
        self.due = True  # has anything changed since the last solve
        self.forced = False  # must be solved now, whatever `events` says
        self.served = np.zeros(w.groups, dtype=bool)  # (groups,): who took part in the last solve
        self.released = False  # has one of them left since
        self.interrupted = False
        self._start: OtherUsers | None = None  # the last answer that offers others a start

    # -- going on ----------------------------------------------------------------------------------

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
    def came(self) -> Mask:
        """(groups,): which have arrived."""
        found = np.zeros(self.workload.groups, dtype=bool)
        found[self._order[: self._arrived]] = True
        return found

    def once(self, until: float = math.inf) -> bool:
        """One step: what happens now, a solve if one is due, and on to the next instant; False at the end."""
        self._happens()
        solved = self._solve() if self.due and (self.released or self._may_solve()) else None
        after = min(self._next(), until)
        if not math.isfinite(after):
            return False
        self._advance(after, solved)
        return True

    def _happens(self) -> None:
        """Arrivals, users that leave, and servers that come and go, up to now."""
        w = self.workload
        arrived = int(np.searchsorted(self.arrival[self._order], self.now, side="right"))
        if arrived > self._arrived:
            new = self._order[self._arrived : arrived]
            self._arrived = arrived
            # Users that have left do not come back.
            late = self.leaves[w.user[new]] <= self.now
            self.departed[new[late]] = True
            self.present = np.sort(np.concatenate([self.present, new[~late]]))
            self.due = self.due or bool((~late).any())
        leaving = self.leaves[w.user[self.present]] <= self.now
        if leaving.any():
            self.departed[self.present[leaving]] = True
            self._release(self.present[leaving])
            self.present = self.present[~leaving]
        changed = int(np.searchsorted(self.change, self.now, side="right"))
        for k in range(self._changed, changed):
            self.up[w.change_server[k]] = w.change_up[k]
        if changed > self._changed:
            self._changed, self.due, self.forced = changed, True, True

    def _release(self, groups: Whole) -> None:
        """Release what absent groups held."""
        self.due = self.due or len(groups) > 0
        self.released = self.released or (not self.idle and bool(self.served[groups].any()))

    def _may_solve(self) -> bool:
        """True if a new solve of all present groups is due."""
        return self.forced or self.events or abs(self.now - self.every * round(self.now / self.every)) < _TOGETHER

    def _tick(self, time: float) -> float:
        """The first multiple of `every` from a time on (to a microsecond) that is to come."""
        tick = self.every * math.ceil((time - _TOGETHER) / self.every)
        return tick if tick > self.now + _TOGETHER else tick + self.every

    def _solve(self) -> Solved | None:
        """The mechanism's allocation to those who are present; between the times for it, to those left of the last."""
        here = self.present if self._may_solve() else self.present[self.served[self.present]]
        if not len(here) or not self.up.any():
            self._solved(here)
            return None
        begun = _clock.now()
        sharing = players(self.workload, here, self.up, self.by, self.limits)
        start = self._start if self.warm else None
        build = _clock.now() - begun
        found = self.mechanism.solve(sharing.cluster, self.tol, throw=self.throw, start=start)
        self._solved(here)  # and not before: the solve may be interrupted
        offered = OtherUsers(found)
        self._start = self._start if offered.earlier is None else offered
        self.rate[here] = found.arrays.user_tasks[sharing.player] * sharing.part
        self.begun[here[(self.rate[here] > 0) & np.isnan(self.begun[here])]] = self.now
        stats = found.stats
        return Solved(
            sharing.cluster, found.arrays.user_tasks, build + stats.build, stats.compile + stats.solve, stats.certify,
            stats.rounds, stats.engine, found.certificate.residual, found.flagged,
            start is not None,
        )  # fmt: skip

    def _solved(self, groups: Whole) -> None:
        """Record a solve; only later changes make another one due."""
        self.forced = self.released = False
        self.due = len(groups) < len(self.present)
        self.served[:] = False
        self.served[groups] = True
        self.rate[:] = 0.0

    def _next(self) -> float:
        """When something happens next that the rates do not tell; infinite if nothing ever does."""
        w, here = self.workload, self.present
        arrival = self.arrival[self._order[self._arrived]] if self._arrived < w.groups else np.inf
        change = self.change[self._changed] if self._changed < len(self.change) else np.inf
        leave = float(self.leaves[w.user[here]].min(initial=np.inf))
        end = float(self._ends(here).min(initial=np.inf))
        certain = min(change, leave)
        if not len(here) and not math.isfinite(arrival):
            return math.inf  # servers may come and go, but nobody is there
        if self.events:
            return float(min(certain, arrival, end))
        if not self.idle:
            certain = min(certain, end)
        # Nothing is solved anew before something has changed, and then at the next multiple of `every`.
        first = self.now if self.due else min(arrival, end, certain)
        tick = self._tick(first) if math.isfinite(first) else np.inf
        last = float(self._ends(here).max(initial=self.now))  # of all: nobody has to wait for what follows
        return float(min(certain, tick if math.isfinite(arrival) or self.due else min(tick, last)))

    def _ends(self, groups: Whole) -> Array:
        """When groups end at their rates; infinite where they do not run."""
        rate = self.rate[groups]
        need = ratio(self.left[groups], rate, np.inf)
        return self.now + need

    def _advance(self, after: float, solved: Solved | None) -> None:
        """Serve until then; who ends before leaves what it had."""
        here, span = self.present, after - self.now
        end, left, rate = self._ends(here), self.left[here], self.rate[here]
        done = end <= after + _TOGETHER
        served = np.where(done, left, rate * span)
        used = served @ (self.workload.demand[here] * self.workload.unit)
        capacity = self.workload.capacity[self.up].sum(axis=0) * self.workload.unit
        known = len(np.unique(owner(self.workload, self.by)[here]))
        waiting = int(np.isnan(self.begun[here]).sum())
        self.steps.append(Step(self.now, span, known, len(here), waiting, capacity, used, solved))
        self.left[here] = np.where(done, 0.0, left - served)
        self.ended[here[done]] = end[done]
        self._release(here[done])
        self.present, self.now = here[~done], after


#: States of a job, as in a discrete schedule: "to come" arrives after the end, "gone" went with its user.
STATES = ("done", "running", "waiting", "gone", "to come")
#: Columns of the timeline that a step has, and a solve.
_OF_STEPS = ("span", "players", "present", "waiting")
_OF_SOLVES = {"build": float, "solve": float, "certify": float, "rounds": float, "engine": object,
              "certificate": float, "flagged": object, "warm": object}  # fmt: skip


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
        run, w, of, count = self.run, self.workload, self.workload.job, len(self.workload.jobs)
        arrival, start, end = np.full(count, np.inf), np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(arrival, of, run.arrival)
        np.fmin.at(start, of, run.begun)
        np.fmax.at(end, of, run.ended)
        unfinished = np.bincount(of, np.isnan(run.ended), count) > 0
        start = np.where(np.isinf(start), np.nan, start)
        departed = np.bincount(of, run.departed, count) > 0
        to_come = np.bincount(of, ~run.came, count) == np.bincount(of, minlength=count)
        state = np.select(
            [departed, ~unfinished, ~np.isnan(start), to_come], ["gone", "done", "running", "to come"], "waiting"
        )
        return self._per_job(
            {"arrival": arrival, "start": start, "end": np.where(unfinished, np.nan, end),
             "tasks": np.bincount(of, np.diff(w.first), count).astype(np.int64),
             "work": np.bincount(of, run.work, count), "left": np.bincount(of, run.left, count),
             "state": pd.Categorical(state, categories=list(STATES))}
        )  # fmt: skip

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
        steps, width = self.run.steps, len(self.workload.resources)
        each = [step.used for step in steps], [step.span * step.capacity for step in steps]
        return np.reshape(each[0], (-1, width)), np.reshape(each[1], (-1, width))

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
        steps, use = self.run.steps, ratio(*self._use, np.nan)
        columns: dict[str, object] = {name: use[:, r] for r, name in enumerate(self.workload.resources)}
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

    @property
    def utilization(self) -> pd.Series:
        """The part of every resource that is in use on average, from the first arrival to the end of the run."""
        used, there = self._use
        part = ratio(used.sum(axis=0), there.sum(axis=0), np.nan)
        return used_parts()(part, index=pd.Index(self.workload.resources, name="resource"), name="utilization")

    def summary(self) -> pd.Series:
        """Numbers about it: what is done, response times, use, solves and their seconds, the worst certificate."""
        solves = [one for _, one in self.solves]
        states = {f"jobs {name}": count for name, count in self._counts().items()}
        found = self._summary(str(self.run.mechanism), {"jobs": 0} | states, {})
        found["solves"], found["warm"] = len(solves), sum(one.warm for one in solves)
        found["seconds"] = sum(one.build + one.solve + one.certify for one in solves)
        found["certificate"] = max((one.certificate for one in solves), default=0.0)
        found["flagged"] = sum(one.flagged for one in solves)
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
        worst = max((one.certificate for _, one in self.solves), default=0.0)
        more = f"; {len(self.solves)} solves, certificates <= {worst:.1e}"
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
    if until is not None and math.isnan(until):
        raise DataError("until is nan; give seconds, or leave it out")
    run = FluidRun(
        workload, mechanisms.one(mechanism), float(every), events, choice(by), limits, tol, throw, warm, idle
    )
    return FluidSchedule(run.run(math.inf if until is None else float(until), progress))
