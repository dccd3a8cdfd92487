"""Certificate of lexicographic max-min: no user can gain tasks unless another user at or below its level loses tasks.

An allocation x in a convex set is the lexicographic optimum if and only if this condition holds for every user, where
tasks may move between servers and users at higher levels keep their floors. Prices prove the condition by arithmetic
(`proved`). An allocation comes with prices as hints: one price vector for each level, or one for all levels. For users
whose tasks the hints do not bound, one linear program is solved for each distinct level. The program maximises the sum
of relative increases of tasks of the users at that level, while all users at or below that level keep their tasks; its
dual solution is a price vector of the proof. If there are too many pairs for linear programs, only the hints are used.
Levels within a factor 1 + t count as equal, at an error of t. With one server no linear program is needed
(`bottleneck`).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..base import clock
from ..base.errors import DataError
from ..model import polytope as polytopes
from ..model._arrays import Array, Index, Mask, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split
from ..model.polytope import Polytope
from . import _linear, rational
from .bottleneck import DIGITS, beyond_numbers
from .rational import Exact, may_run, numbers, on_one

#: Relative difference below which two levels count as equal, and below which a user's tasks count as at their limit.
SAME_LEVEL = 1e-7
#: Relative width of a group of levels that shares a linear program; users at levels above the group by less than this
#: width keep their tasks in the program.
_WIDE = 0.4e-6
#: Bound on the relative increase of a user's tasks, proved by a hint, up to which the user needs no linear program.
SUFFICIENT = 1e-6
#: Prices and costs below this fraction of the largest price count as zero, since products would underflow.
_NEGLIGIBLE = 1e-200
#: Largest bound on the relative increase of a user's tasks at which prices count as a proof of the user's level.
_PROVES = 1e-4


def lexicographic_rise(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[float, Array | None, str]:
    r"""Largest relative increase of the tasks of a user at no loss to users at or below its level.

    .. math:: \max_n \max \Big\{\frac{x'_n}{x_n} - 1 : x' \in \mathcal{X},\ x'_m \ge x_m \text{ for all m with }
        \frac{\sigma_m}{\phi_m} \le \frac{\sigma_n}{\phi_n} \Big\}

    The result is 0 if and only if `tasks` are the lexicographic max-min allocation, and infinite if a user who can run
    tasks has none, or its level is beyond the range of floating point.

    Parameters
    ----------
    polytope : Polytope
        Feasible set X, `Polytope(cluster, criterion.limits(cluster))`.
    tasks : (users, servers)
    criterion : Criterion
        Criterion of infinite alpha, in the scope `pool` or `servers`.
    prices : (servers, resources) or (levels, servers, resources), optional
        Hint: prices per unit of resource. Linear programs are solved for users whose relative increase these prices do
        not bound by 1e-6, unless there are more than 300,000 (user, server) pairs. Default: linear programs for all
        users.

    Returns
    -------
    rise : float
        Upper bound on the relative increase, in which levels within a factor 1 + rise count as equal.
    prices : array or None
        The argument `prices`, if these prices prove the bound without a linear program.
    where : str
        The user with the largest increase, in words.

    Source: defined here; the bound is proved in the docstring of `fairopt.certificates.leximin.proved`.

    >>> import fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> place, found = Polytope(cluster, cluster.max_tasks), fo.DRFH().solve(cluster)
    >>> round(fo.certificates.lexicographic_rise(place, 0.9 * found.tasks, found.criterion)[0], 3)
    0.333
    """
    users = polytope.cluster.users
    if not len(polytope.users):
        return 0.0, None, "no user can run anything"
    own = criterion.restrict(polytope.users)
    x = polytope.user_tasks(polytope.fractions(tasks))
    if (none := starved(polytope, x)).any():
        n = polytope.users[int(none.argmax())]
        return np.inf, None, f"user {users[n]!r} has no tasks, although it could run some"
    level = own.levels(x)
    if (beyond := beyond_numbers(level)).any():
        n = polytope.users[int(beyond.argmax())]
        return np.inf, None, f"user {users[n]!r}, whose level is beyond the range of numbers"
    to_limit = polytope.limit / x - 1
    rise = np.full(len(x), np.inf) if prices is None else proved(polytope, tasks, level, prices, own.floor).rise
    rise = np.minimum(rise, np.maximum(to_limit, 0.0))
    alone = prices is not None
    left = _linear.SECONDS if prices is None else 20.0
    # Without a hint only users at their limits are exempt, for whom a linear program gives no better bound.
    sufficient = 1e-10 if prices is None else SUFFICIENT
    if prices is None or len(polytope.gamma) <= polytopes.LARGE:
        for hungry, top in _asked(level, rise > sufficient):
            alone, begun = False, clock.cpu()
            keep = kept(level <= top, x, own.floor)
            found = rise_and_prices(polytope, x, keep, hungry, left)[0] if left > 0 else np.inf
            rise[hungry] = np.minimum(rise[hungry], np.maximum(found, top / level[hungry] - 1))
            left -= clock.cpu() - begun
    n = int(np.argmax(rise))
    where = f"largest for user {users[polytope.users[n]]!r}" if rise[n] > 0 else "no user can rise"
    return float(rise[n]), prices if alone else None, where


def starved(polytope: Polytope, x: Array) -> Mask:
    """Mask of users whose tasks x, (users,), are zero, or so few that their ratio to monopoly tasks underflows."""
    return np.asarray(x <= np.finfo(float).tiny * np.maximum(polytope.reach, 1.0))


class Proof(NamedTuple):
    """Bounds proved by prices, all (users,).

    Attributes
    ----------
    rise : bound on the relative increase of the user's tasks; infinite where nothing is proved
    which : index of the price vector that proves the bound, -1 if no vector does
    condition : value of all capacities at that price vector over the least cost of all tasks of users at the same level
    """

    rise: Array
    which: Index
    condition: Array


def kept(below: Mask, x: Array, floor: Array) -> Array:
    """Lower bounds on tasks, (users,): the tasks x of users `below`, and at most the floors of other users."""
    return np.where(below, x, np.minimum(floor, x))


def proved(polytope: Polytope, tasks: Array, level: Array, prices: Array, floor: Array | float = 0.0) -> Proof:
    r"""Bound the relative increase of tasks of each user by prices, with the best price vector and condition numbers.

    Let :math:`\lambda \ge 0` be prices of capacities, :math:`E_n` the cost of the tasks of user n on the servers where
    they run, and :math:`P_n` the cost if all of them ran on the cheapest server. Let x' be an allocation in which the
    set B of users at or below a level keep their tasks x, and all other users keep their floors
    :math:`\underline{x}`. Then

    .. math:: \sum_{n \in B} P_n \Big(\frac{x'_n}{x_n} - 1\Big) \le \sum_{ir} \lambda_{ir} \text{slack}_{ir}
        + \sum_n (E_n - P_n) + \sum_{n \notin B} P_n \Big(1 - \frac{\underline{x}_n}{x_n}\Big),

    where :math:`\text{slack}_{ir}` is the idle capacity. The right-hand side is called the gap. Tasks of n increase by
    at most the fraction gap / :math:`P_n`. All terms of the gap are nonnegative, and no term suffers from cancellation.
    The result for each user is the least bound over all price vectors and over all levels not below the user's level
    (`least_rises`). `prices` are (sets, servers, resources), per unit of resource.
    """
    fractions = polytope.fractions(tasks)
    x = polytope.user_tasks(fractions)
    start = polytope.start[:-1]
    capacity, idle = polytope.cluster.capacity, np.maximum(1 - polytope.used(tasks), 0.0)
    groups, order = by_level(level), np.argsort(level, kind="stable")
    rank = np.empty(len(x), dtype=np.intp)
    for g, group in enumerate(groups):
        rank[group] = g
    best, bound, condition = (np.full(len(x), np.inf) for _ in range(3))
    which = np.full(len(x), -1)
    part, spare = fractions * polytope.gamma / x[polytope.pair_user], 1 - np.minimum(floor / x, 1.0)
    for s, unit in enumerate(np.nan_to_num(prices.reshape(-1, *capacity.shape), posinf=0.0)):
        rows = polytope.row_prices(np.maximum(unit, 0.0))
        if not 0 < (top := rows.max(initial=0.0)) < np.inf:
            continue
        rows = np.where(rows > _NEGLIGIBLE * top, rows / top, 0.0)
        cost = polytope.price_per_task(rows)
        expense, left = np.add.reduceat(part * cost, start) * x, np.zeros(len(x))
        if len(polytope.timed):
            more, left = own_time(polytope, fractions, cost)
            cost = cost + more
        cost = cost * x[polytope.pair_user]
        least = np.minimum.reduceat(cost, start)
        above = np.add.reduceat(part * (cost - least[polytope.pair_user]), start) + left
        # Users above a level may lose all tasks in excess of their floors. If own time has prices, they may lose all
        # their tasks, at their expenditure on resources alone.
        taken = expense - above if len(polytope.timed) else least * spare
        gap = float(rows @ idle) + unprotected(above[order], taken[order])
        bound[order] = least_rises(level[order], gap, np.where(least > _NEGLIGIBLE, least, 0.0)[order])
        better = bound < best
        best[better], which[better] = bound[better], s
        spent = np.bincount(rank, least, len(groups))[rank]
        condition[better] = rows.sum() / spent[better]
    return Proof(best, which, condition)


def own_time(polytope: Polytope, fractions: Array, cost: Array) -> tuple[Array, Array]:
    r"""Costs of own time per unit of work, (pairs,), and of unused own time, (users,), if work costs `cost` (pairs,).

    With rates, tasks measure the own time of a user, which its limit :math:`q_n` bounds. The price of own time is such
    that the mean rate :math:`w_n / q_n` of the work :math:`w_n` is optimal. Represent a server by the point (a, C) of
    its rate a and the cost C of its work per unit of time, and unused time by the point (0, 0). The lower convex hull
    of all points has a tangent at the mean rate. Its slope is the price of work, and its intercept is minus the price
    of time. Every price of time proves a bound, of which this price proves the least.
    """
    assert polytope.rate is not None
    users, user = polytope.timed, polytope.pair_user
    place = np.arange(len(user)) - polytope.start[user]
    rate, costs = np.full((2, len(polytope.users), int(place.max()) + 2), np.inf)
    rate[user, place], costs[user, place] = polytope.rate, cost * polytope.rate
    rate[:, -1], costs[:, -1] = 0.0, 0.0
    quota, done = polytope.quota[users], polytope.user_tasks(fractions)[users]
    rate, costs, price = rate[users], costs[users], np.zeros(len(polytope.users))
    mean = (done / quota * (1 + SAME_LEVEL**2))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (costs[:, None] - costs[:, :, None]) / (rate[:, None] - rate[:, :, None])
        slower, faster = rate <= mean, (rate > mean) & np.isfinite(rate)
        height = np.where(
            slower[:, :, None] & faster[:, None], costs[:, :, None] + slope * (mean - rate)[:, :, None], np.inf
        )
        best = height.reshape(len(users), -1).argmin(axis=1)
        tangent = slope.reshape(len(users), -1)[np.arange(len(users)), best]
        # If the mean rate is the rate of the fastest server, the tangent is the edge of the hull to a slower server.
        top = np.where(np.isfinite(rate), rate, -1.0).argmax(axis=1)
        edge = np.where(rate < rate.max(axis=1, initial=0.0, where=np.isfinite(rate))[:, None],
                        slope[np.arange(len(users)), top], -np.inf).max(axis=1)  # fmt: skip
        tangent = np.where(faster.any(axis=1), tangent, edge)
        price[users] = np.nanmax(np.where(np.isfinite(rate), tangent[:, None] * rate - costs, -np.inf), axis=1)
    tasks = polytope.part_of_limit(polytope.gamma * fractions)[users] * quota
    left = np.zeros(len(price))
    left[users] = price[users] * np.maximum(quota - tasks, 0.0)
    return price[user] / polytope.rate, left


def unprotected(above: Array, spare: Array) -> Array:
    """Excess cost of users up to each level, plus the expenditure that users above it may lose, (..., users)."""
    own, others = np.maximum(above, 0.0), np.maximum(spare + above, 0.0)
    after = np.cumsum(others[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.cumsum(own, axis=-1) + np.append(after[..., 1:], np.zeros_like(after[..., :1]), axis=-1))


@np.errstate(divide="ignore", invalid="ignore")
def least_rises(level: Array, gap: Array, least: Array) -> Array:
    """Bounds on relative increases, `min_{m >= n} max(level_m / level_n - 1, gap_m / least_n)`, (..., users).

    Users are in the order of their levels, `gap_m` is the gap if users up to m keep their tasks, and `least_n` is the
    least cost of the tasks of n. Levels increase in m and gaps decrease, so that bisection finds the minimum.
    """
    first, last = np.arange(level.shape[-1]), level.shape[-1] - 1
    low, high = np.broadcast_to(first, level.shape), np.full(level.shape, last)
    best = np.full(level.shape, np.inf)
    for _ in range(len(first).bit_length()):
        m = (low + high) // 2
        above, left = (np.take_along_axis(each, m, axis=-1) for each in (level, gap))
        above, left = above / level - 1, np.where(least > 0, left / least, np.inf)
        best = np.fmin(best, np.maximum(above, left))
        low = np.where(above < left, np.minimum(m + 1, last), low)
        high = np.where(above < left, high, np.maximum(m - 1, first))
    return best


def by_level(level: Array) -> list[Index]:
    """Groups of users by increasing level; successive levels that differ by less than `SAME_LEVEL` share a group."""
    order = np.argsort(level, kind="stable")
    steps = np.flatnonzero(level[order][1:] > level[order][:-1] * (1 + SAME_LEVEL)) + 1
    return list(np.split(order, steps))


def _asked(level: Array, wanted: Mask) -> Iterator[tuple[Index, float]]:
    """Yield groups of `wanted` users that share a linear program, and the highest level of users that keep their tasks.

    Successive levels that differ by less than `SAME_LEVEL` form a chain, and chains wider than `_WIDE` are divided.
    """
    for group in by_level(level):
        left = group[wanted[group]]
        while len(left):
            near = level[left] <= level[left[0]] * (1 + _WIDE)
            some, left = left[near], left[~near]
            reach = level[some[-1]] * (1 + _WIDE)
            yield some, float(level[group][level[group] <= reach].max())


def rise_and_prices(
    polytope: Polytope, x: Array, least: Array, hungry: Index, seconds: float = _linear.SECONDS
) -> tuple[float, Array | None]:
    """Bound the relative increase of tasks of the users `hungry` if all users keep `least` of x, both (users,).

    The prices of whole capacities, (rows,), that prove the bound are returned as well. The bound is infinite and the
    prices are None if the linear program (`_linear.rises`) fails or takes more than `seconds`. The bound holds for the
    exact problem, without the slack that the program allows.
    """
    found = _linear.rises(polytope, x, least, hungry, seconds)
    if found is None:
        return np.inf, None
    value = polytope.tasks.T @ (found.tasks / x)
    # As z <= 1, a pair whose value exceeds its cost adds at most the difference to the bound.
    cost = polytope.use.T @ found.prices + polytope.use_of_limit.T @ found.limits
    gap = found.prices.sum() + found.limits.sum() + np.maximum(value - cost, 0.0).sum() - found.tasks @ (least / x)
    smallest = found.tasks[hungry].min()
    return float(max(gap, 0.0) / smallest) if smallest > 0 else np.inf, found.prices


def maxmin_condition(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None = None
) -> Array:
    r"""Condition numbers of users, (users,), at a feasible max-min allocation `tasks`, (users, servers).

    A certificate bounds increases relative to a user's own tasks. A user with 1e-8 of the demand of other users may
    have twice its optimal tasks at a relative loss of 1e-8 to the other users, so that the certificate has only this
    small residual.

    Let :math:`\lambda_{ir}` be prices of one level, G the users at that level, and :math:`P_m` the least cost of the
    tasks of user m. By the dual of the level's linear program, a relative change e of all data, including the tasks of
    other users, changes the level to first order by at most the relative amount :math:`\kappa e`, with the condition
    number

    .. math:: \kappa = \frac{\sum_{ir} \lambda_{ir} c_{ir}}{\sum_{m \in G} P_m} \ge 1

    If a user is bound by what other users leave, the denominator is small and the condition number large. With the
    residual e of the certificate, errors of tasks are about :math:`\kappa e` (at most 10 times as large on 451 small
    clusters with known optima). The estimate is of first order, and neglects that lower levels may have errors larger
    than e. Levels that differ by less than `SAME_LEVEL` count as equal. A user whose tasks differ from its limit by
    less than `SAME_LEVEL` is bound by the limit, unless prices prove a smaller bound by capacity.

    A user n above a level who uses a bottleneck of that level would lose the fraction e
    :math:`\sum_{ir} \lambda_{ir} c_{ir} / P_n` of its tasks, at the prices of that level, if the tasks of all users at
    or below that level increased by the fraction e. Prices below 1e-4 of the largest price may be rounding errors, and
    are neglected in this bound.

    The result is 1 for users who are bound by a task limit or floor or cannot run tasks, and infinite where no prices
    prove a level. `prices`, (levels, servers, resources), are a hint; without a hint a linear program per level is
    solved, unless there are too many pairs. On one server no prices are needed.

    Raises
    ------
    DataError
        The criterion is not lexicographic max-min over a pool or servers.
    """
    check_levels(criterion)
    split = Split.from_answer(cluster, tasks)
    limits, table, merged = criterion.limits(cluster), split.merged, split.merging.cluster
    polytope, result = Polytope(merged, limits), np.ones(len(limits))
    users = polytope.users
    if not len(users):
        return result
    x = merged.work(table)[users]
    if starved(polytope, x).any():
        result[users] = np.inf
        return result
    own = criterion.restrict(users)
    level, to_limit, above = own.levels(x), polytope.limit / x - 1, own.surplus(x) > SAME_LEVEL
    free = (to_limit > SAME_LEVEL) & above
    hint = hints(merged, None if prices is None else prices[..., split.merging.first_server, :])
    asked = free & (merged.shape[1] > 1)
    sets, proof = held(polytope, table, level, own.floor, asked, hint, _PROVES)
    # A user slightly below its limit may be bound by capacity instead.
    found = np.where(proof.rise <= _PROVES, proof.condition, np.inf)
    found = np.where(free | (above & (proof.rise < to_limit)), found, 1.0)
    for s in np.unique(proof.which[proof.rise <= _PROVES]):
        lowest = level[(proof.which == s) & (proof.rise <= _PROVES)].min()
        rows = polytope.row_prices(np.maximum(sets[s], 0.0))
        rows[rows < _PROVES * rows.max()] = 0.0  # such prices may be rounding errors
        paid = np.minimum.reduceat(polytope.price_per_task(rows), polytope.start[:-1]) * x
        takes = above & (paid > 0) & (level > lowest * (1 + DIGITS))
        found = np.where(takes, np.maximum(found, rows.sum() / np.where(takes, paid, 1.0)), found)
    result[users] = found
    return result


def check_levels(criterion: Criterion) -> None:
    """Raise `DataError` unless the criterion is lexicographic max-min over a pool or servers."""
    if not (np.isinf(criterion.alpha) and criterion.scope in ("pool", "servers")):
        raise DataError(
            f"alpha is {criterion.alpha:g} and the scope {criterion.scope!r} here: only lexicographic max-min over a "
            "pool or over servers holds each user at one level; ask an allocation of DRF, DRFH, TSF, AssetFairness, "
            "TaskMaxMin, CMMF, MQDRF, MaxMin or AlphaFair(inf)"
        )


def hints(cluster: Cluster, prices: Array | None) -> Array | None:
    """Price vectors as hints, (sets, servers, resources): `prices`, or on one server a price on each single resource.

    On one server every level is bound by a single resource. On several servers without prices the result is None.
    """
    if cluster.shape[1] == 1:
        return np.diag(ratio(1.0, cluster.capacity[0]))[:, None, :]
    return None if prices is None else prices.reshape(-1, *cluster.capacity.shape)


def held(
    polytope: Polytope,
    tasks: Array,
    level: Array,
    floor: Array,
    free: Mask,
    hint: Array | None,
    tol: float,
) -> tuple[list[Array], Proof]:
    """Price vectors (servers, resources) from the hint and from linear programs, and the bounds that they prove.

    Linear programs are solved for the levels of users who are not at their limits (mask `free`) and whose relative
    increase is not yet bounded by `tol`, unless there are too many pairs.
    """
    sets = [] if hint is None else list(hint)
    wanted = free & (proved(polytope, tasks, level, np.array(sets), floor).rise > tol)
    x = polytope.user_tasks(polytope.fractions(tasks))
    for hungry, top in _asked(level, wanted) if len(polytope.gamma) <= polytopes.LARGE else ():
        hungry = hungry[wanted[hungry]]
        if len(hungry):
            rows = rise_and_prices(polytope, x, kept(level <= top, x, floor), hungry)[1]
            if rows is not None:
                sets.append(polytope.unit_prices(rows))
                wanted &= proved(polytope, tasks, level, sets[-1], floor).rise > tol
    return sets, proved(polytope, tasks, level, np.array(sets), floor)


def distances(
    cluster: Cluster, tasks: Array, criterion: Criterion, limits: Array, requested: Mask, work: float = 1.0
) -> tuple[Array, Index]:
    """Largest relative difference of a user's tasks from the exact optimum, and that user; infinite if unknown.

    The bound of `proved` assumes that other users keep exactly their tasks. For a user with a fraction 1e-13 of the
    bottleneck, rounding errors of other users' tasks dominate the bound, although the optimum is well conditioned. For
    small clusters `rational` computes the exact optimum. Its prices are verified in exact arithmetic, and `tasks` are
    compared with the exact tasks.

    `tasks` are (users, servers). In the scope `per_server` the result has one entry per server, 0 for servers that are
    not `requested`. After the first difference above `SUFFICIENT` further entries are not computed, and are 0. `work`
    is a fraction of `rational.WORK`.
    """
    apart, who = np.zeros(len(requested)), np.zeros(len(requested), dtype=np.intp)
    for i in np.flatnonzero(requested).tolist():
        apart[i], who[i] = (
            _distance(*on_one(cluster, criterion, i), limits, tasks[:, i], work)
            if criterion.scope == "per_server"
            else _distance(cluster, criterion, limits, tasks.sum(axis=1), work)
        )
        if apart[i] > SUFFICIENT:
            break
    return apart, who


def _distance(cluster: Cluster, criterion: Criterion, limits: Array, tasks: Array, work: float) -> tuple[float, int]:
    found = rational.leximin(cluster, criterion, limits, work)
    if found is None or proofs(found, cluster, criterion, limits) is None:
        return np.inf, 0
    best = found.tasks.sum(axis=1)
    unit = best.copy()
    unit[best == 0] = Fraction(1)
    apart = abs(numbers(tasks) - best) / unit
    n = int(apart.argmax())
    try:
        return float(apart[n]), n
    except OverflowError:  # beyond the range of doubles
        return np.inf, n


def proofs(found: Exact, cluster: Cluster, criterion: Criterion, limits: Array) -> Index | None:
    r"""Index of the round whose prices bound each user, (users,), -1 at a limit or without a server; None if unproved.

    With prices :math:`\lambda_{ir}` of capacities and :math:`\mu_n` of task limits, and the least cost :math:`p_n` of a
    task of n, every feasible x' satisfies
    :math:`\sum_n p_n x'_n \le \sum_{ir} \lambda_{ir} c_{ir} + \sum_n \mu_n q_n`. If the optimum attains equality, no
    user with :math:`p_n > 0` can gain tasks while all other users with :math:`p_n > 0` keep their tasks. This is a
    proof for the users at the highest level among the users with :math:`p_n > 0`.
    """
    usable = may_run(cluster, limits)
    users = np.flatnonzero(usable.any(axis=1))
    usable, limited = usable[users], np.isfinite(limits[users])
    capacity, demand = numbers(cluster.capacity), numbers(cluster.demand[users])
    limit = numbers(np.where(limited, limits[users], 0.0))
    tasks, total = found.tasks[users], found.tasks[users].sum(axis=1)
    feasible = (tasks >= 0).all() and (tasks.T @ demand <= capacity).all() and (total <= limit)[limited].all()
    if not feasible or found.tasks.sum() != tasks[usable].sum():
        return None
    level = total * numbers(criterion.share[users]) / numbers(criterion.weight[users])
    by, free = np.full(len(limits), -1), ~(limited & (total == limit))
    for k, (prices, of_limit) in enumerate(zip(found.prices, found.limits[:, users], strict=True)):
        cost = demand @ prices.T + of_limit[:, None]
        cost[~usable] = np.inf
        cost = cost.min(axis=1)
        marginal = (prices * capacity).sum() + (of_limit * limit).sum()
        priced = (prices >= 0).all() and (of_limit >= 0).all() and not of_limit[~limited].any()
        if priced and marginal == (cost * total).sum():
            by[users[free & (by[users] < 0) & (cost > 0) & (level >= level[cost > 0].max(initial=0))]] = k
    return by if (by[users] >= 0)[free].all() else None
