"""The simulator once more, task by task and as simple as can be: independent of both engines, for small workloads."""

from __future__ import annotations

from fractions import Fraction as F
from math import ceil
from typing import Any

import numpy as np

from fairopt.scheduling import Thrashing, policies
from fairopt.scheduling.workload import NEVER, Workload

#: task, server, start, end, how it ended: 0 runs, 1 done, 2 its server left, 3 its user left.
Run = list[int]


def level(demands: list[int], capacity: int) -> float:
    """Up to where all are given what they demand: `sum_n min(d_n, level) = capacity`."""
    left = sorted(demands)
    while left and left[0] * len(left) <= capacity:
        capacity -= left.pop(0)
    return capacity / len(left) if left else float("inf")


class Reference:
    """All tasks in plain lists; every decision looks at everything."""

    def __init__(
        self, w: Workload, policy: str, strict: bool = False, thrashing: Thrashing | None = None, **parameters: Any
    ) -> None:
        self.w, self.policy, self.strict, self.parameters = w, policy, strict, parameters
        self.thrashing = thrashing
        #: By run: work left, whether it is slow, and since when.
        self.pace: list[tuple[float, bool, int]] = []
        self.group = w.group_of_task.tolist()
        self.user = w.user[w.group_of_task].tolist()
        # Whole numbers without bounds, by server and by task.
        self.capacity, demand = (
            amounts.astype(object) for amounts in policies.REGISTRY.made(policy, parameters).room(w)
        )
        self.demand, self.total = demand[w.group_of_task], self.capacity.sum(axis=0)
        self.servers = range(len(w.servers))
        self.weight = [F(weight) for weight in w.weight.tolist()]
        self.up = [True for _ in self.servers]
        for server, up in list(zip(w.change_server, w.change_up, strict=True))[::-1]:
            self.up[server] = not up
        self.waiting: list[int] = []
        self.runs: list[Run] = []
        self.left: set[int] = set()
        self.since: dict[int, int] = {}
        self.come: set[int] = set()
        self.now = 0

    def run(self, until: int = NEVER) -> list[Run]:
        w = self.w
        times = {int(t) for t in w.arrival} | {int(t) for t in w.change_time} | {int(t) for t in w.leaves if t < NEVER}
        while True:
            ends = {run[3] for run in self.runs if run[4] == 0}
            later = [t for t in times | ends if t > self.now or (t == self.now and not self.runs)]
            later = [t for t in later if t <= until]
            if not later:
                break
            self.now = min(later)
            times.discard(self.now)
            self.instant()
        return [[*run[:3], run[3] if run[4] else NEVER, run[4]] for run in self.runs]

    def instant(self) -> None:
        w = self.w
        for run in self.active():
            if run[3] == self.now:
                run[4] = 1
        for k in np.flatnonzero(w.change_time == self.now).tolist():
            self.up[w.change_server[k]] = bool(w.change_up[k])
            for run in self.active():
                if run[1] == w.change_server[k]:
                    run[3:] = [self.now, 2]
                    self.waiting.append(run[0])
        for user in np.flatnonzero(w.leaves == self.now).tolist():
            self.left.add(user)
            self.waiting = [task for task in self.waiting if self.user[task] != user]
            for run in self.active():
                if self.user[run[0]] == user:
                    run[3:] = [self.now, 3]
        self.note_idle()
        self.arrivals()
        self.note_idle()
        while (found := self.decision()) is not None:
            task, server = found
            self.waiting.remove(task)
            self.runs.append([task, server, self.now, self.now + int(w.duration[task]), 0])
            self.pace.append((float(w.duration[task]), False, self.now))
        if self.thrashing is not None:
            self.settle(self.thrashing)

    def arrivals(self) -> None:
        for task, group in enumerate(self.group):
            if task in self.come or self.w.arrival[group] > self.now or not self.all_done_before(group):
                continue
            self.come.add(task)
            if self.user[task] not in self.left:
                self.waiting.append(task)

    def settle(self, thrashing: Thrashing) -> None:
        """How fast tasks run from now on, and when they end."""
        demand = self.w.demand[self.group]
        for server in self.servers:
            runs = [k for k, run in enumerate(self.runs) if run[4] == 0 and run[1] == server]
            needs = demand[[self.runs[k][0] for k in runs]]
            levels = [level(needs[:, r].tolist(), int(have)) for r, have in enumerate(self.w.capacity[server])]
            short = (needs > levels).any(axis=1)
            if thrashing.slows == "all":
                short[:] = np.isfinite(levels).any()
            for k, slow in zip(runs, short.tolist(), strict=True):
                left, was, since = self.pace[k]
                if slow != was:
                    left -= (self.now - since) / (thrashing.factor if was else 1)
                    self.pace[k] = left, slow, self.now
                    self.runs[k][3] = self.now + max(ceil(left * (thrashing.factor if slow else 1)), 1)

    def all_done_before(self, group: int) -> bool:
        """Is the job done that this group comes after?"""
        before = int(self.w.after[self.w.job[group]]) if len(self.w.after) else -1
        done = {run[0] for run in self.runs if run[4] == 1}
        return before < 0 or all(
            task in done for task, other in enumerate(self.group) if int(self.w.job[other]) == before
        )

    def note_idle(self) -> None:
        """Since when every user has had something."""
        busy = {self.user[task] for task in self.waiting} | {self.user[run[0]] for run in self.active()}
        self.since = {user: self.since.get(user, self.now) for user in busy}

    def active(self) -> list[Run]:
        return [run for run in self.runs if run[4] == 0]

    def held(self, user: int | None = None, server: int | None = None) -> Any:
        """What runs, of one user or of all, on one server or on all, (resources,)."""
        mine = [run[0] for run in self.active() if user in (None, self.user[run[0]]) and server in (None, run[1])]
        return self.demand[mine].sum(axis=0)

    def free(self, server: int) -> Any:
        return self.capacity[server] - self.held(server=server)

    def fits(self, task: int, server: int) -> bool:
        eligible = self.w.eligible[self.w.placement[self.group[task]], server]
        return bool(self.up[server] and eligible and (self.demand[task] <= self.free(server)).all())

    def first(self, user: int) -> tuple[int, list[int]] | None:
        """The first waiting task of a user that fits, and where; tasks are numbered by (user, arrival, place)."""
        tasks = sorted(task for task in self.waiting if self.user[task] == user)
        for task in tasks[:1] if self.strict else tasks:
            if not self.below_cap(user, task):
                continue
            if servers := [server for server in self.servers if self.fits(task, server)]:
                return task, servers
        return None

    def below_cap(self, user: int, task: int) -> bool:
        if self.policy != "mqdrf":
            return True
        shares, sizes = self.parameters["shares"], self.parameters["sizes"]
        newer = sum((self.since[other], other) > (self.since[user], user) for other in self.since)
        level = next((k for k in range(len(sizes)) if newer < sum(sizes[: k + 1])), len(sizes) - 1)
        cap = shares[level] / sizes[level]
        return all(float(F(part)) <= cap for part in F(1) * (self.held(user) + self.demand[task]) / self.total)

    def share(self, user: int) -> F:
        used = self.held(user)
        running = [run[0] for run in self.active() if self.user[run[0]] == user]
        if self.policy == "sequential-min-max":
            used = used + self.demand[min(task for task in self.waiting if self.user[task] == user)]
        if self.policy == "choosy":
            return len(running) / self.weight[user]
        if self.policy == "tsf":
            return sum((F(1, self.alone(task)) for task in running), F(0)) / self.weight[user]
        return F(max(F(1) * used / self.total)) / (1 if self.policy == "mqdrf" else self.weight[user])

    def alone(self, task: int) -> int:
        need = self.demand[task]
        return sum(min(c[need > 0] // need[need > 0]) for c in self.capacity)

    def decision(self) -> tuple[int, int] | None:
        if self.policy == "fifo":
            return self.fifo()
        users = sorted({self.user[task] for task in self.waiting})
        if self.policy in ("ps-dsf", "rps-dsf", "per-server-drf", "tetris"):
            return self.pair(users)
        for user in sorted(users, key=self.share):
            if (found := self.first(user)) is not None:
                task, servers = found
                return task, min(servers, key=lambda server: self.misfit(task, server))
            if self.strict:
                return None
        return None

    def fifo(self) -> tuple[int, int] | None:
        for task in sorted(self.waiting, key=lambda task: (self.w.arrival[self.group[task]], task)):
            for server in self.servers:
                if self.fits(task, server):
                    return task, server
            if self.strict:
                return None
        return None

    def misfit(self, task: int, server: int) -> F | float:
        """Equation (9) of DRFH times `C_r d_q / C_q`: exact of two resources, of more in doubles, as documented."""
        if self.policy != "best-fit-drfh":
            return 0
        need, total, left = self.demand[task], self.total, self.free(server)
        q = np.flatnonzero(need)[0]
        others = [r for r in range(len(need)) if r != q]
        apart = [F(abs(left[r] * need[q] - need[r] * left[q]), left[q]) for r in others]
        if len(others) == 1:
            return apart[0]
        return sum((float(one) * (total[q] / (total[r] * need[q])) for one, r in zip(apart, others, strict=True)), 0.0)

    def pair(self, users: list[int]) -> tuple[int, int] | None:
        found = {user: first for user in users if (first := self.first(user)) is not None}
        able = sorted(found, key=self.share)
        if self.policy == "tetris":
            keep = (1 - self.parameters["fairness"]) * len(able)
            able = able[: max(1, ceil(round(keep, 9)))]
        pairs = [(user, server, found[user][0]) for user in able for server in found[user][1]]
        if not pairs:
            return None
        _, server, task = min(pairs, key=lambda pair: (self.pair_value(*pair), pair))
        return task, server

    def pair_value(self, user: int, server: int, task: int) -> float:
        c = self.capacity[server]
        if self.policy == "tetris":
            return -float(sum(self.demand[task] / c * (self.free(server) / c)))
        if self.policy == "rps-dsf":
            weight = float(self.weight[user])
            parts = zip(self.held(user, None), self.free(server), strict=True)
            return max((float(has / (free * weight)) for has, free in parts if free > 0), default=0.0)
        where = server if self.policy == "per-server-drf" else None
        return float(max(self.held(user, where) / (c * float(self.weight[user]))))
