"""Which pairs, rows and limits are active near an equilibrium that an engine has found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .active_set import ActiveSet
from .equilibrium_system import EquilibriumSystem

Array = NDArray[np.float64]


def active_set(
    system: EquilibriumSystem,
    tasks: Array,
    log_price: Array,
    alpha: float | None = None,
) -> tuple[ActiveSet, Array]:
    """What is active near an equilibrium, from tasks of all pairs and log level prices (servers, resources), and z.

    A pair takes part if its part of the user's tasks is more than its slack; a row if its largest part in what somebody
    pays is more than what idles; a limit if less than 1e-9 of it is left.
    """
    alpha = system.alpha if alpha is None else alpha
    first = system.start[:-1]
    total = np.add.reduceat(tasks, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log(system.use) + alpha * log_price[system.server]
        top = np.maximum(power.max(axis=1), -1e300)[:, None]
        paid = np.exp(power - top)
        log_norm = (top[:, 0] + np.log(paid.sum(axis=1))) / alpha
        slack = np.log(total)[system.user] + log_norm - system.log_gain
        share = paid / paid.sum(axis=1)[:, None]
    at_limit = total >= system.limit * (1 - 1e-9)
    excess = np.zeros(len(total))
    if at_limit.any():
        least = np.minimum.reduceat(np.where(tasks > 1e-6 * total[system.user], slack, np.inf), first)
        excess = np.where(at_limit & np.isfinite(least), np.maximum(-least, 0.0), 0.0)
        slack = slack + excess[system.user]
    pair = tasks / total[system.user] > np.maximum(slack, 1e-12)
    # Nobody loses all: rounding may hide the best one.
    best = tasks >= np.maximum.reduceat(tasks, first)[system.user]
    pairs = np.flatnonzero(pair | best)
    weight = np.zeros(system.row.shape)
    np.maximum.at(weight, system.server[pairs], np.where(system.use[pairs] > 0, share[pairs], 0.0))
    rows = np.flatnonzero((system.row & (weight > np.maximum(1 - system.used(tasks), 0))).reshape(-1))
    limits = np.flatnonzero(at_limit & (excess > 0))
    found = ActiveSet(system, pairs, rows, limits)
    return found, np.concatenate([tasks[pairs], log_price.reshape(-1)[rows], excess[limits]])
