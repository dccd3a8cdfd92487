"""Queues of a snapshot: the nodes of its declared tree and the namespaces or accounts of users outside of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...model._arrays import Array
from ...model.cluster import Cluster
from ...model.queues import Queue, Queues
from ...scheduling.memory import reduced
from .edits import group


@dataclass(eq=False)
class Members:
    """A queue: its parent (None for the root), its weight among siblings, and indices of the users in its subtree."""

    parent: str | None
    weight: float
    users: list[int] = field(default_factory=list)


def members(cluster: Cluster, queues: Queues | None) -> dict[str, Members]:
    """Queues by name, each after its parent.

    The users of a namespace or account that belong to no queue of the tree form a queue. A user that is named like its
    namespace or account is a queue by itself, unless it is the only user of its parent queue.
    """
    entries, found = {} if queues is None else queues.queues, dict[str, Members]()
    for n, user in enumerate(cluster.users):
        own, path = entries.get(user, Queue()), list[str]()
        at = own.parent
        while at is not None:
            path.insert(0, at)
            at = entries[at].parent
        for name in path:
            weight = entries[name].weight
            found.setdefault(name, Members(entries[name].parent, 1.0 if weight is None else weight)).users.append(n)
        if not path or group(user) == user:
            one = found.setdefault(group(user), Members(own.parent, 0.0))
            one.weight += float(cluster.weight[n]) if own.weight is None else own.weight
            one.users.append(n)
    return {name: one for name, one in found.items() if one.parent is None or one.users != found[one.parent].users}


def shares(cluster: Cluster, tasks: Array, of: Iterable[Sequence[int]]) -> list[float]:
    """Dominant share of each group of users in the whole cluster.

    `of` has the indices of the users of each group, and `tasks`, (users,), the tasks of all users.
    """
    whole = np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, np.inf)
    return [float((tasks[users] @ cluster.demand[users] / whole).max(initial=0.0)) for users in of]


def remembered(
    cluster: Cluster, queues: Queues | None, of: Mapping[str, Members], usage: Mapping[str, float]
) -> tuple[Cluster, Queues | None]:
    """Cluster and tree with weights reduced by the past usage of queues relative to siblings (`scheduling.memory`)."""
    weight, changed = cluster.weight.copy(), {} if queues is None else dict(queues.queues)
    for parent in {one.parent for one in of.values()}:
        names = [name for name, one in of.items() if one.parent == parent]
        given = np.array([of[name].weight for name in names])
        less = reduced(given, np.array([usage.get(name, 0.0) for name in names]))
        for name, factor in zip(names, less / given, strict=True):
            one = of[name]
            if name in changed and name not in cluster.users:
                changed[name] = replace(changed[name], weight=one.weight * factor)
                continue
            weight[one.users] *= factor
            for user in (cluster.users[n] for n in one.users):
                if user in changed and (own := changed[user].weight) is not None:
                    changed[user] = replace(changed[user], weight=own * factor)
    return cluster.replace(weight=weight), None if queues is None else Queues(changed)
