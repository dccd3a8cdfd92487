"""SequentialMinMax: the smallest share after one more task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..loop.tables import first_of
from ._base import Policy, rule


@dataclass(frozen=True)
class SequentialMinMax(Policy):
    r"""Serve the user of lowest weighted dominant share *after* its first waiting task, on the first server with room.

    .. math:: \arg\min_n\ \max_r \frac{\text{allocated}_{nr} + d_{nr}}{C_r \phi_n}

    Source: Parkes, Procaccia, Shah, "Beyond Dominant Resource Fairness", EC 2012, section 5: envy-free up to one
    bundle, Pareto optimal, sharing incentive on one pool.
    """

    name = "sequential-min-max"
    title = "SequentialMinMax"
    source = "EC 2012, 5"

    @rule
    def share(state: Any, queue: int) -> float:
        share, group = 0.0, first_of(state, queue)
        for j in range(len(state.total)):
            after = state.allocated[queue, j] + (state.cost[group, j] if group >= 0 else 0)
            share = max(share, after / (state.total[j] * state.weight[queue]))
        return share
