"""The scale in which prices are shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.criterion import Criterion

Array = NDArray[np.float64]


def of_budgets(log_prices: Array, criterion: Criterion, capacity: Array, user_tasks: Array) -> Array:
    """Log prices (servers, resources) where `sum_n x_n dF/dx_n = sum_n phi_n`, as they are for max-min.

    In the game each server's own are scaled so that the largest price of a capacity is 1.
    """
    if np.isinf(criterion.alpha):
        return log_prices
    with np.errstate(divide="ignore", invalid="ignore"):
        if criterion.scope == "game":
            top = (log_prices + np.log(capacity)).max(axis=1, keepdims=True)
            return np.asarray(log_prices - np.where(np.isfinite(top), top, 0.0))
        runs = np.flatnonzero(user_tasks > 0)
        if not len(runs):
            return log_prices
        own, tasks = criterion.restrict(runs), user_tasks[runs]
        whole = np.logaddexp.reduce(own.log_marginal(tasks) + np.log(tasks)) - np.log(own.weight.sum())
    return np.asarray(log_prices - (whole if np.isfinite(whole) else 0.0))
