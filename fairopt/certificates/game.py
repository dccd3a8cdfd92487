"""Exploitability of PS-DSF: the relative rise in tasks that a server owes to some user (alpha = infinity).

PF section 3, the condition that defines PS-DSF: on every server that n can use some resource that it needs is used up,
and whoever uses it there is not above n (see `bottleneck`). Servers that do not coordinate are judged likewise, each by
its own tasks alone. For finite alpha see `backward`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model._pointers import by_group, in_tables
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import bottleneck

Array = NDArray[np.float64]

#: Users on servers that are looked at together.
_TABLE = 20_000


def exploitability(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[Array, list[str]]:
    """Per server: its exploitability (servers,), and the user who attains it, in words.

    It is the largest of `rises` on that server: the relative rise in tasks that it owes to some user.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : with infinite alpha, in the scope `game` (PS-DSF), or `per_server`, where each server is judged by its
        own tasks alone

    Source: Khamse-Ashari et al., arXiv 1712.10114 (PF), section 3, the condition that defines PS-DSF.
    """
    cluster = polytope.cluster
    game = criterion.scope == "game"
    totals = tasks.sum(axis=1)
    gaps, where = np.zeros(cluster.shape[1]), [""] * cluster.shape[1]
    limits_of = criterion.limits(cluster)
    by_server, ends = by_group(polytope.pair_server, cluster.shape[1])
    for some, pairs, there in in_tables(by_server, ends, _TABLE):
        users = polytope.users[polytope.pair_user[pairs]]
        here = np.where(there, tasks[users, some[:, None]], 0.0)
        mine = np.where(there, totals[users], 1.0) if game else here
        with np.errstate(invalid="ignore"):
            levels = np.where(there, mine * criterion.share[users, some[:, None]] / criterion.weight[users], np.inf)
        limits = limits_of[users] if game else np.full(users.shape, np.inf)
        demand = cluster.demand[users] * there[:, :, None]
        rise = bottleneck.rises(demand, cluster.capacity[some], here, levels, mine, limits)
        rise = np.where(there, rise, -np.inf)
        gaps[some] = rise.max(axis=1)
        for i, worst in zip(some, users[np.arange(len(some)), rise.argmax(axis=1)], strict=True):
            where[i] = f"user {cluster.users[worst]!r}"
    return gaps, where
