"""Fairness of running tasks: users below their entitlement, what limits them, and who could give.

All is of what runs, in whole tasks: a user is below where it lacks a whole task (`metrics.owed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..model._arrays import Array, Mask
from ..model._names import listed
from ..model.cluster import Cluster
from ..result import metrics
from ..result.allocation import Allocation

#: What of a resource is left may lack this part of a task: sums of what runs are rounded.
_ROUNDED = 1e-9


def verdict(
    runs: Allocation, mechanism: str, entitled: Mapping[str, Array], held: Sequence[str], rooms: Sequence[str]
) -> tuple[str, ...]:
    """A sentence under the mechanism, and one on the others; `held`, `rooms`: what holds each user, and idle room."""
    cluster, due = runs.cluster, entitled[mechanism]
    below, above = metrics.owed(runs, due)
    others = [name for name in entitled if name != mechanism]
    lacks = np.array([metrics.owed(runs, each)[0] > 0 for each in entitled.values()])
    every, some = int(lacks.all(axis=0).sum()), int(lacks.any(axis=0).sum())
    same = f"{'Who is below is the same' if some else 'Nor is anybody below'} under {_and(others)}."
    differ = f"Under each of {_and(others)} {every} of them are below too; under one or another {some} users are."
    further = [same if every == some else differ] if others else []
    nowhere = [_quoted(cluster.users[n]) for n in np.flatnonzero(~cluster.runnable & (cluster.max_tasks > 0))]
    if nowhere:
        further.append(f"No node may run a task of {listed(nowhere)}.")
    if not below.any():
        met = "" if nowhere or metrics.wanting(runs).any() else ", and everybody has all it wants"
        return (f"Under {mechanism} nobody lacks a whole task of what it is entitled to{met}.", *further)
    n, users = int(in_shares(cluster, below).argmax()), int((below > 0).sum())
    blamed = _largest(in_shares(cluster, above * metrics.complaining(runs, due).any(axis=0)))
    cost = listed([f"{_quoted(cluster.users[j])} by {above[j]:.3g}" for j in blamed])
    who = "is below what it is entitled to:" if users == 1 else "are below what they are entitled to, most of all"
    why = f"although there is {rooms[n]}" if rooms[n] else f"held back by {held[n]}"
    ends = f"above at the cost of others: {cost}" if blamed else "nobody is above at another's cost"
    said = f"{_quoted(cluster.users[n])}, which runs {runs.arrays.user_tasks[n]:g} of {due[n]:.3g} tasks"
    return (f"Under {mechanism} {users} of {len(below)} users {who} {said}, {why}; {ends}.", *further)


def in_shares(cluster: Cluster, tasks: Array) -> Array:
    """Tasks of users as dominant shares; none of who can run nothing."""
    return np.where(cluster.runnable, cluster.dominant_share_per_task, 0.0) * tasks


def _largest(values: Array) -> list[int]:
    """Places of what is above 0, the largest first."""
    return [n for n in np.argsort(-values, kind="stable").tolist() if values[n] > 0]


def _quoted(name: str) -> str:
    return f"'{name}'" if "," in name else name


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def held_now(runs: Allocation, gated: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Limit of each user's next task on the nodes as they are, and where there is room for how many."""
    cluster = runs.cluster
    free = cluster.capacity * (1 + _ROUNDED) - runs.tasks.T @ cluster.demand
    held, rooms = [], []
    for n, wants in enumerate(metrics.wanting(runs).tolist()):
        may, needs = cluster.usable[n], cluster.demand[n] > 0
        fits = np.floor((free[may][:, needs] / cluster.demand[n, needs]).min(axis=1, initial=np.inf)).clip(0)
        room, gate = fits.sum(), gated.get(cluster.users[n], 0)
        rooms.append("")
        if not wants:
            held.append("has all its tasks" if may.any() else "nowhere to run")
        elif gate >= cluster.max_tasks[n] - runs.arrays.user_tasks[n]:
            held.append("a gate or a limit of its owner")
        elif room > 0:
            where = np.flatnonzero(may)[fits > 0]
            rooms[-1] = f"idle room for {room:g} on {_nodes(cluster.servers, where.tolist(), len(where))}"
            held.append("nothing: there is idle room")
        else:
            short = free[may] < cluster.demand[n]
            r = int(np.lexsort((-cluster.share_per_task[n], -short.sum(axis=0)))[0])
            where = np.flatnonzero(may)[short[:, r]]
            held.append(f"{cluster.resources[r]} on {_nodes(cluster.servers, where.tolist(), int(may.sum()))}")
    return held, rooms


def _nodes(names: Sequence[str], some: Sequence[int], of: int) -> str:
    if len(some) <= 2:
        return " and ".join(names[i] for i in some)
    return f"all {of} nodes that may run it" if len(some) == of else f"{len(some)} of {of} nodes that may run it"


def givers(runs: Allocation, complains: Mask, above: Array, rooms: Sequence[str]) -> list[str]:
    """Givers of what each user lacks: idle room, and users above their entitlement where it may run."""
    cluster = runs.cluster
    found = []
    for room, row in zip(rooms, complains, strict=True):
        named = [f"{cluster.users[j]} {above[j]:.3g}" for j in _largest(in_shares(cluster, above * row))]
        found.append("; ".join(filter(None, (room, listed(named)))))
    return found


def unfit(runs: Allocation) -> list[str]:
    """Running tasks that do not fit, in words: after a drain, a new taint, a smaller node."""
    cluster = runs.cluster
    use = runs.tasks.T @ cluster.demand
    over = np.argwhere(use > cluster.capacity * (1 + 1e-6))
    stray = np.argwhere((runs.tasks > 0) & ~cluster.usable)
    said = [f"{cluster.resources[r]} of {cluster.servers[i]} ({use[i, r]:.4g} of {cluster.capacity[i, r]:.4g})"
            for i, r in over.tolist()]  # fmt: skip
    lost = [f"{cluster.users[n]} on {cluster.servers[i]} ({runs.tasks[n, i]:g})" for n, i in stray.tolist()]
    heads = {"More runs than there is room for": said, "Tasks run where they may not be started now": lost}
    return [f"{head}: {listed(some)}." for head, some in heads.items() if some]
