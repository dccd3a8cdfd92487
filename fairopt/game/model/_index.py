"""The index of an equilibrium of a small game, from tasks and prices, densely; see `index` for what it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .index_options import OPTIONS

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def index(
    alpha: float,
    capacity: Array,
    demand: Array,
    gamma: Array,
    weight: Array,
    limit: Array,
    tasks: Array,
    log_prices: Array,
) -> int | None:
    """+1, -1 or 0; None where a limit binds. Log prices per resource unit, on the scale of marginal welfare."""
    total = tasks.sum(axis=1)
    if ((total >= limit * (1 - OPTIONS.binds)) & (limit > 0)).any():
        return None
    slack, share = _costs(alpha, demand, gamma, weight, log_prices, total)
    best = tasks.max(axis=1, keepdims=True)
    above = tasks > total[:, None] * np.fmax(slack, OPTIONS.part)
    active = (gamma > 0) & (best > 0) & (above | (tasks == best))
    user, server = np.nonzero(active)
    if not len(user):
        return 1
    use = demand[:, None] / np.where(capacity > 0, capacity, 1.0)  # (users, servers, resources)
    part = np.where(active[..., None], share, 0.0).max(axis=0)
    idle = 1 - np.where(active[..., None], use * tasks[..., None], 0.0).sum(axis=0)
    host, resource = np.nonzero(part > np.maximum(idle, 0.0))
    there = server[:, None] == host
    matrix = np.zeros((len(user) + len(host),) * 2)
    pairs = slice(len(user))
    rows = slice(len(user), None)
    matrix[pairs, pairs] = user[:, None] == user
    matrix[pairs, rows] = there * share[user[:, None], server[:, None], resource] / part[host, resource]
    matrix[rows, pairs] = -(there * use[user[:, None], server[:, None], resource] * total[user, None]).T
    np.fill_diagonal(matrix, matrix.diagonal() + OPTIONS.regular)
    return _sign(matrix, user)


def _costs(
    alpha: float, demand: Array, gamma: Array, weight: Array, log_prices: Array, total: Array
) -> tuple[Array, Array]:
    """Slacks of levels (users, servers), NaN where not usable, and parts of rows in prices."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # users without tasks
        each = np.log(demand)[:, None] + np.where(demand[:, None] > 0, log_prices, -np.inf)
        top = each.max(axis=2)
        share = np.exp(each - np.where(np.isfinite(top), top, 0.0)[..., None])
        whole = share.sum(axis=2)
        value = alpha * np.log(weight / total)[:, None] + (alpha - 1) * np.log(gamma)
        slack = np.where((gamma > 0) & (total > 0)[:, None], (top + np.log(whole) - value) / alpha, np.nan)
    return slack, share / np.where(whole > 0, whole, 1.0)[..., None]


def _sign(matrix: Array, users: NDArray[np.intp]) -> int:
    """That of the determinant; 0 where sums of unknowns by user (`users` of the first ones) move without bound."""
    size = len(matrix)
    if size <= OPTIONS.all:
        probes = np.eye(size)
    else:
        steps = np.outer(np.arange(1, size + 1), 2 * np.arange(OPTIONS.probes) + 3)
        probes = np.where((steps * 0.6180339887) % 1.0 < 0.5, 1.0, -1.0)
    try:
        found = np.linalg.solve(matrix, probes)[: len(users)]
    except np.linalg.LinAlgError:
        return 0
    moved = np.zeros((users.max() + 1, probes.shape[1]))
    np.add.at(moved, users, found)
    return int(np.linalg.slogdet(matrix)[0]) if np.abs(moved).max() < OPTIONS.singular else 0
