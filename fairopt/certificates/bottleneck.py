"""Max-min on one server: everyone meets a saturated resource shared only with users at or below its level.

User n blocked on resource r could still rise by what is idle plus what users above its level hold there:
`rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} (x_m - floor_m) d[m,r]) / (d[n,r] X_n)`, relative to all tasks
`X_n` that n has (on other servers too, for the per-server game: PF section 3 states this as the condition for PS-DSF).
The certificate is the largest over n of the smallest over r. Levels equal to within t count as equal at the price of t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model._pointers import by_group, in_tables
from ..model.criterion import Criterion
from ..model.polytope import Polytope

Array = NDArray[np.float64]


def rises(
    demand: Array,
    capacity: Array,
    tasks: Array,
    levels: Array,
    totals: Array,
    limits: Array,
    floor: Array | None = None,
) -> Array:
    """Relative rise in tasks that each user could get on one server, (users,): `min_r rise_n(r)`, over r that n needs.

        rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} (x_m - floor_m) d[m,r]) / (d[n,r] X_n)

    and at most `limit_n/X_n - 1`. Levels within a factor of 1 + t count as equal at the price of t. Infinite for
    whoever has no tasks.

    Parameters
    ----------
    demand : (users, resources), per task
    capacity : (resources,)
    tasks : (users,), `x_n`, on this server
    levels : (users,), what max-min compares, as `Criterion.levels`
    totals : (users,), `X_n`, on all servers
    limits : (users,), the most tasks of each on all servers, infinite for no limit
    floor : (users,), the least that others must leave; by default none

    All may have an axis of servers before.

    Source: Khamse-Ashari et al., arXiv 1712.10114 (PF), section 3, the condition that defines PS-DSF.
    """
    idle = np.maximum(capacity - np.matmul(tasks[..., None, :], demand)[..., 0, :], 0.0)
    spare = tasks if floor is None else np.maximum(tasks - floor, 0.0)
    order = np.argsort(levels, axis=-1, kind="stable")

    def in_order(values: Array) -> Array:
        return np.take_along_axis(values, order, axis=-1)

    level, total = in_order(levels), in_order(totals)
    requested = np.take_along_axis(demand, order[..., None], axis=-2)
    free = np.cumsum((in_order(spare)[..., None] * requested)[..., ::-1, :], axis=-2)[..., ::-1, :]
    # What is idle, and what those have who come after each user.
    free = np.append(free[..., 1:, :], np.zeros_like(free[..., :1, :]), axis=-2) + idle[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        need = requested * total[..., None]

        def rise(up_to: NDArray[np.intp]) -> tuple[Array, Array]:
            """The distance of others above, and the room that is left if those up to `up_to` keep theirs."""
            there = np.take_along_axis(free, up_to[..., None], axis=-2)
            room = np.fmin.reduce(there / need, axis=-1)  # of what is not needed 0/0 or infinite
            last = np.take_along_axis(level, up_to, axis=-1)
            return np.where(last > level, last / level - 1, 0.0), room

        # The first grows along the order and the second falls: the best is next to where they meet.
        low = np.broadcast_to(np.arange(level.shape[-1]), level.shape)
        high, own = np.full(level.shape, level.shape[-1] - 1), low
        while (low < high).any():
            middle = (low + high) // 2
            above, room = rise(middle)
            enough = above >= room
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
            low = np.minimum(low, high)
        best = np.minimum(np.maximum(*rise(low)), np.maximum(*rise(np.maximum(low - 1, own))))
        most = np.maximum(in_order(limits) / total - 1, 0.0)
    result = np.empty(level.shape)
    np.put_along_axis(result, order, np.where(total > 0, np.minimum(best, most), np.inf), axis=-1)
    return result


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
    # So many users on servers are looked at together.
    for some, pairs, there in in_tables(by_server, ends, 20_000):
        users = polytope.users[polytope.pair_user[pairs]]
        here = np.where(there, tasks[users, some[:, None]], 0.0)
        mine = np.where(there, totals[users], 1.0) if game else here
        with np.errstate(invalid="ignore"):
            levels = np.where(there, mine * criterion.share[users, some[:, None]] / criterion.weight[users], np.inf)
        limits = limits_of[users] if game else np.full(users.shape, np.inf)
        demand = cluster.demand[users] * there[:, :, None]
        rise = rises(demand, cluster.capacity[some], here, levels, mine, limits)
        rise = np.where(there, rise, -np.inf)
        gaps[some] = rise.max(axis=1)
        for i, worst in zip(some, users[np.arange(len(some)), rise.argmax(axis=1)], strict=True):
            where[i] = f"user {cluster.users[worst]!r}"
    return gaps, where
