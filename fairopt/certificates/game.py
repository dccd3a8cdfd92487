"""Exploitability: how far a per-server allocation is from a Nash equilibrium of the servers.

Finite alpha: server i could gain at most the Fenchel-Young losses of its users at any prices plus what priced
capacity it leaves idle (see `concave`), relative to `max_n gamma[n,i] dU_i/dx[n,i]`, the most that handing the whole
server to one user is worth at the current margin. alpha = infinity: the relative rise in tasks that the server owes
to some user (see `bottleneck`; PF section 3, the condition that defines PS-DSF).
Both are zero exactly at an equilibrium and do not change with units, weights' scale or the size of a server.
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
    # In each server's own scale: the best user's whole-server value is 1.
    value = log_marginal + np.log(polytope.gamma)
    top = np.full(servers, -np.inf)
    np.maximum.at(top, server, value)
    log_marginal = log_marginal - top[server]
    low = totals[user] - here
    high = np.minimum(low + polytope.gamma, np.maximum(criterion.limits(cluster)[user], totals[user]))

    candidates = [] if prices is None else [polytope.row_prices(prices)]
    if (found := _supporting(polytope, np.exp(log_marginal), high - low)) is not None:
        candidates.append(found)
    best_rows = np.zeros(polytope.use.shape[0])
    gaps[np.unique(server)] = np.inf
    for rows in candidates:
        rows = np.maximum(rows, 0.0)
        for scaled in _scales(polytope, rows, np.exp(log_marginal) * here):
            price = polytope.price_per_task(scaled)
            loss = criterion.bregman(totals[user], log_marginal, price, low, high)
            leak = np.bincount(polytope.row_server, scaled, servers) - np.bincount(server, price * here, servers)
            gap = np.bincount(server, loss, servers) + np.maximum(leak, 0.0)
            better = gap < gaps
            gaps[better] = gap[better]
            keep = better[polytope.row_server]
            best_rows[keep] = scaled[keep]
            for i in np.flatnonzero(better):
                pairs = np.flatnonzero(server == i)
                who[i] = cluster.users[user[pairs[int(loss[pairs].argmax())]]]
    return gaps, polytope.unit_prices(best_rows), who


def _scales(polytope: Polytope, rows: Array, spent_value: Array) -> list[Array]:
    """The prices as given and scaled, per server, so that users spend what their tasks are worth at the margin."""
    servers = polytope.cluster.shape[1]
    worth = np.bincount(polytope.pair_server, spent_value, servers)
    budget = np.bincount(polytope.row_server, rows, servers)
    factor = np.divide(worth, budget, out=np.ones(servers), where=(budget > 0) & (worth > 0))
    return [rows, rows * factor[polytope.row_server]]


def _supporting(polytope: Polytope, marginal: Array, room: Array) -> Array | None:
    """Prices of whole capacities (rows,) supporting every server's `max sum G z` within the users' room."""
    part = room / polytope.gamma
    bounded = np.flatnonzero(part < 1)
    rows = [polytope.use]
    bounds = [np.ones(polytope.use.shape[0])]
    if len(bounded):
        count = len(bounded)
        rows.append(sp.csr_matrix((np.ones(count), (np.arange(count), bounded)), shape=(count, len(part))))
        bounds.append(part[bounded])
    solved = _linear.maximise(marginal * polytope.gamma, rows, bounds)
    return None if solved is None else solved[1][0]
