"""The last digits of an equilibrium: Newton on the equations of the pairs and resources that bind.

Given a point near an equilibrium, guess which pairs run tasks (B) and which resources are used up (R), and solve

    log p_ni = alpha log(phi_n gamma_ni / U_n)  (B),    sum_B x_ni = X_n(U_n),    sum_B x_ni D_nir / gamma_ni = 1  (R),

for x on B, U and the prices on R; whatever comes out negative leaves, whatever is violated enters, and once more.
Small multiples of the identity keep the system regular where splits or prices are not unique.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from .equations import Equations
from .interior import Found

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Multiples of the identity that make up for splits (pairs) and prices (resources) that are not unique.
_REGULAR = 1e-4
#: With more unknowns a sparse factorisation takes longer than all steps of the interior point, and gigabytes.
_LARGE = 2500
#: log v of a resource that is free.
_FREE = -1e6


def polish(method: Equations, found: Found, rounds: int = 20) -> Found:
    """The best point met in `rounds` Newton steps from `found`, or `found`."""
    alpha, users = method.alpha, method.polytope.pair_user
    best, point = found, found.point
    tasks, log_level = point.tasks.copy(), point.log_level.copy()
    log_price = np.where(method.row, alpha * point.log_price, -np.inf)
    true, share, _ = method.priced(point, alpha)
    total = method.totals(log_level, 0.0)[0]
    used = method.used(tasks)
    parts = method.parts(point, share, true, used)
    active = tasks / total[users] > np.log1p(true) / method.power
    binding = method.row & (parts > 1 - used)
    for turn in range(rounds):
        if active.sum() > 3 * (len(total) + binding.sum()):
            return best  # far too many ties to be true
        if active.sum() + len(total) + binding.sum() > _LARGE:
            return best
        step = _newton(method, tasks, log_price, log_level, active, binding)
        if step is None:
            return best
        d_tasks, d_price, d_level = step
        shrink = min(1.0, 1.0 / max(float(np.abs(d_level).max(initial=0.0)), 1e-300))
        tasks = tasks + shrink * d_tasks
        log_level = log_level + shrink * d_level
        log_price = log_price + np.log1p(np.maximum(shrink * d_price, -0.99))
        gone, free = active & (tasks <= 0), binding & (shrink * d_price <= -0.99)
        active, binding = active & ~gone, binding & ~free
        tasks = np.where(active, tasks, 0.0)
        shown = np.where(binding, log_price / alpha, np.where(method.row, _FREE, 0.0))
        point = replace(point, tasks=tasks, log_price=shown, log_level=log_level)
        true, share, _ = method.priced(point, alpha)
        total = method.totals(log_level, 0.0)[0]
        used = method.used(tasks)
        error = method.error(point, true, method.largest_parts(method.wanted(point, share, true)), total)
        if np.isfinite(error) and error < best.error:
            best = replace(found, point=replace(point, mu=0.0), error=error)
        if error < 1e-14 or (turn > 3 and not error < 0.1 * found.error):
            return best  # done, or the guess was wrong
        active |= true < -1e-13
        entering = method.row & ~binding & (used > 1 + 1e-13)
        if entering.any():
            binding |= entering
            dearest = np.where(binding & ~entering, log_price, -np.inf).max(axis=1, keepdims=True)
            log_price = np.where(entering, np.where(np.isfinite(dearest), dearest, 0.0) - 7.0, log_price)
    return best


def _newton(
    method: Equations, tasks: Array, log_price: Array, log_level: Array, active: Mask, binding: Mask
) -> tuple[Array, Array, Array] | None:
    """Steps of tasks (pairs,), prices (servers, resources; relative) and log levels (users,); `None` if singular."""
    alpha, power = method.alpha, method.power
    pairs, (row_server, row_resource) = np.flatnonzero(active), np.nonzero(binding)
    user, server = method.polytope.pair_user[pairs], method.server[pairs]
    number = np.full(binding.shape, -1)
    number[row_server, row_resource] = np.arange(len(row_server))
    b, u, r = len(pairs), len(log_level), len(row_server)
    use = method.use[pairs]
    log_paid = np.where((use > 0) & (number[server] >= 0), np.log(np.maximum(use, 1e-300)) + log_price[server], -np.inf)
    top = log_paid.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        return None
    paid = np.exp(log_paid - top)
    whole = paid.sum(axis=1, keepdims=True)
    total, slope = method.totals(log_level, 0.0)
    wrong = (top + np.log(whole))[:, 0] - alpha * (method.log_gain[pairs] - log_level[user])
    column = number[server]
    at, which = np.nonzero((use > 0) & (column >= 0))
    rows_of = column[at, which]
    to_price = sp.csr_matrix(((paid / whole)[at, which], (at, rows_of)), shape=(b, r))
    to_use = sp.csr_matrix((method.per_task[pairs][at, which], (rows_of, at)), shape=(r, b))
    of_user = sp.csr_matrix((np.ones(b), (user, np.arange(b))), shape=(u, b))
    own = sp.diags(total[user])  # tasks in the user's own, so that the equations are of one size
    matrix = sp.bmat(
        [
            [-_REGULAR * sp.eye(b), alpha * of_user.T, to_price],
            [of_user, -sp.diags(slope * power / total), None],
            [to_use @ own, None, _REGULAR * sp.eye(r)],
        ],
        format="csc",
    )
    gap = np.bincount(user, tasks[pairs], u) / total - 1
    excess = (to_use @ tasks[pairs]) - 1
    try:
        found = splu(matrix).solve(-np.concatenate([wrong, gap, excess]))
    except RuntimeError:
        return None
    if not np.isfinite(found).all():
        return None
    d_tasks, d_price = np.zeros(len(tasks)), np.zeros_like(log_price)
    d_tasks[pairs] = found[:b] * total[user]
    d_price[row_server, row_resource] = found[b + u :]
    return d_tasks, d_price, found[b : b + u]
