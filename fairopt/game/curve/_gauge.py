"""Compiled: the units of prices on the curve, which follow from who pays what."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._system import LOG_TAX
from .options import RUN


@compiled
def _parts(g, at, log_price, part, floor, taxed):  # type: ignore[no-untyped-def]
    """Fill the largest part of every row in what an active pair pays, and the log of D over a whole cost.

    And by server the smallest part of the tax.
    """
    alpha = np.exp(at.theta[0])
    for p in range(len(g.user)):
        tax = LOG_TAX + alpha * g.tax[p]
        top, whole = tax, 0.0
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0:
                top = max(top, g.log_cost[p, r] + log_price[g.at[p, r]])
        if top == -np.inf or not at.pair_on[p]:
            continue
        whole += np.exp(tax - top)
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0:
                whole += np.exp(g.log_cost[p, r] + log_price[g.at[p, r]] - top)
        whole = top + np.log(whole)
        taxed[g.server[p]] = min(taxed[g.server[p]], np.exp(tax - whole))
        for r in range(g.at.shape[1]):
            if g.cost[p, r] > 0:
                k = g.at[p, r]
                part[k] = max(part[k], np.exp(g.log_cost[p, r] + log_price[k] - whole))
                floor[k] = max(floor[k], g.log_cost[p, r] - whole)


@compiled
def gauged(g, at):  # type: ignore[no-untyped-def]
    """Measure prices anew: w of every active row is its largest part, and 1 for the largest of a server's.

    Where everybody pays hardly anything but the tax no row stands for the server, and all prices may fall to 0.
    """
    alpha, rows = np.exp(at.theta[0]), len(g.host)
    log_price, part, floor = np.full(rows, -np.inf), np.zeros(rows), np.full(rows, -np.inf)
    for k in range(rows):
        if at.row_on[k] and at.w[k] > 0:
            log_price[k] = np.log(at.w[k]) + alpha * at.level[k]
    taxed = np.ones(g.host.max() + 1)
    _parts(g, at, log_price, part, floor, taxed)
    best = np.full(len(taxed), -1)
    for k in range(rows):
        at.stands[k] = False
        if at.row_on[k] and floor[k] > -np.inf:
            at.level[k], at.w[k] = -floor[k] / alpha, part[k]
        if at.row_on[k] and part[k] > 0 and (best[g.host[k]] < 0 or part[k] > part[best[g.host[k]]]):
            best[g.host[k]] = k
    for k in best:
        if k >= 0 and taxed[g.host[k]] < RUN.taxed:
            at.stands[k], at.level[k], at.w[k] = True, log_price[k] / alpha, 1.0
