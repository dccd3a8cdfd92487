"""The componentwise backward error e of docs/certificates.md, loop by loop as it is defined: a check of the judge.

Global: `m_n = phi_n^alpha u_n^(1-alpha) x_n^-alpha`; game: `m_ni = phi_n^alpha gamma_ni^(alpha-1) x_n^-alpha`;
`p_ni = sum_r lambda_ir d_nr`, `p_n = min_i p_ni`. Prices are given
as logarithms, of whole capacities: `L_ir = log(lambda_ir c_ir)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairopt.model.cluster import Cluster

Array = NDArray[np.float64]

TAUS = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 0.0)


def log_price(cluster: Cluster, n: int, i: int, log_prices: Array) -> float:
    """`log sum_r lambda_ir d_nr` of one pair; -inf if nothing that n needs on i has a price."""
    terms = [
        log_prices[i, r] + np.log(cluster.demand[n, r]) - np.log(cluster.capacity[i, r])
        for r in range(cluster.shape[2])
        if cluster.demand[n, r] > 0 and log_prices[i, r] > -np.inf
    ]
    return float(np.logaddexp.reduce(terms)) if terms else -np.inf


def log_marginal(cluster: Cluster, n: int, i: int, total: float, alpha: float, share: Array | None) -> float:
    """`log m_n` with shares per task (users,), `log m_ni` of the game without."""
    per_task = 1 / cluster.gamma[n, i] if share is None else share[n]
    return float(alpha * np.log(cluster.weight[n]) + (1 - alpha) * np.log(per_task) - alpha * np.log(total))


def error_at(cluster: Cluster, tasks: Array, alpha: float, share: Array | None, log_prices: Array, tau: float) -> float:
    """e at one tau: of tasks (users, servers) and log prices (servers, resources), 0 <= alpha < infinity."""
    users, servers, resources = cluster.shape
    limit, total, size = cluster.max_tasks, tasks.sum(axis=1), max(alpha, 1.0)
    found = [0.0]
    if (tasks[~cluster.usable] != 0).any() or not np.isfinite(tasks).all():
        return np.inf
    kept_price = np.full((servers, resources), -np.inf)
    used = np.zeros((servers, resources))
    for i in range(servers):
        for r in range(resources):
            if cluster.capacity[i, r] > 0:
                used[i, r] = sum(tasks[n, i] * cluster.demand[n, r] for n in range(users)) / cluster.capacity[i, r]
            found.append(used[i, r] - 1)
            if log_prices[i, r] > -np.inf and 1 - used[i, r] <= tau:
                kept_price[i, r] = log_prices[i, r]
                found.append(1 - used[i, r])
    dropped = np.zeros_like(tasks)
    for n in range(users):
        usable = np.flatnonzero(cluster.usable[n])
        if not len(usable) or limit[n] == 0:
            found.append(np.inf if total[n] > 0 else 0.0)
            continue
        if not total[n] > 0:
            return np.inf
        found.append(total[n] / limit[n] - 1)
        found.extend(-tasks[n, i] / cluster.gamma[n, i] for i in usable)
        room = max(1 - total[n] / limit[n], 0.0)
        price = {i: log_price(cluster, n, i, kept_price) for i in usable}
        worth = {i: log_marginal(cluster, n, i, total[n], alpha, share) for i in usable}
        cheapest = min(price.values())
        if share is not None:
            off = (cheapest - worth[usable[0]]) / size
            found.append(off if off > 0 else min(-off, room))
        for i in usable:
            if share is None:
                dearer = (price[i] - worth[i]) / size
                if dearer < 0:
                    found.append(min(-dearer, room))
            else:
                dearer = price[i] - cheapest if price[i] > -np.inf else 0.0
            if tasks[n, i] > 0 and dearer > tau:
                dropped[n, i] = tasks[n, i]
            elif tasks[n, i] > 0 and dearer > 0:
                found.append(dearer)
        found.append(dropped[n].sum() / total[n])
    for i in range(servers):
        for r in range(resources):
            if kept_price[i, r] > -np.inf:
                found.append(sum(dropped[n, i] * cluster.demand[n, r] for n in range(users)) / cluster.capacity[i, r])
    return float(max(found))


def backward_error(
    cluster: Cluster,
    tasks: Array,
    alpha: float,
    share: Array | None,
    log_prices: Array,
    taus: Sequence[float] = TAUS,
) -> float:
    """The smallest e over a few tau; `share` (users,) of a global program, None for the game."""
    return min(error_at(cluster, tasks, alpha, share, log_prices, tau) for tau in taus)
