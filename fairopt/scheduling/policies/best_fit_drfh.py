"""Best-Fit DRFH: lowest dominant share first, on the server that fits best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..workload import Whole, Workload
from ._base import Policy, rule


@dataclass(frozen=True)
class BestFitDRFH(Policy):
    r"""Serve the user n of lowest weighted dominant share, on the server i with free amounts nearest to its demand.

    .. math:: H(n, i) = \sum_r \Big| \frac{D_{nr}}{D_{nq}} - \frac{F_{ir}}{F_{iq}} \Big|
        = \sum_r \frac{|f_{ir} d_{nq} - d_{nr} f_{iq}|}{f_{iq}} \frac{C_q}{C_r d_{nq}}

    The distance is H. D and F are the demand d and the free amounts f relative to the pool C, and q is the first
    resource that the task demands. (The paper divides by the first resource, which is undefined for tasks without
    demand for it.)

    The second form preserves exact ties in floating point (with more than two resources: ties of servers with equal
    free amounts) as long as products of amounts are less than 2^53. Amounts of a resource are therefore expressed in
    their greatest common divisor, which suffices for data of up to eight digits.

    Source: Wang, Li, Liang, arXiv 1308.0083, section V, equation (9).
    """

    name = "best-fit-drfh"
    title = "Best-Fit DRFH"
    source = "INFOCOM 2014, (9)"
    index = "ratios"

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """Amounts of resources, each divided by the greatest common divisor of all amounts."""
        capacity, demand = super().room(workload)
        unit = np.maximum(np.gcd.reduce(np.concatenate([capacity, demand]), axis=0), 1)
        return capacity // unit, demand // unit

    @rule
    def score(state: Any, group: int, queue: int, server: int) -> float:
        demand, free, pool = state.demand, state.free, state.pool
        q = 0
        while demand[group, q] == 0:
            q += 1
        score, need, have = 0.0, float(demand[group, q]), float(free[server, q])
        for r in range(len(pool)):
            if r != q:
                apart = abs(float(free[server, r]) * need - demand[group, r] * have) / have
                score += apart * (pool[q] / (pool[r] * need))
        return score
