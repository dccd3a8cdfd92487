"""What happens in the plain engine: tasks wait, start and end, servers go and come back, users leave."""

from __future__ import annotations

import heapq
from bisect import insort
from collections import defaultdict

import numpy as np

from .runs import DONE, EVICTED, GONE, RUNNING
from .setup import DOWN, LEAVES, UP, Setup
from .state import State


class Events:
    """The state of a simulation, and what changes it.

    Groups of the same placement and demand are of one *kind*. A kind is closed while it is known to fit nowhere: it was
    looked for in vain, and no server has gained enough since. So a round looks at open kinds alone.
    """

    def __init__(self, setup: Setup) -> None:
        s, w = setup, setup.workload
        self.setup, self.policy, self.eligible = s, s.policy, w.eligible
        queues, servers = len(s.weight), len(w.servers)
        self.there = s.there.copy()
        self.capacity = np.asfortranarray(s.capacity)
        placed = (queues, servers, s.capacity.shape[1]) if s.policy.per_server else (0, 0, 0)
        self.state = State(
            w, self.capacity, np.asfortranarray(np.where(self.there[:, None], s.capacity, -1)),
            np.maximum(s.capacity.sum(axis=0), 1), s.demand, s.cost, s.total, s.queue, s.placement, s.weight,
            allocated=np.zeros((queues, len(s.total)), dtype=np.int64),
            running=np.zeros(queues, dtype=np.int64), waiting=np.zeros(queues, dtype=np.int64),
            head=np.full(queues, -1, dtype=np.int64), since=np.full(queues, -1, dtype=np.int64),
            placed=np.zeros(placed, dtype=np.int64),
        )  # fmt: skip
        self.kind_demand, self.kind_placement = s.demand[s.kinds], s.placement[s.kinds]
        self.open = np.zeros(len(s.kinds), dtype=bool)
        #: Waiting groups, in order: of every queue, and of every kind.
        self.of_queue: list[list[int]] = [[] for _ in range(queues)]
        self.of_kind: list[list[int]] = [[] for _ in s.kinds]
        #: The next task of every group that never ran, and those that wait again, which come before it.
        self.fresh = s.first_task.copy()
        self.again: dict[int, list[int]] = defaultdict(list)
        self.left = np.zeros(len(w.users), dtype=bool)
        self.ends: list[tuple[int, int]] = []
        self.on_server: list[dict[int, None]] = [{} for _ in w.servers]
        self.group_of_run: list[int] = []
        self.runs: dict[str, list[int]] = {name: [] for name in ("task", "server", "start", "end", "how")}
        self.ended = 0
        #: Tasks of every job that are to be done; groups whose job before has ended in this instant.
        self.to_do = s.tasks_of_job.copy() if len(s.before) else None
        self.released: list[int] = []

    def drop_stale(self) -> None:
        """Ends of runs that ended otherwise, or will at another time, are no events."""
        how, end = self.runs["how"], self.runs["end"]
        while self.ends and (how[self.ends[0][1]] != RUNNING or end[self.ends[0][1]] != self.ends[0][0]):
            heapq.heappop(self.ends)

    def arrive(self, group: int) -> None:
        allocated = self.to_do is not None and (job := self.setup.before[group]) >= 0 and self.to_do[job] > 0
        if not allocated and not self.left[self.setup.user[group]]:
            self.wait(group, int(self.setup.size[group]))

    def wait(self, group: int, tasks: int) -> None:
        """Tasks of a group wait; the group stands in line if it did not."""
        queue, kind = self.setup.queue[group], self.setup.kind[group]
        if self.waiting_of(group) == tasks:
            insort(self.of_queue[queue], group)
            insort(self.of_kind[kind], group)
            self.state.head[queue] = self.of_queue[queue][0]
        self.open[kind] = True
        self.state.waiting[queue] += tasks
        if self.state.since[queue] < 0:
            self.state.since[queue] = self.state.time

    def waiting_of(self, group: int) -> int:
        first = int(self.setup.first_task[group])
        return first + int(self.setup.size[group]) - int(self.fresh[group]) + len(self.again[group])

    def _out_of_line(self, group: int) -> None:
        queue = self.setup.queue[group]
        self.of_queue[queue].remove(group)
        self.of_kind[self.setup.kind[group]].remove(group)
        self.state.head[queue] = self.of_queue[queue][0] if self.of_queue[queue] else -1

    def start(self, group: int, server: int) -> None:
        """The first waiting task of a group starts."""
        s, state, queue = self.setup, self.state, self.setup.queue[group]
        if self.again[group]:
            task = heapq.heappop(self.again[group])
        else:
            task = int(self.fresh[group])
            self.fresh[group] += 1
        if not self.waiting_of(group):
            self._out_of_line(group)
        end = state.time + int(s.workload.duration[task])
        run = len(self.group_of_run)
        self.group_of_run.append(group)
        for name, value in (("task", task), ("server", server), ("start", state.time), ("end", end), ("how", RUNNING)):
            self.runs[name].append(value)
        heapq.heappush(self.ends, (end, run))
        self.on_server[server][run] = None
        state.free[server] -= s.demand[group]
        state.allocated[queue] += s.cost[group]
        state.running[queue] += 1
        state.waiting[queue] -= 1
        if self.policy.per_server:
            state.placed[queue, server] += s.demand[group]

    def end(self, run: int, how: int) -> None:
        """A run ends: what it held is free, and kinds that fit there now are open."""
        s, state, group, server = self.setup, self.state, self.group_of_run[run], self.runs["server"][run]
        queue = s.queue[group]
        self.runs["end"][run], self.runs["how"][run] = state.time, how
        del self.on_server[server][run]
        self.ended += how == DONE
        if how == DONE and self.to_do is not None:
            self._done(int(s.job[group]))
        state.allocated[queue] -= s.cost[group]
        state.running[queue] -= 1
        if self.policy.per_server:
            state.placed[queue, server] -= s.demand[group]
        if self.there[server]:
            state.free[server] += s.demand[group]
            self._gained(server)
        self._idle(queue)

    def _done(self, job: int) -> None:
        """A task of a job is done; after the last come those groups that should have come already."""
        assert self.to_do is not None
        self.to_do[job] -= 1
        if self.to_do[job] == 0:
            first, groups = self.setup.following
            for group in groups[first[job] : first[job + 1]].tolist():
                if self.setup.possible[group] and self.setup.arrival[group] < self.state.time:
                    self.released.append(group)

    def _idle(self, queue: int) -> None:
        if self.state.running[queue] == 0 and self.state.waiting[queue] == 0:
            self.state.since[queue] = -1

    def _gained(self, server: int) -> None:
        fits = (self.kind_demand <= self.state.free[server]).all(axis=1)
        self.open |= fits & self.eligible[self.kind_placement, server]

    def change(self, what: int, index: int) -> None:
        if what == UP:
            self.there[index] = True
            self.state.free[index] = self.capacity[index]
            self._gained(index)
        elif what == DOWN:
            self._down(index)
        elif what == LEAVES:
            self._leave(index)

    def _down(self, server: int) -> None:
        """Its tasks wait again, each with its full duration, before those of their groups that never ran."""
        self.there[server] = False
        self.state.free[server] = -1
        for run in list(self.on_server[server]):
            group, task = self.group_of_run[run], self.runs["task"][run]
            heapq.heappush(self.again[group], task)
            self.wait(group, 1)
            self.end(run, EVICTED)

    def _leave(self, user: int) -> None:
        """Waiting and running tasks of a user go; those that arrive later never wait."""
        s, state = self.setup, self.state
        self.left[user] = True
        for line in self.of_queue:
            for group in [group for group in line if s.user[group] == user]:
                state.waiting[s.queue[group]] -= self.waiting_of(group)
                self._out_of_line(group)
                self._idle(s.queue[group])
        for running in self.on_server:
            for run in [run for run in running if s.user[self.group_of_run[run]] == user]:
                self.end(run, GONE)
