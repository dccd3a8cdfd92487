"""`FluidRun`: the state of a fluid simulation, from one solve to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _clock
from .._progress import tqdm
from ..errors import DataError
from ..mechanisms import Mechanism
from ..model._arrays import ratio
from ..model.cluster import Cluster
from ..solving.earlier import OtherUsers
from .workload import NEVER, SECOND, Whole, Workload

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
By = Literal["job", "user"]

#: Groups that end within this time [s] end together: times of workloads are whole numbers of it.
_TOGETHER = 1 / SECOND


@dataclass
class Step:
    """What ran from `time` for `span` seconds, at the rates of one allocation."""

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
        self.up = np.ones(len(w.servers), dtype=bool)
        first_change = np.unique(w.change_server, return_index=True)
        self.up[first_change[0]] = ~w.change_up[first_change[1]]
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
        """Go on until all work is done, nobody can go on, or the time `until` in seconds; Ctrl-C ends it before."""
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
        """What groups had that are no longer there is free."""
        self.due = self.due or len(groups) > 0
        self.released = self.released or (not self.idle and bool(self.served[groups].any()))

    def _may_solve(self) -> bool:
        """Is it the time for a solve of all who are present?"""
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
        self._serve(sharing, found.user_tasks)
        stats = found.stats
        return Solved(
            sharing.cluster, found.user_tasks, build + stats.build, stats.compile + stats.solve, stats.certify,
            stats.rounds, stats.engine, found.certificate.residual, found.flagged,
            start is not None,
        )  # fmt: skip

    def _solved(self, groups: Whole) -> None:
        """Nothing is due but for those who wait for the next time."""
        self.forced = self.released = False
        self.due = len(groups) < len(self.present)
        self.served[:] = False
        self.served[groups] = True
        self.rate[:] = 0.0

    def _serve(self, sharing: Players, tasks: Array) -> None:
        groups, rates = sharing.groups, sharing.rates(tasks)
        self.rate[groups] = rates
        fresh = groups[(rates > 0) & np.isnan(self.begun[groups])]
        self.begun[fresh] = self.now

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
        return np.asarray(self.now + need)

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


# -- who shares ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Players:
    """Players of an instant as the users of a cluster, and what of their tasks goes to which group.

    A player's tasks run side by side at one speed: with `k_g` tasks in group g it asks for `sum k_g d_g / sum k_g` per
    task, and of its `x` tasks `x k_g / sum k_g` are of group g. While these are served, demands of a player do not
    change, so that what runs is what was allocated.
    """

    cluster: Cluster
    groups: Whole  # (groups present,)
    player: NDArray[np.intp]  # (groups present,), rows of the cluster's users
    part: Array  # (groups present,), of its player's tasks

    def rates(self, user_tasks: Array) -> Array:
        """How many tasks of every group run, (groups present,)."""
        return np.asarray(user_tasks[self.player] * self.part)


def choice(by: str) -> By:
    """`by`, if it is one of those that there are."""
    if by not in get_args(By):
        raise DataError(f"by is {by!r}; it must be 'job' (PF: every job is a user of the mechanism) or 'user'")
    return by  # type: ignore[return-value]


def owner(workload: Workload, by: By) -> Whole:
    """The player of every group, (groups,)."""
    return workload.job if by == "job" else workload.user


def players(workload: Workload, groups: Whole, up: Mask, by: By, limits: bool) -> Players:
    """Those whose `groups` are present, on the servers that are `up`.

    A player's tasks may run where any of its groups may. A job has the weight of its user. With `limits` nobody runs
    more tasks than it has in unfinished groups.
    """
    w = workload
    who, player = np.unique(owner(w, by)[groups], return_inverse=True)
    player = player.reshape(-1)
    count = (w.first[groups + 1] - w.first[groups]).astype(float)
    total = np.bincount(player, count)
    part = count / total[player]
    demand = np.stack([np.bincount(player, part * column) for column in (w.demand[groups] * w.unit).T], axis=1)
    eligible = None
    if w.placement[groups].any():
        kinds = np.unique(np.column_stack([player, w.placement[groups]]), axis=0)
        eligible = np.zeros((len(who), int(up.sum())), dtype=bool)
        np.logical_or.at(eligible, kinds[:, 0], w.eligible[:, up][kinds[:, 1]])
    names = w.jobs if by == "job" else w.users
    weight = w.weight[w.job_user[who]] if by == "job" else w.weight[who]
    cluster = Cluster(
        w.capacity[up] * w.unit, demand, weight, eligible, total if limits else None,
        w.resources, [names[k] for k in who], [name for name, there in zip(w.servers, up, strict=True) if there],
    )  # fmt: skip
    return Players(cluster, groups, player, part)
