"""Best-Fit DRFH."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..state import State
from ..workload import Whole
from ._base import Numbers, Policy, kernel


@dataclass(frozen=True)
class BestFitDRFH(Policy):
    """The user with the lowest weighted global dominant share, on the server whose free resources are most like it.

        H(n, i) = sum_r | D[n,r]/D[n,q] - F[i,r]/F[i,q] |,    q the first resource that the task demands

    `D` and `F` are demand d and what is free f, in parts of the pool C. The paper divides by the first resource; tasks
    that do not demand it have no such quotient. In whole numbers

        H(n, i) = sum_r |f[i,r] d[n,q] - d[n,r] f[i,q]| / f[i,q] * C_q / (C_r d[n,q])

    where the first quotient is one division: of two resources exact ties are ties (of more those of servers that have
    the same free proportions; other sums are rounded), as long as products of amounts are below 2^53.

    Source: Wang, Li, Liang, arXiv 1308.0083, section V, equation (9).
    """

    name = "best-fit-drfh"
    title = "Best-Fit DRFH"
    source = "INFOCOM 2014, (9)"

    @kernel("best")
    def score(self, state: State, group: int, servers: Whole) -> Numbers:
        demand, free, pool = state.demand[group].astype(float), state.free[servers].astype(float), state.pool
        q = int(np.argmax(demand > 0))
        score = np.zeros(len(servers))
        for r in range(len(pool)):
            if r != q:
                apart = np.abs(free[:, r] * demand[q] - demand[r] * free[:, q]) / free[:, q]
                score += apart * (pool[q] / (pool[r] * demand[q]))
        return score
