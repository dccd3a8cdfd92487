"""Lexicographic max-min: nobody can rise without taking from somebody at or below its own level, or at its floor.

x is the lexicographic optimum over a convex set iff that holds for every user, re-shuffling over servers
allowed. Prices prove it by arithmetic alone, see `proved`: hints from whoever made x, one set of prices per level or
one for all. For users whom the hints do not hold, one linear program per distinct level: `max sum of relative rises`
of the users at that level, while all at or below it keep theirs; its duals are such prices. Where there are too many
pairs for that, what the hints prove is what is known. Levels equal to within t count as equal at the price of t.
With one server no program is needed: see `bottleneck`.
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

#: Users whose levels are closer than this may have one level, and are as good as at a limit so close.
SAME_LEVEL = 1e-7
#: Users are asked about together whose levels are not further apart; who is as near to them keeps its tasks.
_WIDE = 0.4e-6
#: Users whom a hint holds to this are not asked about again in a linear program.
SUFFICIENT = 1e-6
#: Prices, and tasks, that cost so little beside the largest price are none: products would lose digits.
_NOTHING = 1e-200
#: A hint that proves this much less for a user is no proof of its level.
_PROVES = 1e-4


def lexicographic_rise(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[float, Array | None, str]:
    """Largest relative rise in tasks that some user could get without taking from anybody at or below its own level.

    Tasks are the lexicographic max-min if and only if nobody can rise. Infinite where somebody who could run tasks has
    none.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : of the same cluster, with infinite alpha, in the scope `pool` or `servers`
    prices : (servers, resources), or (levels, servers, resources), per unit of resource: a hint. Users whom it does not
        hold to 1e-6 are asked about in linear programs, unless there are more than 300,000 pairs (user, server). None:
        all users are asked about

    Returns
    -------
    rise : without those who are above its own level by at most that part
    prices : those given, if they prove it alone; or None
    where : who could rise most, in words

    Source: found here; the module's docstring has the condition and how prices prove it.
    """
    users = polytope.cluster.users
    if not len(polytope.users):
        return 0.0, None, "no user can run anything"
    own = criterion.restrict(polytope.users)
    x = polytope.user_tasks(polytope.fractions(tasks))
    if (none := starved(polytope, x)).any():
        return np.inf, None, f"user {users[polytope.users[int(none.argmax())]]!r} runs nothing, although it could"
    level = own.levels(x)
    if (beyond := beyond_numbers(level)).any():
        return np.inf, None, f"user {users[polytope.users[int(beyond.argmax())]]!r}, whose level is beyond numbers"
    to_limit = polytope.limit / x - 1
    rise = np.full(len(x), np.inf) if prices is None else proved(polytope, tasks, level, prices, own.floor).rise
    rise = np.minimum(rise, np.maximum(to_limit, 0.0))
    alone = prices is not None
    left = _linear.SECONDS if prices is None else 20.0
    # Without a hint all users are asked about but those so near to their limit that a program knows no better.
    sufficient = 1e-10 if prices is None else SUFFICIENT
    if prices is None or len(polytope.gamma) <= polytopes.LARGE:
        for hungry, top in _asked(level, rise > sufficient):
            alone, begun = False, clock.now()
            keep = kept(level <= top, x, own.floor)
            found = rise_and_prices(polytope, x, keep, hungry, left)[0] if left > 0 else np.inf
            rise[hungry] = np.minimum(rise[hungry], np.maximum(found, top / level[hungry] - 1))
            left -= clock.now() - begun
    n = int(np.argmax(rise))
    where = f"largest for user {users[polytope.users[n]]!r}" if rise[n] > 0 else "nobody can rise"
    return float(rise[n]), prices if alone else None, where


def starved(polytope: Polytope, x: Array) -> Mask:
    """Who has no tasks of x (users,), or so few that what it could run is no double in units of them."""
    return np.asarray(x <= np.finfo(float).tiny * np.maximum(polytope.reach, 1.0))


class Proof(NamedTuple):
    """Bounds that prices prove, all (users,).

    Attributes
    ----------
    rise : bound on the relative rise in tasks; infinite where nothing is proved
    which : the set of prices that proves it, -1 for none
    condition : what capacities are worth at these prices over what the tasks of n's level cost
    """

    rise: Array
    which: Index
    condition: Array


def kept(below: Mask, x: Array, floor: Array) -> Array:
    """Tasks that nobody may take, (users,): all of those at or below a level, of the others their floors."""
    return np.where(below, x, np.minimum(floor, x))


def proved(polytope: Polytope, tasks: Array, level: Array, prices: Array, floor: Array | float = 0.0) -> Proof:
    """Bound the relative rise of each user by prices: by which set of them, and with which condition.

    With prices of whole capacities `lambda >= 0`, `P_n` what the tasks of n cost where they cost least, and x' any
    allocation that leaves `keep`, everyone at or below a level, their tasks, and the others their floors:

        sum_keep P_n (x'_n/x_n - 1)  <=  sum lambda idle + sum_all (paid_n - P_n) + sum_others P_n (1 - floor_n/x_n),

    called the gap, so that n rises by at most `gap / P_n`. All terms are >= 0 and none is a difference of large
    numbers. Each user gets the best of all sets of prices and of all levels from its own upwards (`least_rises`).
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
        rows = np.where(rows > _NOTHING * top, rows / top, 0.0)
        cost = polytope.price_per_task(rows) * x[polytope.pair_user]
        least = np.minimum.reduceat(cost, start)
        above = np.add.reduceat(part * (cost - least[polytope.pair_user]), start)
        gap = float(rows @ idle) + unprotected(above[order], (least * spare)[order])
        bound[order] = least_rises(level[order], gap, np.where(least > _NOTHING, least, 0.0)[order])
        better = bound < best
        best[better], which[better] = bound[better], s
        spent = np.bincount(rank, least, len(groups))[rank]
        condition[better] = rows.sum() / spent[better]
    return Proof(best, which, condition)


def unprotected(above: Array, spare: Array) -> Array:
    """What those lose who keep their tasks, up to each user by level, and those have who do not, (..., users)."""
    own, others = np.maximum(above, 0.0), np.maximum(spare + above, 0.0)
    after = np.cumsum(others[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.cumsum(own, axis=-1) + np.append(after[..., 1:], np.zeros_like(after[..., :1]), axis=-1))


@np.errstate(divide="ignore", invalid="ignore")
def least_rises(level: Array, gap: Array, least: Array) -> Array:
    """Bounds of rises, `min_{m >= n} max(level_m / level_n - 1, gap_m / least_n)`, (..., users) by level.

    If those up to m keep their tasks `gap_m` is left for others, and n costs `least_n`. Levels grow with m and gaps
    fall: the best is next to where both meet.
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
    """Users by level, lowest first; neighbours closer than SAME_LEVEL chained together."""
    order = np.argsort(level, kind="stable")
    steps = np.flatnonzero(level[order][1:] > level[order][:-1] * (1 + SAME_LEVEL)) + 1
    return list(np.split(order, steps))


def _asked(level: Array, wanted: Mask) -> Iterator[tuple[Index, float]]:
    """Wanted users who are asked about together, lowest levels first, and the highest level that then keeps its tasks.

    Those are chained together whose neighbours are closer than SAME_LEVEL, in pieces where chains are long.
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
    """A proved bound on the relative rise of any of `hungry` while all users keep `least` of their tasks x (users,).

    And the prices of whole capacities (rows,) in its proof, unless the program failed, or took more `seconds`.

    The program is `_linear.rises`; the bound below is on the exact one, without its slack.
    """
    found = _linear.rises(polytope, x, least, hungry, seconds)
    if found is None:
        return np.inf, None
    worth = polytope.tasks.T @ (found.tasks / x)
    # Every z <= 1, so a pair worth more than it costs leaks at most the difference.
    cost = polytope.use.T @ found.prices + polytope.use_of_limit.T @ found.limits
    gap = found.prices.sum() + found.limits.sum() + np.maximum(worth - cost, 0.0).sum() - found.tasks @ (least / x)
    smallest = found.tasks[hungry].min()
    return float(max(gap, 0.0) / smallest) if smallest > 0 else np.inf, found.prices


def maxmin_condition(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, prices: Array | None = None
) -> Array:
    """The condition of every user, (users,), of a feasible max-min allocation `tasks` (users, servers).

    A certificate bounds by what anybody could rise, relative to its own tasks. A user who needs 1e-8 of what the others
    do may have half of its tasks too many at a price of 1e-8 to them: their rise is then all that is seen of it.

    With prices lambda of one level, and `P_m` what the tasks of m cost where they cost least, the level t of the users
    G that have it moves with the data, to first order, by

        dt / t  =  sum_ir lambda_ir (c_ir dlog c_ir - x_ir d_r dlog d_r) / sum_{m in G} P_m,

    (the dual of the linear program of that level), so that a relative change e of everything, the others' tasks
    included, moves it by e times about

        condition  =  sum_ir lambda_ir c_ir / sum_{m in G} P_m  >=  1.

    A user whose level is alone at what others have left over by rounding has few P_m in the sum, and a large condition.
    e is what the certificate shows, the larger of rise and infeasibility; tasks are known to about e times the
    condition (measured on 451 small clusters against exact optima: never more than 10 times that). It is of first
    order, and leaves out that lower levels may be off by more than e themselves. Where a certificate measures the
    distance from an exact optimum there is nothing to add. Levels closer than `SAME_LEVEL` are one; so close to its
    limit a user is held by it, unless prices prove that capacity leaves it less.

    Who stands above others and needs what holds them, however little, has it only as long as they lack that: its tasks
    would fall by e times `sum_ir lambda_ir c_ir / P_n` at the prices of their level, if they had e more. Prices below
    1e-4 of the largest may be rounding, and are left out of that.

    1 for who is held by its task limit or floor or can run nothing, infinite where no prices prove a level. `prices`
    (levels, servers, resources) are a hint; without, those of a linear program per level are taken, unless there are
    too many pairs. On one server no prices are needed.

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
    x = table.sum(axis=1)[users]
    if starved(polytope, x).any():
        result[users] = np.inf
        return result
    own = criterion.restrict(users)
    level, to_limit, above = own.levels(x), polytope.limit / x - 1, own.surplus(x) > SAME_LEVEL
    free = (to_limit > SAME_LEVEL) & above
    hint = hints(merged, None if prices is None else prices[..., split.merging.first_server, :])
    asked = free & (merged.shape[1] > 1)
    sets, proof = held(polytope, table, level, own.floor, asked, hint, _PROVES)
    # Capacity may hold who is a little below its limit, and not the limit.
    found = np.where(proof.rise <= _PROVES, proof.condition, np.inf)
    found = np.where(free | (above & (proof.rise < to_limit)), found, 1.0)
    for s in np.unique(proof.which[proof.rise <= _PROVES]):
        lowest = level[(proof.which == s) & (proof.rise <= _PROVES)].min()
        rows = polytope.row_prices(np.maximum(sets[s], 0.0))
        rows[rows < _PROVES * rows.max()] = 0.0  # rounding, perhaps
        paid = np.minimum.reduceat(polytope.price_per_task(rows), polytope.start[:-1]) * x
        takes = above & (paid > 0) & (level > lowest * (1 + DIGITS))
        found = np.where(takes, np.maximum(found, rows.sum() / np.where(takes, paid, 1.0)), found)
    result[users] = found
    return result


def check_levels(criterion: Criterion) -> None:
    """Raise a `DataError` where users have no levels."""
    if not (np.isinf(criterion.alpha) and criterion.scope in ("pool", "servers")):
        raise DataError(
            f"alpha is {criterion.alpha:g} and the scope {criterion.scope!r} here: only lexicographic max-min over a "
            "pool or over servers holds each user at one level; ask an allocation of DRF, DRFH, TSF, AssetFairness, "
            "TaskMaxMin, CMMF, MQDRF, MaxMin or AlphaFair(inf)"
        )


def hints(cluster: Cluster, prices: Array | None) -> Array | None:
    """Prices that may prove levels, (sets, servers, resources): those given, of one set or several.

    On one server a level is held by one resource: a price for each alone, whatever is given.
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
    """Sets of prices per unit (servers, resources), and what they prove: those of the hint, and of linear programs.

    Users who are `free` of their limits, and whom nothing holds to `tol` so far, are asked about in a linear program
    for each of their levels, unless there are too many pairs.
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
    """Largest relative difference of a user's tasks from the optimum's, and whose; infinite where that is unknown.

    The bound of `proved` is about what a user could rise by if all others kept the last digit of theirs: where it needs
    1e-13 of what blocks it, their rounding is a large part of its tasks. The optimum itself is well determined then.
    For small clusters `rational` finds it; here its prices are shown to prove it, without rounding, and tasks are
    compared.

    `tasks` (users, servers). Where each server is on its own, of those `requested` (others give 0).
    `work` is the part of `rational.WORK` that it may take.
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
    """The round whose prices hold each user, (users,), -1 at a limit or nowhere to run; `None` if that is not proved.

    With prices lambda of capacities and mu of tasks at their limits, and `p_n` the least cost of a task of n, any x'
    has `sum p_n x'_n <= sum lambda c + sum mu q`. Where the optimum has equality, nobody with `p_n > 0` can rise while
    the others of them keep theirs: a proof for the highest of them. Who is at its limit needs none.
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
