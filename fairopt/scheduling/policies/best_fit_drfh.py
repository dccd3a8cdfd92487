"""Best-Fit DRFH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..workload import Whole, Workload
from ._base import Policy, rule


@dataclass(frozen=True)
class BestFitDRFH(Policy):
    """The user with the lowest weighted global dominant share, on the server whose free resources are most like it.

        H(n, i) = sum_r | D[n,r]/D[n,q] - F[i,r]/F[i,q] |,    q the first resource that the task demands

    `D` and `F` are demand d and what is free f, in parts of the pool C. The paper divides by the first resource; tasks
    that do not demand it have no such quotient. In whole numbers

        H(n, i) = sum_r |f[i,r] d[n,q] - d[n,r] f[i,q]| / f[i,q] * C_q / (C_r d[n,q])

    where the first quotient is one division: of two resources exact ties are ties (of more those of servers that have
    the same free proportions; other sums are rounded), as long as products of amounts are below 2^53. Amounts of a
    resource are therefore counted in the largest unit of which all are whole numbers: data of up to eight digits do.

    Source: Wang, Li, Liang, arXiv 1308.0083, section V, equation (9).
    """

    name = "best-fit-drfh"
    title = "Best-Fit DRFH"
    source = "INFOCOM 2014, (9)"
    index = "ratios"

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """Amounts of resources, each in the largest unit of which all are whole numbers."""
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
