"""Sharing incentive, plain and strong."""

from __future__ import annotations

import numpy as np

from ._base import Case, Dues, Numbers, Property, capped, tasks_per_task


class SharingIncentive(Property):
    """Nobody has fewer tasks than with its part of every server to itself.

        x_n >= min(q_n, phi_n / sum_m phi_m * sum_i gamma[n,i])

    Weights set the part of every server. Where n may not run, or a server lacks what it demands, its part is worth
    nothing to it (`gamma[n,i] = 0`), and nobody makes up for that. Resources that n does not demand play no role. Who
    has all its tasks is satisfied.

    Source: Ghodsi et al., NSDI 2011; over servers PF, section 4.
    """

    name = "sharing-incentive"
    definition = "x_n >= min(q_n, phi_n / sum phi * sum_i gamma[n,i])"
    words = "{user} has {has} tasks; its part of every server would run {due}"

    def dues(self, case: Case) -> Dues:
        cluster = case.cluster
        weight = case.numbers(cluster.weight)
        alone = monopoly_tasks(case)
        return case.user_tasks, capped(weight / weight.sum() * alone, cluster, case)


def monopoly_tasks(case: Case) -> Numbers:
    """`sum_i gamma[n,i]`, (users,), in the arithmetic of the case."""
    cluster = case.cluster
    capacity, demand = case.numbers(cluster.capacity), case.numbers(cluster.demand)
    alone = tasks_per_task(demand, capacity)  # the bundle of a whole server
    return np.asarray((alone * case.numbers(cluster.eligible.astype(float))).sum(axis=1))


class StrongSharingIncentive(Property):
    """Nobody has fewer tasks than in a dedicated cloud with its part of every resource, on whichever servers.

        x_n >= min(q_n, sum_i gamma[n,i], phi_n / sum_m phi_m * min_{r: d[n,r] > 0} C_r / d[n,r])

    Where servers differ there are many divisions of capacities in which n has `phi_n / sum phi` of the total of every
    resource; this is the best of them for n.

    Weights set the part of every resource. Placement and lacking resources count through `sum_i gamma[n,i]`: nobody is
    due more than it could run alone. Resources that n does not demand play no role. Who has all its tasks is satisfied.

    Source: equal divisions of Wang, Li, Liang, INFOCOM 2014 (DRFH), IV-D; the definition is ours.
    """

    name = "strong-sharing-incentive"
    definition = "x_n >= min(q_n, sum_i gamma[n,i], phi_n / sum phi * min_r C_r / d[n,r])"
    words = "{user} has {has} tasks; a dedicated cloud with its part of every resource would run {due}"

    def dues(self, case: Case) -> Dues:
        weight = case.numbers(case.cluster.weight)
        dedicated = np.minimum(in_pool(case) * weight / weight.sum(), monopoly_tasks(case))
        return case.user_tasks, capped(dedicated, case.cluster, case)


def in_pool(case: Case) -> Numbers:
    """`min_{r: d[n,r] > 0} C_r / d[n,r]`, (users,): tasks that the totals of all resources would run."""
    pooled = case.numbers(case.cluster.capacity).sum(axis=0)
    return tasks_per_task(case.numbers(case.cluster.demand), pooled[None])[:, 0]
