"""Exploitability: how far a per-server allocation is from a Nash equilibrium of the servers.

Finite alpha: at prices lambda of server i, user n would rather have other tasks there, by a Fenchel-Young loss (see
`criteria.bregman`) that is taken relative to the user's *own* `x_n dU_i/dx[n,i]`: whoever is poorest does not hide the
others. Besides, capacity with a price must not idle: the idle part of resource r counts by the largest part that r has
in the price of a task of some user. The exploitability is the largest of all these; both kinds vanish at some prices
exactly at an equilibrium. To the second order, a loss e means tasks off by a part sqrt(2 e / alpha).

alpha = infinity: the relative rise in tasks that the server owes to some user (see `bottleneck`; PF section 3, the
condition that defines PS-DSF).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..criteria import Criterion
from ..polytope import Polytope
from . import _linear, bottleneck

Array = NDArray[np.float64]


def exploitability(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None = None
) -> tuple[Array, Array, list[str]]:
    """Per server: its exploitability (servers,), and prices (servers, resources), and the user concerned (names)."""
    if np.isinf(criterion.alpha):
        gaps, who = _owed(polytope, tasks, criterion)
        return gaps, np.zeros_like(polytope.cluster.capacity), who
    return _gains(polytope, tasks, criterion, prices)


def _owed(polytope: Polytope, tasks: Array, criterion: Criterion) -> tuple[Array, list[str]]:
    cluster = polytope.cluster
    game = criterion.scope == "game"
    totals = tasks.sum(axis=1)
    gaps, who = np.zeros(cluster.shape[1]), [""] * cluster.shape[1]
    for i in np.unique(polytope.pair_server):
        users = polytope.users[polytope.pair_user[polytope.pair_server == i]]
        here = tasks[users, i]
        mine = totals[users] if game else here
        levels = mine * criterion.share[users, i] / criterion.weight[users]
        limits = criterion.limits(cluster)[users] if game else np.full(len(users), np.inf)
        rise = bottleneck.rises(cluster.demand[users], cluster.capacity[i], here, levels, mine, limits)
        gaps[i] = rise.max()
        who[i] = cluster.users[users[int(rise.argmax())]]
    return gaps, who


def _gains(
    polytope: Polytope, tasks: Array, criterion: Criterion, prices: Array | None
) -> tuple[Array, Array, list[str]]:
    cluster = polytope.cluster
    servers = cluster.shape[1]
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    gaps, who = np.zeros(servers), [""] * servers
    if not len(user):
        return gaps, np.zeros_like(cluster.capacity), who
    totals = tasks.sum(axis=1)
    here = tasks[user, server]
    if criterion.alpha > 0 and not (totals[polytope.users] > 0).all():
        n = int(polytope.users[int(np.argmin(totals[polytope.users]))])
        gaps[cluster.usable[n]] = np.inf
        return gaps, np.zeros_like(cluster.capacity), [cluster.users[n]] * servers
    log_marginal = criterion.log_marginal(totals)[user, server]
    # In each server's own scale, so that prices given and prices found are of one size.
    top = np.full(servers, -np.inf)
    np.maximum.at(top, server, log_marginal + np.log(polytope.gamma))
    log_marginal = log_marginal - top[server]
    low = totals[user] - here
    high = np.minimum(low + polytope.gamma, np.maximum(criterion.limits(cluster)[user], totals[user]))
    idle = np.maximum(1 - polytope.use @ polytope.fractions(tasks), 0.0)

    candidates = [] if prices is None else _scales(polytope, polytope.row_prices(prices), np.exp(log_marginal) * here)
    if (found := _supporting(polytope, log_marginal, here, totals[user], high, idle)) is not None:
        candidates.append(found)
    best_rows = np.zeros(polytope.use.shape[0])
    gaps[np.unique(server)] = np.inf
    own = log_marginal + np.log(totals[user], where=totals[user] > 0, out=np.full(len(user), -np.inf))
    for rows in candidates:
        rows = np.where(np.isfinite(rows), np.maximum(rows, 0.0), 0.0)
        price = polytope.price_per_task(rows)
        loss = criterion.bregman(totals[user], log_marginal, price, low, high)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            part = np.where(loss > 0, np.exp(np.log(loss) - (own if criterion.alpha > 0 else 0.0)), 0.0)
        leak = idle * _largest_part(polytope, rows, price)
        gap = np.zeros(servers)
        np.maximum.at(gap, server, part)
        np.maximum.at(gap, polytope.row_server, leak)
        better = gap < gaps
        gaps[better] = gap[better]
        keep = better[polytope.row_server]
        best_rows[keep] = rows[keep]
        for i in np.flatnonzero(better):
            pairs = np.flatnonzero(server == i)
            who[i] = cluster.users[user[pairs[int(part[pairs].argmax())]]]
    return gaps, polytope.unit_prices(best_rows), who


def _scales(polytope: Polytope, rows: Array, spent_value: Array) -> list[Array]:
    """The prices as given and scaled, per server, so that users spend what their tasks are worth at the margin."""
    servers = polytope.cluster.shape[1]
    worth = np.bincount(polytope.pair_server, spent_value, servers)
    budget = np.bincount(polytope.row_server, rows, servers)
    factor = np.divide(worth, budget, out=np.ones(servers), where=(budget > 0) & (worth > 0))
    return [rows, rows * factor[polytope.row_server]]


def _largest_part(polytope: Polytope, rows: Array, price: Array) -> Array:
    """(rows,): the largest part that each resource has in the price of a task of some user."""
    entries = polytope.use.tocoo()
    paid = entries.data * rows[entries.row]
    whole = (price * polytope.gamma)[entries.col]
    result = np.zeros(len(rows))
    np.maximum.at(result, entries.row, np.divide(paid, whole, out=np.zeros(len(paid)), where=whole > 0))
    return result


def _supporting(
    polytope: Polytope, log_marginal: Array, here: Array, totals: Array, high: Array, idle: Array
) -> Array | None:
    """Prices of whole capacities (rows,) at which users would keep what they have, as nearly as can be.

    A linear program in levels: a row's price is measured in the most that its present users could pay, and every
    user's price in its own marginal utility, so that no scale hides another. Minimise what users overpay (weighted by
    how much of their tasks is here) and what idles, while nobody with room would like more.
    """
    entries = polytope.use.tocoo()
    # log of marginal utility per unit of the row: what the price of the row alone could be for this user.
    can_pay = (log_marginal + np.log(polytope.gamma))[entries.col] - np.log(entries.data)
    present = here[entries.col] > 1e-9 * totals[entries.col]
    log_unit = np.full(len(idle), np.inf)
    np.minimum.at(log_unit, entries.row[present], can_pay[present])
    rest = np.isinf(log_unit)
    np.minimum.at(log_unit, entries.row[rest[entries.row]], can_pay[rest[entries.row]])
    log_part = log_unit[entries.row] - can_pay
    largest = np.full(len(here), -np.inf)
    np.maximum.at(largest, entries.col, log_part)
    # Rows of the program divided by their largest entry: a price far above a user's means is simply that.
    scale = np.maximum(largest, 0.0)
    shape = (len(here), len(idle))
    cost = sp.csr_matrix((np.exp(log_part - scale[entries.col]), (entries.col, entries.row)), shape=shape)
    weight = np.where(here > 0, here / np.maximum(totals, np.finfo(float).tiny), 0.0) * np.exp(np.minimum(scale, 30.0))
    wanting = np.flatnonzero((high > totals * (1 + 1e-12)) & (largest > -np.inf))
    if not len(wanting):
        return np.zeros(len(idle))
    solved = _linear.minimise(cost.T @ weight + idle + 1e-9, cost[wanting], np.exp(-scale[wanting]))
    return None if solved is None else solved * np.exp(log_unit)
