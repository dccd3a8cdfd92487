"""Dynamic envy-freeness, of queues with levels."""

from __future__ import annotations

import numpy as np

from ..mechanisms import Mechanism
from ._base import Case, Numbers, Property
from ._bundles import capped, tasks_per_task
from .dynamic_sharing_incentive import DynamicSharingIncentive, queue


class DynamicEnvyFreeness(Property):
    """Nobody could run more tasks with what another user of its level has.

        x_n >= min(q_n, max_{m in the level of n} sum_i x[m,i] min_{r: d[n,r] > 0} d[m,r]/d[n,r])

    A bundle that lacks a resource that n demands is worth nothing to n. The pool has no placement constraints. Who has
    all its tasks envies nobody; users of other levels are envied by right.

    Source: Liu, Liu (MQDRF). Weights play no part.
    """

    name = "dynamic-envy-freeness"
    definition = "x_n >= min(q_n, tasks of n with what m has), for every m of its level in MQDRF"
    needs_all = True

    def unfit(self, mechanism: Mechanism | None) -> str:
        return DynamicSharingIncentive().unfit(mechanism)

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        cluster, levels = case.cluster, queue(case)[0]
        demand = case.numbers(cluster.demand)
        within = case.numbers(cluster.eligible.astype(float)) @ case.tasks.T  # (users, others)
        value = tasks_per_task(demand, demand) * within
        value[levels[:, None] != levels] = 0
        np.fill_diagonal(value, 0)
        return case.user_tasks, capped(value.max(axis=1), cluster, case)

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; with what another user of its level has it would run {due}"
