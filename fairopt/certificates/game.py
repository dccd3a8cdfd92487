"""Exploitability: how far a per-server allocation is from a Nash equilibrium of the servers, in tasks.

0 < alpha < infinity, in levels: at prices lambda of server i user n would have `phi_n gamma_ni / norm_i(n)` tasks in
all. By how much that exceeds what it has is what the server still owes it; where it is less, the tasks that n has on i
count by how much dearer they are there, times their part of all its tasks. Capacity with a price must not idle: the
idle part of resource r counts by the largest part that r has in what a task costs, or is worth. The exploitability is
the largest of these. It is relative to each user's own tasks and each server's own capacity, fits any alpha, and says
that x is an exact equilibrium after changing weights by it, pair by pair, and capacities. It vanishes at some prices
exactly at an equilibrium.

alpha = 0: what a server's linear program could still gain, user by user. alpha = infinity: the relative rise in tasks
that the server owes to some user (see `bottleneck`; PF section 3, the condition that defines PS-DSF).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..criteria import Criterion
from ..polytope import Polytope
from . import bottleneck
from ._supporting import supporting

Array = NDArray[np.float64]

#: Better prices are not looked for once those given prove so much.
_ENOUGH = 1e-6
#: By how much every user may be misplaced for nothing, in turn.
_LEEWAY = (1e-10, 1e-8, 1e-7, 4e-7)
#: Exponents so far below their sum's largest are computed on their own.
_FAR = 500.0


def exploitability(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[Array, Array, list[str]]:
    """Per server: its exploitability (servers,), and prices (servers, resources), and what attains it, in words.

    Prices are compared as logarithms: at alpha = 500 those of one server may span a thousand decades. What was given as
    0 because doubles end before that is found anew.
    """
    if np.isinf(criterion.alpha):
        gaps, where = _owed(polytope, tasks, criterion)
        return gaps, np.zeros_like(polytope.cluster.capacity), where
    return _gains(polytope, tasks, criterion, prices)


def _owed(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[Array, list[str]]:
    cluster = polytope.cluster
    game = criterion.scope == "game"
    totals = tasks.sum(axis=1)
    gaps, where = np.zeros(cluster.shape[1]), [""] * cluster.shape[1]
    limits_of = criterion.limits(cluster)
    by_server = np.argsort(polytope.pair_server, kind="stable")
    ends = np.searchsorted(polytope.pair_server[by_server], np.arange(cluster.shape[1] + 1))
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


def _gains(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None
) -> tuple[Array, Array, list[str]]:
    cluster = polytope.cluster
    servers = cluster.shape[1]
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    gaps, where = np.zeros(servers), [""] * servers
    if not len(user):
        return gaps, np.zeros_like(cluster.capacity), where
    totals = tasks.sum(axis=1)
    if criterion.alpha > 0 and not (totals[polytope.users] > 0).all():
        n = int(polytope.users[int(np.argmin(totals[polytope.users]))])
        gaps[cluster.usable[n]] = np.inf
        return gaps, np.zeros_like(cluster.capacity), [f"user {cluster.users[n]!r}"] * servers
    idle = np.maximum(1 - polytope.used(tasks), 0.0)
    gaps[np.unique(server)] = np.inf
    where = ["want of prices"] * servers
    best_rows = np.full(len(idle), -np.inf)
    log_marginal = _log_marginal(polytope, criterion, tasks)
    for rows in _candidates(polytope, criterion, tasks, log_marginal, prices, idle, gaps):
        rows = np.where(np.isnan(rows) | np.isposinf(rows), -np.inf, rows)
        part = _misplaced(polytope, criterion, tasks, log_marginal, rows)
        leak = idle * _largest_part(polytope, log_marginal, rows)
        of_users, gap = np.zeros(servers), np.zeros(servers)
        np.maximum.at(of_users, server, part)
        np.maximum.at(gap, polytope.row_server, leak)
        leaks = gap > of_users
        gap = np.maximum(gap, of_users)
        better = gap < gaps
        gaps[better] = gap[better]
        keep = better[polytope.row_server]
        best_rows[keep] = rows[keep]
        attained = np.zeros(servers, dtype=np.intp)  # by which user, or which resource where it leaks
        pairs, idling = np.flatnonzero(part == gap[server]), np.flatnonzero(leak == gap[polytope.row_server])
        attained[server[pairs]] = user[pairs]
        idling = idling[leaks[polytope.row_server[idling]]]
        attained[polytope.row_server[idling]] = polytope.row_resource[idling]
        for i in np.flatnonzero(better):
            name = cluster.resources[attained[i]] if leaks[i] else cluster.users[attained[i]]
            where[i] = f"unused {name!r} with a price" if leaks[i] else f"user {name!r}"
    with np.errstate(over="ignore"):
        return gaps, polytope.unit_prices(np.exp(best_rows)), where


def _candidates(
    polytope: Polytope,
    criterion: Criterion,
    tasks: Array,
    log_marginal: Array,
    prices: Array | None,
    idle: Array,
    gaps: Array,
) -> Iterator[Array]:
    """Log prices of whole capacities (rows,) to try: those given, in the best scale, then, if need be, a program's."""
    if prices is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            given = np.log(np.maximum(polytope.row_prices(prices), 0.0))
        yield from _scales(polytope, log_marginal, given, tasks)
    # Without a price for what idles at last: it cannot have one at an equilibrium, but all prices are within rounding.
    for leeway, free in ((_LEEWAY[0], np.inf), *((leeway, _ENOUGH) for leeway in _LEEWAY)):
        if gaps.max() <= _ENOUGH:
            return
        found = supporting(polytope, criterion, tasks, idle, log_marginal, leeway, idle > free)
        if found is not None:
            yield found
            yield from _scales(polytope, log_marginal, found, tasks)


def _log_marginal(polytope: Polytope, criterion: Criterion, tasks: Array) -> Array:
    """log dU_i/dx_n of every pair, in each server's own scale."""
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    log_marginal = criterion.log_marginal(tasks.sum(axis=1))[user, server]
    top = np.full(polytope.cluster.shape[1], -np.inf)
    np.maximum.at(top, server, log_marginal + np.log(polytope.gamma))
    return np.asarray(log_marginal - top[server])


def _misplaced(polytope: Polytope, criterion: Criterion, tasks: Array, log_marginal: Array, rows: Array) -> Array:
    """What is wrong with every pair at these log prices, relative to the user's tasks, (pairs,)."""
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    totals = tasks.sum(axis=1)
    mine, here = totals[user], tasks[user, server]
    most = np.minimum(mine - here + polytope.gamma, np.maximum(criterion.limits(polytope.cluster)[user], mine))
    price = _log_price_per_task(polytope, rows)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if criterion.alpha == 0:
            return criterion.bregman(mine, log_marginal, np.exp(price), mine - here, most)
        dearer = (price - log_marginal) / criterion.alpha
        owed = np.minimum(np.expm1(np.minimum(-dearer, 700.0)), most / mine - 1)
        return np.asarray(np.where(dearer < 0, owed, -here / mine * np.expm1(-dearer)))


def _log_price_per_task(polytope: Polytope, rows: Array) -> Array:
    """`log sum_r lambda[i,r] d[n,r]` of every pair, (pairs,), from log prices of whole capacities (rows,)."""
    log_price = polytope.by_server(rows, unused=-np.inf)
    top = log_price.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    server = polytope.pair_server
    with np.errstate(divide="ignore"):
        log_gamma = np.log(polytope.gamma)
        whole = np.log(polytope.price_per_task(np.exp(rows - top[polytope.row_server]))) + log_gamma
        far = np.flatnonzero(whole < -_FAR)  # who needs only what is next to free beside other resources
        whole += top[server]
        whole[far] = np.logaddexp.reduce(np.log(polytope.pair_use[far]) + log_price[server[far]], axis=1)
    return np.asarray(whole - log_gamma)


def _scales(polytope: Polytope, log_marginal: Array, rows: Array, tasks: Array) -> list[Array]:
    """The prices in each server's best scale: users spend what their tasks are worth, or nobody is owed anything."""
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    totals = tasks.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = log_marginal - _log_price_per_task(polytope, rows)
        part = tasks[user, server] / totals[user]
    known = np.isfinite(off) & np.isfinite(part)
    servers = polytope.cluster.shape[1]
    whole = np.bincount(server[known], part[known], servers)
    mean = np.bincount(server[known], part[known] * off[known], servers) / np.where(whole > 0, whole, 1.0)
    least = np.full(servers, -np.inf)
    np.maximum.at(least, server[known], off[known])
    least = np.where(np.isfinite(least), least, 0.0)
    return [rows, rows + mean[polytope.row_server], rows + least[polytope.row_server]]


def _largest_part(polytope: Polytope, log_marginal: Array, rows: Array) -> Array:
    """(rows,): the largest part that each resource has in what some user pays for a task, or would pay."""
    whole = np.maximum(_log_price_per_task(polytope, rows), log_marginal) + np.log(polytope.gamma)
    log_price = polytope.by_server(rows, unused=-np.inf)
    result = np.zeros_like(log_price)
    for r in range(result.shape[1]):
        with np.errstate(divide="ignore"):
            paid = np.log(polytope.pair_use[:, r]) + log_price[polytope.pair_server, r]
        np.maximum.at(result[:, r], polytope.pair_server, np.exp(np.minimum(paid - whole, 0.0)))
    return np.asarray(result[polytope.row_server, polytope.row_resource])
