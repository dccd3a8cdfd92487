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

    `D` and `F` are demand and what is free, in parts of the pool. The paper divides by the first resource; tasks that
    do not demand it have no such quotient.

    Source: Wang, Li, Liang, arXiv 1308.0083, section V, equation (9).
    """

    name = "best-fit-drfh"
    title = "Best-Fit DRFH"
    source = "INFOCOM 2014, (9)"

    @kernel("best")
    def score(self, state: State, group: int, servers: Whole) -> Numbers:
        total = state.pool
        demand = state.demand[group] / total
        q = int(np.argmax(state.demand[group] > 0))
        base = state.free[servers, q] / total[q]
        score = np.zeros(len(servers))
        for r in range(len(total)):
            if r != q:
                score += np.abs(demand[r] / demand[q] - state.free[servers, r] / total[r] / base)
        return score
