"""Comparison of running tasks with entitlements: shortfalls and excesses, limits of next tasks, and next starts.

What limits a user's next task follows from the tasks that run now; `fairopt.result.holds` finds the bottlenecks of an
allocation by a mechanism.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...base.names import listed
from ...model._arrays import Array, Mask
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...study import metrics

if TYPE_CHECKING:
    from ...workloads import Snapshot

#: Relative tolerance of capacities in tests of whether a task fits, since sums of running tasks have rounding errors.
_ROUNDED = 1e-9


@dataclass(frozen=True)
class Held:
    """Limit of the next task of a user, given the running tasks.

    Attributes
    ----------
    words : str
        The resource that lacks room for the task on the user's eligible nodes; if there is room, the reason for
        waiting that the system states, or a remark; if no task waits, the reasons of capped tasks, or a remark.
    could_start : float
        Number of waiting tasks that would fit on eligible nodes now.
    room : str
        `could_start` in words; empty if no task fits, or if the system states a reason for waiting.
    reasons : mapping of str to float
        Numbers of waiting tasks, and of tasks that cannot run (`Snapshot.capped`), by the reason that the system
        states.
    """

    words: str
    could_start: float
    room: str
    reasons: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Verdict:
    """Verdict on running tasks by the entitlements of a mechanism.

    Attributes
    ----------
    runs : Allocation
        Running tasks.
    mechanism : str
        Mechanism that defines the entitlements.
    due, below, above : (users,)
        Tasks of the entitlement, of the shortfall, and of the excess of each user (`metrics.owed`).
    complains : (users, users) of bool
        Pairs of a user with a shortfall and a user with an excess that runs on a node where the first is eligible.
    held : sequence of Held
        Limit of the next task of each user.
    leaving : mapping of str to float
        Running tasks that are being deleted, by user.
    sentences : tuple of str
        The verdict in words, and how it differs under the compared mechanisms.
    """

    runs: Allocation
    mechanism: str
    due: Array
    below: Array
    above: Array
    complains: Mask
    held: Sequence[Held]
    leaving: Mapping[str, float]
    sentences: tuple[str, ...]

    @property
    def lacks(self) -> Array:
        """Shortfalls in dominant shares, (users,)."""
        return in_shares(self.runs.cluster, self.below)

    def givers(self, n: int) -> str:
        """Text on who could give user n its missing tasks: idle room, and users with an excess on eligible nodes."""
        above = listed([f"{name} {tasks:.3g}" for name, tasks in self.over(n).items()])
        return "; ".join(filter(None, (self.held[n].room, above)))

    def over(self, n: int) -> dict[str, float]:
        """Excess tasks of the users about whom user n complains, by decreasing dominant share of the excess."""
        cluster = self.runs.cluster
        order = largest(in_shares(cluster, self.above * self.complains[n]))
        return {cluster.users[j]: float(self.above[j]) for j in order}


def judge(runs: Allocation, mechanism: str, entitled: Mapping[str, Array], snapshot: Snapshot) -> Verdict:
    """Judge running tasks by the entitlements of a mechanism, and state how other mechanisms change the verdict."""
    cluster, due = runs.cluster, entitled[mechanism]
    # A snapshot of a system, which has a report, has whole tasks even if amounts are no multiples of the request.
    whole = True if snapshot.report else None
    below, above = metrics.owed(runs, due, whole)
    complains = metrics.complaining(runs, due, whole)
    made = Verdict(runs, mechanism, due, below, above, complains, held_now(runs, snapshot), snapshot.leaving, ())
    others = [name for name in entitled if name != mechanism]
    lacks = np.array([metrics.owed(runs, each, whole)[0] > 0 for each in entitled.values()])
    every, either = int(lacks.all(axis=0).sum()), int(lacks.any(axis=0).sum())
    under = " and ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
    same = f"{'The same users are below' if either else 'Nor is anybody below'} under {under}."
    differ = f"Under each of {under} {every} of them are below too; under one or another {either} users are."
    further = [same if every == either else differ] if others else []
    nowhere = [_quoted(cluster.users[n]) for n in np.flatnonzero(~cluster.runnable)
               if cluster.max_tasks[n] > 0 or cluster.users[n] in snapshot.capped]  # fmt: skip
    if nowhere:
        further.append(f"No node may run a task of {listed(nowhere)}.")
    if below.any():
        first = _worst(made)
    else:
        met = "" if nowhere or snapshot.capped or metrics.wanting(runs).any() else ", and everybody has all it wants"
        first = f"nobody lacks a whole task of what it is entitled to{met}."
    return replace(made, sentences=(f"Under {mechanism} {first}", *further))


def _worst(made: Verdict) -> str:
    """Sentence on the user with the largest shortfall, and on users with an excess about whom other users complain."""
    cluster = made.runs.cluster
    n, users = int(made.lacks.argmax()), int((made.below > 0).sum())
    cost, held = [], made.held[n]
    for j in largest(in_shares(cluster, made.above * made.complains.any(axis=0))):
        ends = f" ({ends:g} of them ending)" if (ends := made.leaving.get(cluster.users[j])) else ""
        cost.append(f"{_quoted(cluster.users[j])} by {made.above[j]:.3g}{ends}")
    who = "is below what it is entitled to:" if users == 1 else "are below what they are entitled to, most of all"
    why = f", although there is {held.room}" if held.room else f", held back by {held.words}"
    if held.words.startswith(OTHER):
        why = f", and waits for {held.words}"
    end = f"above at the cost of others: {listed(cost)}" if cost else "nobody is above at another's cost"
    said = f"{_quoted(cluster.users[n])}, which runs {made.runs.arrays.user_tasks[n]:.5g} of {made.due[n]:.3g} tasks"
    return f"{users} of {len(made.below)} users {who} {said}{why}; {end}."


def in_shares(cluster: Cluster, tasks: Array) -> Array:
    """Convert tasks of users to dominant shares; 0 for users whose task fits on no node."""
    share = cluster.dominant_share_per_task
    return np.where(np.isfinite(share), share, 0.0) * tasks


def largest(values: Array) -> list[int]:
    """Indices of positive values, in decreasing order of value."""
    return [n for n in np.argsort(-values, kind="stable").tolist() if values[n] > 0]


def _quoted(name: str) -> str:
    return f"'{name}'" if "," in name else name


#: Prefix of the stated reason of a waiting task that would fit.
OTHER = "another reason than room: "


def free_capacity(runs: Allocation) -> Array:
    """Capacity left by running tasks, (servers, resources), plus a tolerance for rounding."""
    return np.asarray(runs.cluster.capacity * (1 + _ROUNDED) - runs.tasks.T @ runs.cluster.demand)


def fitting(cluster: Cluster, n: int, free: Array, servers: list[int] | slice = slice(None)) -> Array:
    """Number of whole tasks of user n that fit on each server, (servers,)."""
    needs = cluster.demand[n] > 0
    fits = np.floor((free[servers][:, needs] / cluster.demand[n, needs]).min(axis=1, initial=np.inf)).clip(0)
    return np.where(cluster.usable[n, servers], fits, 0.0)


def held_now(runs: Allocation, snapshot: Snapshot | None) -> list[Held]:
    """Limit of the next task of each user, given the running tasks."""
    cluster, free, made = runs.cluster, free_capacity(runs), list[Held]()
    known = (snapshot.waiting, snapshot.capped) if snapshot else ({}, {})
    for n, wants in enumerate(metrics.wanting(runs).tolist()):
        may = cluster.usable[n]
        waiting, capped = (of.get(cluster.users[n], {}) for of in known)
        stated, fits = [reason for reason in waiting if reason], fitting(cluster, n, free)
        could, room = 0.0, ""
        if not wants:
            held = "; ".join(capped) or ("nothing: all its tasks run" if may.any() else "nowhere to run")
        elif fits.any():
            could = float(min(fits.sum(), np.ceil(cluster.max_tasks[n] - runs.arrays.user_tasks[n])))
            held = OTHER + "; ".join(stated) if stated else "nothing: there is idle room"
            where = _nodes(cluster.servers, np.flatnonzero(fits).tolist(), int(may.sum()))
            room = "" if stated else f"idle room for {could:g} on {where}"
        else:
            short = free[may] < cluster.demand[n]
            r = int(np.lexsort((-cluster.share_per_task[n], -short.sum(axis=0)))[0])
            where = _nodes(cluster.servers, np.flatnonzero(may)[short[:, r]].tolist(), int(may.sum()))
            held = f"{cluster.resources[r]} on {where}"
        reasons = {reason: tasks for reason, tasks in {**waiting, **capped}.items() if reason}
        made.append(Held(held, could, room, reasons))
    return made


def _nodes(names: Sequence[str], some: Sequence[int], of: int) -> str:
    if len(some) <= 2:
        return " and ".join(names[i] for i in some)
    return f"all {of} nodes that may run it" if len(some) == of else f"{len(some)} of {of} nodes that may run it"


def next_starts(runs: Allocation, due: Array) -> list[tuple[int, int]]:
    """Simulate the next starts of whole tasks without preemption, as (user, server), until no task fits.

    Among the users whose next task fits on some node, the user with the smallest ratio of running tasks to entitlement
    starts a task, on the node with room for the fewest of its tasks (best fit).
    """
    cluster, free = runs.cluster, free_capacity(runs)
    has, made = runs.arrays.user_tasks.astype(float), list[tuple[int, int]]()

    def place(n: int) -> tuple[float, int]:
        return has[n] / due[n] if due[n] > 0 else np.inf, n

    order = [place(n) for n in np.flatnonzero(metrics.wanting(runs)).tolist()]
    heapq.heapify(order)
    known: dict[int, tuple[Array, int]] = {}  # tasks that fit by server, and the number of starts when this was found
    while order:
        n = order[0][1]
        fits, before = known.get(n) or (fitting(cluster, n, free), len(made))
        filled = list({i for _, i in made[before:]})
        fits[filled] = fitting(cluster, n, free, filled)
        known[n] = fits, len(made)
        if not fits.any() or has[n] > cluster.max_tasks[n] - 1 + _ROUNDED:
            heapq.heappop(order)
            continue
        i = int(np.where(fits > 0, fits, np.inf).argmin())
        free[i] -= cluster.demand[n]
        has[n] += 1
        made.append((n, i))
        heapq.heapreplace(order, place(n))
    return made


def unfit(runs: Allocation) -> list[str]:
    """Describe running tasks that violate constraints, for example after a drain, a new taint, or a smaller node."""
    cluster = runs.cluster
    use = runs.tasks.T @ cluster.demand
    over = np.argwhere(use > cluster.capacity * (1 + 1e-6))
    stray = np.argwhere((runs.tasks > 0) & ~cluster.usable)
    said = [f"{cluster.resources[r]} of {cluster.servers[i]} ({use[i, r]:.4g} of {cluster.capacity[i, r]:.4g})"
            for i, r in over.tolist()]  # fmt: skip
    lost = [f"{cluster.users[n]} on {cluster.servers[i]} ({runs.tasks[n, i]:g})" for n, i in stray.tolist()]
    heads = {"More runs than there is room for": said, "Tasks run where they may not be started now": lost}
    return [f"{head}: {listed(some)}." for head, some in heads.items() if some]
