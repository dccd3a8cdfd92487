"""SequentialMinMax: whose share would be least after a task more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..state import State
from ._base import Numbers, Policy, kernel


@dataclass(frozen=True)
class SequentialMinMax(Policy):
    """The user whose weighted dominant share *after* its first waiting task would be lowest, on the first server.

        argmin_n max_r (allocated[n,r] + d[n,r]) / (C_r phi_n)

    Source: Parkes, Procaccia, Shah, "Beyond Dominant Resource Fairness", EC 2012, section 5: envy-free up to one
    bundle, Pareto optimal, sharing incentive on one pool.
    """

    name = "sequential-min-max"
    title = "SequentialMinMax"
    source = "EC 2012, 5"

    @kernel("after")
    def share(self, state: State) -> Numbers:
        after = state.allocated + np.where((state.head >= 0)[:, None], state.cost[state.head], 0)
        return np.asarray((after / (state.total * state.weight[:, None])).max(axis=1))
