"""What the claims about whole tasks compute: servers that are empty, filled by a policy with tasks that outlast all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..model.cluster import Cluster
from ..scheduling import Workload, simulate

Array = NDArray[np.float64]
Numbers = Callable[[Cluster], Array]

#: Seconds: of the experiment, and of its tasks.
_UNTIL, _LASTS = 1000.0, 1e6


def filled(policy: str, come: tuple[float, ...] | None = None, leave: tuple[float, ...] | None = None) -> Numbers:
    """Whole tasks of every user that run in the end, if users come and leave at these seconds (default: 0, never).

    Everybody has as many tasks as would fill all servers.
    """

    def tasks(cluster: Cluster) -> Array:
        users, resources = list(cluster.users), list(cluster.resources)
        number = [max(1, int(count) + 1) for count in cluster.gamma.sum(axis=1)]
        table = pd.DataFrame(cluster.demand, columns=resources).assign(
            user=users, tasks=number, duration=_LASTS, arrival=[0.0] * len(users) if come is None else come
        )
        servers = pd.DataFrame(cluster.capacity, columns=resources)
        of_users = pd.DataFrame({"user": users, "weight": cluster.weight, "leaves": leave or [np.inf] * len(users)})
        schedule = simulate(Workload.from_frames(table, servers, of_users), policy, until=_UNTIL)
        running = schedule.tasks[schedule.tasks["state"] == "running"]
        return np.asarray(running.groupby("user", observed=False).size().reindex(users), dtype=float)

    return tasks


def shares(policy: str) -> Numbers:
    """The same as dominant shares of the pool."""
    return lambda cluster: filled(policy)(cluster) * cluster.dominant_share_per_task


def used(policy: str) -> Numbers:
    """The used part of every resource of the pool."""
    return lambda cluster: filled(policy)(cluster) @ cluster.share_per_task
