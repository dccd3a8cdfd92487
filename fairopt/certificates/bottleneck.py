"""Max-min on one server: everyone meets a saturated resource shared only with users at or below its level.

User n blocked on resource r could still rise by what is idle plus what users above its level hold there:
`rise_n(r) = (c_r - use_r + sum_{m: level_m > level_n} (x_m - floor_m) d[m,r]) / (d[n,r] X_n)`, relative to all tasks
`X_n` that n has (on other servers too, for the per-server game: PF section 3 states this as the condition for PS-DSF).
The certificate is the largest over n of the smallest over r. Levels equal to within t count as equal at the price of t.
"""

from __future__ import annotations

import numpy as np

from ..base.loops import compiled
from ..model._arrays import Array, Index, Mask, by_group, in_tables
from ..model.criterion import Criterion
from ..model.polytope import Polytope


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
        best = np.empty(level.shape)
        users, resources = free.shape[-2:]
        _meeting(
            level.reshape(-1, users),
            *(each.reshape(-1, users, resources) for each in (free, need)),
            best.reshape(-1, users),
        )
        most = np.maximum(in_order(limits) / total - 1, 0.0)
    result = np.empty(level.shape)
    np.put_along_axis(result, order, np.where(total > 0, np.minimum(best, most), np.inf), axis=-1)
    return result


@compiled
def _meeting(level, free, need, best):  # type: ignore[no-untyped-def]
    """Fill `best`, (servers, users), users by levels: the least over m of what n loses to those up to m, and may take.

    The distance of levels grows with m, and the room that is left falls: the best is next to where they meet.
    """
    servers, users, size = free.shape
    for i in range(servers):
        for n in range(users):
            low, high, best[i, n] = n, users - 1, np.inf
            while low <= high:
                m = (low + high) // 2
                above, room = max(level[i, m] / level[i, n] - 1, 0.0) if level[i, m] > level[i, n] else 0.0, np.inf
                for r in range(size):
                    room = min(room, free[i, m, r] / need[i, n, r]) if need[i, n, r] > 0 else room
                best[i, n] = min(best[i, n], max(above, room))
                low, high = (low, m - 1) if above >= room else (m + 1, high)


def beyond_numbers(levels: Array) -> Mask:
    """Levels that may have lost digits, or are not finite: shares and weights may be any numbers."""
    return np.asarray(~((levels > 1e-290) & (levels < 1e290)))


#: What is no more than that, of levels or of a user's tasks, leaves three digits certain.
DIGITS = 1e-3


def taking(polytope: Polytope, tasks: Array, criterion: Criterion) -> Array | None:
    """Conditions of PS-DSF, (all users,): infinite of who takes what alone holds users below it, else NaN, unknown.

    `None` if nobody does. A rise is relative to the tasks of who could rise: it does not see that somebody who needs
    1e-7 of what holds these has many tasks too many.
    """
    cluster, totals = polytope.cluster, tasks.sum(axis=1)
    levels, hungry = criterion.levels(totals), totals < criterion.limits(cluster) * (1 - DIGITS)
    result = np.full(len(totals), np.nan)
    for i in range(cluster.shape[1]):
        some = polytope.users[polytope.pair_user[polytope.pair_server == i]]
        demand, here, level = cluster.demand[some], tasks[some, i], levels[some, i, None]
        needs = (demand > 0) & (here @ demand >= cluster.capacity[i] * (1 - DIGITS))
        there = needs & (here > DIGITS * totals[some])[:, None]
        top = np.where(there, level, 0.0).max(axis=0, initial=0.0)
        owed = hungry[some, None] & (~needs | (level * (1 + DIGITS) < top)).all(axis=1, keepdims=True)
        lowest = np.where(needs & owed, level, np.inf).min(axis=0, initial=np.inf)
        result[some[(there & (level > lowest * (1 + DIGITS))).any(axis=1)]] = np.inf
    return None if np.isnan(result).all() else result


def exploitability(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[Array, Index]:
    """Per server: its exploitability (servers,), and the user who attains it (servers,).

    It is the largest of `rises` on that server: the relative rise in tasks that it owes to some user.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : with infinite alpha, in the scope `game` (PS-DSF), `per_server`, where each server is judged by its own
        tasks alone, or of the only server

    Source: Khamse-Ashari et al., arXiv 1712.10114 (PF), section 3, the condition that defines PS-DSF.
    """
    cluster, alone = polytope.cluster, criterion.scope == "per_server"
    users_of, servers = cluster.shape[:2]
    totals, limits_of = tasks.sum(axis=1), criterion.limits(cluster)
    share = np.broadcast_to(criterion.share.reshape(users_of, -1), (users_of, servers))
    gaps, worst = np.zeros(servers), np.zeros(servers, dtype=np.intp)
    by_server, ends = by_group(polytope.pair_server, servers)
    # So many users on servers are looked at together.
    for some, pairs, there in in_tables(by_server, ends, 20_000):
        users = polytope.users[polytope.pair_user[pairs]]
        here = np.where(there, tasks[users, some[:, None]], 0.0)
        mine = here if alone else np.where(there, totals[users], 1.0)
        with np.errstate(invalid="ignore"):
            levels = np.where(there, mine * share[users, some[:, None]] / criterion.weight[users], np.inf)
        limits = np.full(users.shape, np.inf) if alone else limits_of[users]
        demand = cluster.demand[users] * there[:, :, None]
        rise = rises(demand, cluster.capacity[some], here, levels, mine, limits, criterion.floor[users])
        rise = np.where(there, np.where(beyond_numbers(levels), np.inf, rise), -np.inf)
        gaps[some] = rise.max(axis=1)
        worst[some] = users[np.arange(len(some)), rise.argmax(axis=1)]
    return gaps, worst
