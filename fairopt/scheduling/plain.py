"""The plain engine: any policy, in Python and NumPy, written to be read. `compiled.py` does the same faster."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._events import Events
from .runs import DONE, RUNNING, Runs
from .setup import Setup
from .thrashing import Thrashing
from .workload import NEVER, Whole

#: Told how many tasks have ended.
Progress = Callable[[int], None]

#: Instants between two reports of progress.
_OFTEN = 256


def run(setup: Setup, until: int = NEVER, progress: Progress | None = None, thrashing: Thrashing | None = None) -> Runs:
    """Simulate up to and with `until`; `progress` is told how many tasks have ended."""
    return (Simulation(setup) if thrashing is None else ThrashingSimulation(setup, thrashing)).run(until, progress)


class Simulation(Events):
    """Events in order of time; at one instant ends, then changes, then arrivals, then one round of decisions."""

    def run(self, until: int, progress: Progress | None) -> Runs:
        """All instants up to `until`."""
        s = self.setup
        times, whats, indices = (array.tolist() for array in s.changes)
        arriving = np.flatnonzero(s.possible)
        arriving = arriving[np.argsort(s.arrival[arriving], kind="stable")]
        arrivals, groups = s.arrival[arriving].tolist(), arriving.tolist()
        change = arrival = instants = 0
        interrupted = False
        try:
            while True:
                self.drop_stale()
                now = min(
                    self.ends[0][0] if self.ends else NEVER,
                    times[change] if change < len(times) else NEVER,
                    arrivals[arrival] if arrival < len(arrivals) else NEVER,
                )
                if now == NEVER or now > until:
                    break
                self.state.time = now
                while self.ends and self.ends[0][0] == now:
                    self.end(heapq.heappop(self.ends)[1], DONE)
                    self.drop_stale()
                while change < len(times) and times[change] == now:
                    self.change(whats[change], indices[change])
                    change += 1
                for group in self.released:
                    self.arrive(group)
                self.released.clear()
                while arrival < len(arrivals) and arrivals[arrival] == now:
                    self.arrive(groups[arrival])
                    arrival += 1
                self._round()
                self._settle()
                instants += 1
                if progress is not None and instants % _OFTEN == 0:
                    progress(self.ended)
        except KeyboardInterrupt:
            interrupted = True
        columns = {name: np.array(column, dtype=np.int64) for name, column in self.runs.items()}
        how = columns.pop("how").astype(np.int8)
        columns["end"][how == RUNNING] = NEVER
        stopped = until if until < NEVER and not interrupted else self.state.time
        return Runs(**columns, how=how, time=stopped, instants=instants, interrupted=interrupted)

    def _round(self) -> None:
        """Decisions until none is left."""
        if self.policy.strict:
            while (decision := self._lowest_or_none()) is not None:
                self.start(*decision)
            return
        candidates: dict[int, list[int]] = defaultdict(list)
        groups = [group for kind in np.flatnonzero(self.open).tolist() for group in self.of_kind[kind]]
        for group in sorted(groups, reverse=True):
            candidates[int(self.setup.queue[group])].append(group)
        decide = self._best_pair if self.policy.pairs else self._lowest_that_fits
        while candidates and (decision := decide(candidates)) is not None:
            self.start(*decision)

    def _settle(self) -> None:
        """What is left to do once an instant is over."""

    def _lowest_or_none(self) -> tuple[int, int] | None:
        """The first waiting group of the queue with the lowest share, if it fits."""
        ready = np.flatnonzero(self.state.waiting)
        if not len(ready):
            return None
        group = int(self.state.head[ready[np.argmin(self.policy.share(self.state)[ready])]])
        servers = self._where(group)
        return self._served(group, servers) if len(servers) else None

    def _lowest_that_fits(self, candidates: dict[int, list[int]]) -> tuple[int, int] | None:
        """The first group that fits of the queue with the lowest share that has one."""
        share = self.policy.share(self.state)
        while candidates:
            ready = np.array(sorted(candidates))
            if (found := self._first_that_fits(candidates, int(ready[np.argmin(share[ready])]))) is not None:
                return self._served(*found)
        return None

    def _served(self, group: int, servers: Whole) -> tuple[int, int]:
        """A group, and the server with the lowest score."""
        score = self.policy.score(self.state, group, servers)
        return group, int(servers[0 if score is None else np.argmin(score)])

    def _best_pair(self, candidates: dict[int, list[int]]) -> tuple[int, int] | None:
        """The pair with the lowest value; ties go to the first queue, then to the first server."""
        fitting = {queue: found for queue in sorted(candidates)
                   if (found := self._first_that_fits(candidates, queue)) is not None}  # fmt: skip
        best, chosen = np.inf, None
        for queue in self.policy.among(self.state, np.array(list(fitting), dtype=np.int64)).tolist() if fitting else ():
            group, servers = fitting[queue]
            value = self.policy.value(self.state, group, servers)
            k = int(np.argmin(value))
            if chosen is None or value[k] < best:
                best, chosen = value[k], (group, int(servers[k]))
        return chosen

    def _first_that_fits(self, candidates: dict[int, list[int]], queue: int) -> tuple[int, Whole] | None:
        """The first waiting group of a queue that fits somewhere, and where; candidates that do not are dropped."""
        groups = candidates.get(queue, [])
        while groups:
            if self.waiting_of(groups[-1]) and len(servers := self._where(groups[-1])):
                return groups[-1], servers
            groups.pop()
        candidates.pop(queue, None)
        return None

    def _where(self, group: int) -> Whole:
        """The servers with room for a task of a group; none where its queue is at its limit."""
        kind = self.setup.kind[group]
        if not self.open[kind] or not self._allowed(group):
            return np.zeros(0, dtype=np.int64)
        servers = np.flatnonzero(self._fits(group))
        self.open[kind] = len(servers) > 0
        return servers

    def _fits(self, group: int) -> NDArray[np.bool_]:
        """(servers,): is there room for a task of a group?"""
        demand, free = self.setup.demand[group], self.state.free
        fits = free[:, 0] >= demand[0]
        for r in range(1, len(demand)):
            fits &= free[:, r] >= demand[r]
        placement = self.setup.placement[group]
        return np.asarray(fits & self.eligible[placement] if placement else fits)

    def _allowed(self, group: int) -> bool:
        """Does a task more leave its queue within its limit?"""
        if not self.policy.limits:
            return True
        queue = self.setup.queue[group]
        after = (self.state.allocated[queue] + self.setup.cost[group]) / self.setup.total
        return bool((after <= self.policy.limit(self.state)[queue]).all())


class ThrashingSimulation(Simulation):
    """Tasks run slower on servers that are over-committed.

    After every instant the tasks of the servers that changed are looked at: what is left of them, and how fast they run
    from now on. Microseconds of work that are left are doubles; ends are rounded up.
    """

    def __init__(self, setup: Setup, thrashing: Thrashing) -> None:
        super().__init__(setup)
        self.thrashing = thrashing
        self.remaining: list[float] = []
        self.slow: list[bool] = []
        self.looked: list[int] = []
        self.changed: set[int] = set()

    def start(self, group: int, server: int) -> None:
        super().start(group, server)
        self.remaining.append(float(self.setup.workload.duration[self.runs["task"][-1]]))
        self.slow.append(False)
        self.looked.append(self.state.time)
        self.changed.add(server)

    def end(self, run: int, how: int) -> None:
        super().end(run, how)
        self.changed.add(self.runs["server"][run])

    def _settle(self) -> None:
        w, now = self.setup.workload, self.state.time
        for server in sorted(self.changed):
            runs = list(self.on_server[server])
            demand = w.demand[self.setup.order[[self.group_of_run[run] for run in runs]]]
            for run, slow in zip(runs, self.thrashing.slowed(demand, w.capacity[server]).tolist(), strict=True):
                if slow != self.slow[run]:
                    self.remaining[run] -= (now - self.looked[run]) / (self.thrashing.factor if self.slow[run] else 1)
                    self.slow[run], self.looked[run] = slow, now
                    takes = self.remaining[run] * (self.thrashing.factor if slow else 1)
                    self.runs["end"][run] = end = now + max(int(np.ceil(takes)), 1)
                    heapq.heappush(self.ends, (end, run))
        self.changed.clear()
