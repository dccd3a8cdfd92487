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
        self.user = [int(w.user[g]) for g in self.group]
        capacity, demand = policies.get(policy, **parameters).room(w)
        self.demand, self.capacity = [demand[g].tolist() for g in self.group], capacity.tolist()
        self.total = capacity.sum(axis=0).tolist()
        self.servers, self.users, self.resources = len(w.servers), len(w.users), capacity.shape[1]
        self.weight = [F(float(x)) for x in w.weight]
        self.up = [True] * self.servers
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
        for k in range(len(w.change_time)):
            if w.change_time[k] == self.now:
                server = int(w.change_server[k])
                self.up[server] = bool(w.change_up[k])
                for run in self.active():
                    if run[1] == server:
                        run[3:] = [self.now, 2]
                        self.waiting.append(run[0])
        for user in range(self.users):
            if w.leaves[user] == self.now:
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
        for server in range(self.servers):
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

    def free(self, server: int, r: int) -> int:
        return self.capacity[server][r] - sum(self.demand[run[0]][r] for run in self.active() if run[1] == server)

    def fits(self, task: int, server: int) -> bool:
        eligible = self.w.eligible[self.w.placement[self.group[task]], server]
        room = all(self.demand[task][r] <= self.free(server, r) for r in range(self.resources))
        return bool(self.up[server] and eligible and room)

    def held(self, user: int, r: int, server: int | None = None) -> int:
        return sum(self.demand[run[0]][r] for run in self.active()
                   if self.user[run[0]] == user and server in (None, run[1]))  # fmt: skip

    def first(self, user: int) -> tuple[int, list[int]] | None:
        """The first waiting task of a user that fits, and where; tasks are numbered by (user, arrival, place)."""
        tasks = sorted(task for task in self.waiting if self.user[task] == user)
        for task in tasks[:1] if self.strict else tasks:
            if not self.below_cap(user, task):
                continue
            servers = [server for server in range(self.servers) if self.fits(task, server)]
            if servers:
                return task, servers
        return None

    def below_cap(self, user: int, task: int) -> bool:
        if self.policy != "mqdrf":
            return True
        shares, sizes = self.parameters["shares"], self.parameters["sizes"]
        newer = sum((self.since[other], other) > (self.since[user], user) for other in self.since)
        level = next((k for k in range(len(sizes)) if newer < sum(sizes[: k + 1])), len(sizes) - 1)
        cap = shares[level] / sizes[level]
        return all(
            float(F(self.held(user, r) + self.demand[task][r], self.total[r])) <= cap for r in range(self.resources)
        )

    def share(self, user: int) -> F:
        used = [self.held(user, r) for r in range(self.resources)]
        if self.policy == "sequential-min-max":
            head = min(task for task in self.waiting if self.user[task] == user)
            used = [used[r] + self.demand[head][r] for r in range(self.resources)]
        if self.policy == "choosy":
            return F(sum(self.user[run[0]] == user for run in self.active())) / self.weight[user]
        if self.policy == "tsf":
            return (
                sum((F(1, self.alone(run[0])) for run in self.active() if self.user[run[0]] == user), F(0))
                / (self.weight[user])
            )
        weight = F(1) if self.policy == "mqdrf" else self.weight[user]
        return max(F(used[r], self.total[r]) / weight for r in range(self.resources))

    def alone(self, task: int) -> int:
        need = self.demand[task]
        return sum(min(c[r] // need[r] for r in range(self.resources) if need[r]) for c in self.capacity)

    def decision(self) -> tuple[int, int] | None:
        if self.policy == "fifo":
            return self.fifo()
        users = sorted({self.user[task] for task in self.waiting})
        if self.policy in ("ps-dsf", "per-server-drf", "tetris"):
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
            for server in range(self.servers):
                if self.fits(task, server):
                    return task, server
            if self.strict:
                return None
        return None

    def misfit(self, task: int, server: int) -> F | float:
        """Equation (9) of DRFH times `C_r d_q / C_q`: exact of two resources, of more in doubles, as documented."""
        if self.policy != "best-fit-drfh":
            return 0
        need, total = self.demand[task], self.total
        q = next(r for r in range(self.resources) if need[r] > 0)
        left = [self.free(server, r) for r in range(self.resources)]
        others = [r for r in range(self.resources) if r != q]
        apart = [F(abs(left[r] * need[q] - need[r] * left[q]), left[q]) for r in others]
        if len(others) == 1:
            return apart[0]
        return sum((float(one) * (total[q] / (total[r] * need[q])) for one, r in zip(apart, others, strict=True)), 0.0)

    def pair(self, users: list[int]) -> tuple[int, int] | None:
        found = {user: self.first(user) for user in users}
        able = sorted((user for user in users if found[user] is not None), key=self.share)
        if self.policy == "tetris":
            keep = (1 - self.parameters["fairness"]) * len(able)
            able = able[: max(1, -int(-keep // 1))]
        best: tuple[Any, int, int, int] | None = None
        for user in able:
            task, servers = found[user]  # type: ignore[misc]
            for server in servers:
                key = (self.pair_value(user, task, server), user, server, task)
                best = key if best is None else min(best, key)
        return None if best is None else (best[3], best[2])

    def pair_value(self, user: int, task: int, server: int) -> float:
        c = self.capacity[server]
        if self.policy == "tetris":
            return -sum(self.demand[task][r] / c[r] * (self.free(server, r) / c[r])
                        for r in range(self.resources) if c[r])  # fmt: skip
        where = server if self.policy == "per-server-drf" else None
        values = [self.held(user, r, where) for r in range(self.resources)]
        return max(0.0 if not values[r] else values[r] / (c[r] * float(self.weight[user])) if c[r] else float("inf")
                   for r in range(self.resources))  # fmt: skip
