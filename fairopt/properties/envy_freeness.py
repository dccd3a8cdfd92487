"""Envy-freeness."""

from __future__ import annotations

import numpy as np

from ._base import Case, Dues, Numbers, Property, capped, tasks_per_task


class EnvyFreeness(Property):
    r"""No user could run more tasks with the resources of another, scaled by the ratio of weights.

    .. math:: x_n \ge \min\Big(q_n, \max_m \frac{\phi_n}{\phi_m} \sum_{i : e_{ni}} x_{mi}
        \min_{r : d_{nr} > 0} \frac{d_{mr}}{d_{nr}}\Big)

    Only the tasks of m on servers that are eligible to n count, one by one, so that the property depends on the split
    of tasks over servers, which is that of the mechanism. A bundle without a resource that n demands has no value to n;
    resources that n does not demand are ignored. A user at its task limit envies no other.

    Source: Ghodsi et al., NSDI 2011; with weights and placement PF, section 4.
    """

    name = "envy-freeness"
    definition = "no user could run more tasks with the bundle of another, scaled by their weights"
    words = "{user} has {has} tasks; with what another user has it would run {due}"
    needs_all = True

    def parts(self, case: Case) -> Numbers:
        r"""Factors of the tasks of others, :math:`\phi_n / \phi_m`, (users, others)."""
        weight = case.numbers(case.cluster.weight)
        return np.asarray(weight[:, None] / weight)

    def dues(self, case: Case) -> Dues:
        cluster = case.cluster
        demand = case.numbers(cluster.demand)
        within = case.numbers(cluster.eligible.astype(float)) @ case.tasks.T  # (users, others)
        of_others = tasks_per_task(demand, demand) * within * self.parts(case)
        np.fill_diagonal(of_others, 0)
        return case.user_tasks, capped(of_others.max(axis=1), cluster, case)
