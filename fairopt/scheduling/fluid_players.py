"""Who shares the cluster at an instant of the fluid model: jobs, or users with all that they have there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..model.cluster import Cluster
from .workload import Whole, Workload

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
By = Literal["job", "user"]


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
