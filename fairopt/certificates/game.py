"""Exploitability of PS-DSF: the relative rise in tasks that a server owes to some user (alpha = infinity).

PF section 3, the condition that defines PS-DSF: on every server that n can use some resource that it needs is used up,
and whoever uses it there is not above n (see `bottleneck`). Servers that do not coordinate are judged likewise, each by
its own tasks alone. For finite alpha see `backward`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model._pointers import by_group
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import bottleneck

Array = NDArray[np.float64]


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
    for i in np.flatnonzero(np.diff(ends)):
        users = polytope.users[polytope.pair_user[by_server[ends[i] : ends[i + 1]]]]
        here = tasks[users, i]
        mine = totals[users] if game else here
        levels = mine * criterion.share[users, i] / criterion.weight[users]
        limits = limits_of[users] if game else np.full(len(users), np.inf)
        rise = bottleneck.rises(cluster.demand[users], cluster.capacity[i], here, levels, mine, limits)
        gaps[i] = rise.max()
        where[i] = f"user {cluster.users[users[int(rise.argmax())]]!r}"
    return gaps, where
