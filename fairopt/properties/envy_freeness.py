"""Envy-freeness."""

from __future__ import annotations

import numpy as np

from ._base import Case, Dues, Numbers, Property, capped, tasks_per_task


class EnvyFreeness(Property):
    """Nobody could run more tasks with what another has, in proportion to their weights.

        x_n >= min(q_n, max_m phi_n/phi_m sum_{i: e[n,i]} x[m,i] min_{r: d[n,r] > 0} d[m,r]/d[n,r])

    Weights scale what others have: `phi_n/phi_m` of it. Only what m has on servers where n may run counts, task by
    task, so that it depends on how tasks are split over servers; splits are those that the mechanism returns. A bundle
    that lacks a resource that n demands is worth nothing to n; resources that n does not demand play no role. Who has
    all its tasks envies nobody.

    Source: Ghodsi et al., NSDI 2011; with weights and placement PF, section 4.
    """

    name = "envy-freeness"
    definition = "x_n >= min(q_n, tasks of n with phi_n/phi_m of what m has where n may run), for every m"
    words = "{user} has {has} tasks; with what another user has it would run {due}"
    needs_all = True

    def parts(self, case: Case) -> Numbers:
        """What others have counts by these parts, (users, others): `phi_n/phi_m`."""
        weight = case.numbers(case.cluster.weight)
        return np.asarray(weight[:, None] / weight)

    def dues(self, case: Case) -> Dues:
        cluster = case.cluster
        demand = case.numbers(cluster.demand)
        within = case.numbers(cluster.eligible.astype(float)) @ case.tasks.T  # (users, others)
        of_others = tasks_per_task(demand, demand) * within * self.parts(case)
        np.fill_diagonal(of_others, 0)
        return case.user_tasks, capped(of_others.max(axis=1), cluster, case)
