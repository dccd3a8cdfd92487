"""Prices that support an allocation as nearly as can be, by one linear program (see `_prices`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import _linear

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SupportOptions:
    """The linear program of prices."""

    #: Coefficients of the linear program below this are left out.
    smallest: float = 1e-12
    #: Users so near their floor are at it.
    at_floor: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = SupportOptions()


def supporting(
    polytope: Polytope,
    criterion: Criterion,
    tasks: Array,
    idle: Array,
    log_marginal: Array,
    leeway: float,
    free: NDArray[np.bool_],
) -> Array | None:
    """Log prices of whole capacities (rows,) at which every server's error in tasks is least, to the first order.

    A linear program: minimise `sum_i t_i` over prices and t, where the price of a task in units of what it is worth is
    at least `1 - alpha t` for users with room, and at most `1 + alpha t X/x` times `(1 - leeway X/x)^-alpha`, what a
    misplaced `leeway` stands for (x of X tasks are here), and a row's price times what idles is at most t. Rows that
    are `free` have no price. Rows are measured in the most that their present users could pay for them, users who can
    pay far less than a row's unit in what that costs, so that no scale hides another.
    """
    user, server = polytope.users[polytope.pair_user], polytope.pair_server
    servers, alpha = polytope.cluster.shape[1], max(criterion.alpha, 1e-3)
    mine = tasks.sum(axis=1)
    totals = mine[user]
    part = np.divide(tasks[user, server], totals, out=np.zeros_like(totals), where=totals > 0)
    high = np.maximum(criterion.limits(polytope.cluster)[user], totals)
    entries = (sp.diags((~free).astype(float)) @ polytope.use).tocoo()
    entries.eliminate_zeros()
    # log of marginal utility per unit of the row: what the price of the row alone could be for this user.
    can_pay = (log_marginal + np.log(polytope.gamma))[entries.col] - np.log(entries.data)
    present = part > leeway
    log_more = -alpha * np.log1p(-leeway / np.maximum(part, (1 + 1e-9) * leeway))
    known = present[entries.col]
    log_unit = np.full(len(idle), np.inf)
    np.minimum.at(log_unit, entries.row[known], (can_pay + log_more[entries.col])[known])
    unknown = np.isinf(log_unit)
    np.minimum.at(log_unit, entries.row[unknown[entries.row]], can_pay[unknown[entries.row]])
    log_cost = log_unit[entries.row] - can_pay
    largest = np.full(len(totals), -np.inf)
    np.maximum.at(largest, entries.col, log_cost)
    scale = np.maximum(largest, 0.0)
    scaled = np.exp(log_cost - scale[entries.col])
    scaled[scaled < OPTIONS.smallest] = 0.0
    cost = sp.csr_matrix((scaled, (entries.col, entries.row)), shape=(len(totals), len(idle)))
    small, less = np.exp(-scale), np.exp(-log_more)
    wanting = np.flatnonzero((high > totals * (1 + 1e-12)) & (small > OPTIONS.smallest) & (largest > -np.inf))
    below = criterion.surplus(mine)[user] <= OPTIONS.at_floor  # they may pay more than their tasks are worth
    paying = np.flatnonzero(present & ~below & (small > OPTIONS.smallest) & (largest > -np.inf))
    own = sp.csr_matrix((small, (np.arange(len(totals)), server)), shape=(len(totals), servers))
    of_row = sp.csr_matrix(
        (np.ones(len(idle)), (np.arange(len(idle)), polytope.row_server)), shape=(len(idle), servers)
    )
    rows = sp.bmat(
        [
            [cost[wanting], own[wanting]],
            [-sp.diags((part * less)[paying]) @ cost[paying], own[paying]],
            [-alpha * sp.diags(idle), of_row],
        ],
        format="csr",
    )
    least = np.concatenate([small[wanting], -(part * small)[paying], np.zeros(len(idle))])
    solved = _linear.minimise(np.concatenate([np.full(len(idle), 1e-12), np.ones(servers)]), rows, least)
    if solved is None:
        return None
    prices = np.maximum(solved[: len(idle)], 0.0)
    # What is below the program's accuracy: a user that needs only rows that are next to free for all others.
    order = np.lexsort((-log_cost, entries.col))
    users, at = np.unique(entries.col[order], return_index=True)
    row = entries.row[order[at]]  # the one that costs it most
    missing = np.where(high > totals * (1 + 1e-12), small - cost @ prices, 0.0)[users]
    np.maximum.at(prices, row, prices[row] + np.maximum(missing, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(free, -np.inf, np.log(prices) + np.where(free, 0.0, log_unit)))
