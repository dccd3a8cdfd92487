"""Envy-freeness."""

from __future__ import annotations

import numpy as np

from ._base import Case, Dues, Numbers, Property, capped, most_work_of, tasks_per_task


class EnvyFreeness(Property):
    r"""No user could run more tasks with the resources of another user, scaled by the ratio of weights.

    .. math:: x_n \ge \min\Big(q_n, \max_m \frac{\phi_n}{\phi_m} \sum_{i : e_{ni}} x_{mi}
        \min_{r : d_{nr} > 0} \frac{d_{mr}}{d_{nr}}\Big)

    where :math:`e_{ni}` states whether server i is eligible for user n. Only the tasks of m on eligible servers of n
    count, each server separately, so that the property depends on the split of tasks over servers, which the mechanism
    determines. A bundle without a resource that n demands has no value to n; resources that n does not demand are
    ignored. A user at its task limit envies no other user. With rates work replaces tasks, and n uses the bundle of
    another user as well as possible within :math:`q_n`.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490); with weights and placement Khamse-Ashari et al.,
    TPDS 2018, section 4 (arXiv:1712.10114).
    """

    name = "envy-freeness"
    definition = "no user could run more tasks with the bundle of another, scaled by their weights"
    words = "{user} has {has} tasks; with what another user has it would run {due}"
    needs_all = True
    in_work = True

    def parts(self, case: Case) -> Numbers:
        r"""Factors :math:`\phi_n / \phi_m` by which user n scales the tasks of user m, (users, others)."""
        weight = case.numbers(case.cluster.weight)
        return np.asarray(weight[:, None] / weight)

    def dues(self, case: Case) -> Dues:
        demand = case.numbers(case.cluster.demand)
        factor = tasks_per_task(demand, demand) * self.parts(case)
        np.fill_diagonal(factor, 0)
        if not case.cluster.rated:
            within = case.numbers(case.cluster.eligible.astype(float)) @ case.tasks.T  # (users, others)
            return case.work, capped((factor * within).max(axis=1), case.cluster, case)
        of_others = [most_work_of(n, row[:, None] * case.tasks, case).max() for n, row in enumerate(factor)]
        return case.work, np.array(of_others)
