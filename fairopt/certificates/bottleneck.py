"""Max-min on one server: every user has an exhausted resource that only users at or below its level use.

On resource r, the tasks of user n can increase by the slack and by the use of users at higher levels. The rise of n is
the smallest such increase over its resources, relative to all tasks of n (`rises`), and the certificate is the largest
rise. In the per-server game the tasks of n include tasks on other servers, and the condition defines PS-DSF
(arXiv:1712.10114, section 3). Levels within a factor 1 + t count as equal, at an error of t.
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
    r"""Relative increases of tasks of each user on one server, (users,), at no loss to users at or below its level.

    .. math:: \min_{r : d_{nr} > 0} \frac{c_r - \sum_m x_m d_{mr}
        + \sum_{m : l_m > l_n} (x_m - \underline{x}_m) d_{mr}}{d_{nr} X_n}

    and at most :math:`q_n / X_n - 1`. Levels within a factor of 1 + t count as equal, at an error of t. The result is
    infinite for users without tasks.

    Parameters
    ----------
    demand : (users, resources)
        Demand :math:`d_{nr}` of a task.
    capacity : (resources,)
        Capacity :math:`c_r` of the server.
    tasks : (users,)
        Tasks :math:`x_n` on this server.
    levels : (users,)
        Levels :math:`l_n` (`Criterion.levels`).
    totals : (users,)
        Tasks :math:`X_n` on all servers.
    limits : (users,)
        Limits :math:`q_n` of tasks on all servers.
    floor : (users,), optional
        Tasks :math:`\underline{x}_n` on this server that a user cannot lose. Default: 0.

    All arrays may have servers as an additional first axis.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 3, the condition of PS-DSF (arXiv:1712.10114).

    >>> import numpy as np, fairopt as fo
    >>> demand, tasks, limits = np.array([[1.0, 4], [3, 1]]), np.array([3.0, 1]), np.array([np.inf, np.inf])
    >>> fo.certificates.rises(demand, np.array([9.0, 18]), tasks, tasks / 3, tasks, limits).round(3).tolist()
    [0.417, 2.0]
    """
    idle = np.maximum(capacity - np.matmul(tasks[..., None, :], demand)[..., 0, :], 0.0)
    spare = tasks if floor is None else np.maximum(tasks - floor, 0.0)
    order = np.argsort(levels, axis=-1, kind="stable")

    def in_order(values: Array) -> Array:
        return np.take_along_axis(values, order, axis=-1)

    level, total = in_order(levels), in_order(totals)
    requested = np.take_along_axis(demand, order[..., None], axis=-2)
    free = np.cumsum((in_order(spare)[..., None] * requested)[..., ::-1, :], axis=-2)[..., ::-1, :]
    # Slack plus the use of users at higher levels.
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
    """Fill `best`, (servers, users), with `min_{m >= n} max(level_m / level_n - 1, min_r free_mr / need_nr)`.

    Users are in the order of their levels. The first term increases in m and the second decreases, so that bisection
    finds the minimum.
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
    """Mask of levels that are not finite or near the ends of the range of floating point."""
    return np.asarray(~((levels > 1e-290) & (levels < 1e290)))


#: Relative difference up to which levels or tasks count as equal to three digits.
DIGITS = 1e-3


def taking(polytope: Polytope, tasks: Array, criterion: Criterion) -> Array | None:
    """Condition numbers of PS-DSF, (all users,): infinite for users of the only bottleneck of a user at a lower level.

    Other users have NaN; the result is None if no user has an infinite condition number. The exploitability is relative
    to the tasks of the user that could gain tasks. It does not bound the excess of a user whose demand for the
    bottleneck is negligible.
    """
    cluster, totals = polytope.cluster, polytope.cluster.work(tasks)
    levels, hungry = criterion.levels(totals), tasks.sum(axis=1) < criterion.limits(cluster) * (1 - DIGITS)
    result = np.full(len(totals), np.nan)
    for i in range(cluster.shape[1]):
        some = polytope.users[polytope.pair_user[polytope.pair_server == i]]
        demand, here, level = cluster.demand[some], tasks[some, i], levels[some, i, None]
        needs = (demand > 0) & (here @ demand >= cluster.capacity[i] * (1 - DIGITS))
        done = here * cluster.rate[some, i] if cluster.rated else here
        there = needs & (done > DIGITS * totals[some])[:, None]
        top = np.where(there, level, 0.0).max(axis=0, initial=0.0)
        could_rise = hungry[some, None] & (~needs | (level * (1 + DIGITS) < top)).all(axis=1, keepdims=True)
        lowest = np.where(needs & could_rise, level, np.inf).min(axis=0, initial=np.inf)
        result[some[(there & (level > lowest * (1 + DIGITS))).any(axis=1)]] = np.inf
    return None if np.isnan(result).all() else result


def exploitability(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[Array, Index]:
    r"""Exploitability of every server, (servers,), and the user that attains it, (servers,).

    .. math:: e_i = \max_n \min_{r : d_{nr} > 0} \frac{c_{ir} - \sum_m x_{mi} d_{mr}
        + \sum_{m : \sigma_{mi}/\phi_m > \sigma_{ni}/\phi_n} x_{mi} d_{mr}}{d_{nr} x_n}

    is the largest relative increase of a user's tasks that a unilateral deviation of server i towards max-min allows
    (`rises`).

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    tasks : (users, servers)
    criterion : Criterion
        Criterion of infinite alpha, in the scope `game` (PS-DSF) or `per_server` (each server by its own tasks alone),
        or of a single server.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 3, the condition of PS-DSF (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster = fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]])
    >>> found = fo.PSDSF().solve(cluster)
    >>> place = Polytope(cluster, cluster.max_tasks)
    >>> fo.certificates.exploitability(place, 0.9 * found.tasks, found.criterion)[0].round(3).tolist()
    [0.444, 0.167]
    """
    cluster, alone = polytope.cluster, criterion.scope == "per_server"
    users_of, servers = cluster.shape[:2]
    totals, limits_of = cluster.work(tasks), criterion.limits(cluster)
    room = np.maximum(limits_of - tasks.sum(axis=1), 0.0)
    share = np.broadcast_to(criterion.share.reshape(users_of, -1), (users_of, servers))
    gaps, worst = np.zeros(servers), np.zeros(servers, dtype=np.intp)
    by_server, ends = by_group(polytope.pair_server, servers)
    # Servers are processed in batches with a bounded number of (user, server) pairs, to bound memory.
    for some, pairs, there in in_tables(by_server, ends, 20_000):
        users = polytope.users[polytope.pair_user[pairs]]
        here = np.where(there, tasks[users, some[:, None]], 0.0)
        limits = np.full(users.shape, np.inf) if alone else limits_of[users]
        demand = cluster.demand[users] * there[:, :, None]
        if cluster.rated:  # in units of work: the unused part of the limit, times the rate, bounds the increase
            rate = np.where(there, cluster.rate[users, some[:, None]], 1.0)
            demand, here = demand / rate[:, :, None], here * rate
            limits = limits if alone else totals[users] + rate * room[users]
        mine = here if alone else np.where(there, totals[users], 1.0)
        with np.errstate(invalid="ignore"):
            levels = np.where(there, mine * share[users, some[:, None]] / criterion.weight[users], np.inf)
        rise = rises(demand, cluster.capacity[some], here, levels, mine, limits, criterion.floor[users])
        rise = np.where(there, np.where(beyond_numbers(levels), np.inf, rise), -np.inf)
        gaps[some] = rise.max(axis=1)
        worst[some] = users[np.arange(len(some)), rise.argmax(axis=1)]
    return gaps, worst
