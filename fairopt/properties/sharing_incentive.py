"""Sharing incentive, with several benchmarks: the best or the uniform use of parts of servers, or a dedicated cloud."""

from __future__ import annotations

import numpy as np

from ._base import Case, Dues, Numbers, Property, capped, most_work, tasks_per_task


class SharingIncentive(Property):
    r"""No user has fewer tasks than under a partition of every server by weight.

    .. math:: x_n \ge \min\Big(q_n, \frac{\phi_n}{\sum_m \phi_m} \sum_i \gamma_{ni}\Big)

    A server on which n is not eligible, or that lacks a resource that n demands, contributes nothing
    (:math:`\gamma_{ni} = 0`), without compensation. Resources that n does not demand are ignored. A user at its task
    limit is satisfied.

    With rates work replaces tasks, and the benchmark is the largest work that the user's part of the servers allows
    within :math:`q_n`.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490); over servers Khamse-Ashari et al., TPDS 2018,
    section 4 (arXiv:1712.10114).
    """

    name = "sharing-incentive"
    definition = "every user has at least the tasks that its part by weight of every server could run"
    words = "{user} has {has} tasks; its part of every server would run {due}"
    in_work = True

    def dues(self, case: Case) -> Dues:
        return case.work, most_work(parts(case), case)


class UniformSharingIncentive(Property):
    r"""No user does less work than with its part of every server, all used in the same proportion.

    .. math:: w_n \ge \min\Big(1, \frac{q_n}{\sum_i b_{ni}}\Big) \sum_i a_{ni} b_{ni}, \quad
        b_{ni} = \frac{\phi_n}{\sum_m \phi_m} \gamma_{ni}

    with work :math:`w_n` and rates :math:`a_{ni}`. If the part :math:`b_{ni}` allows more tasks than :math:`q_n`, all
    servers are used in proportion, including slow servers, whereas `sharing-incentive` uses the fastest servers. The
    two properties are the same without limits or rates.

    Source: Narayanan et al., OSDI 2020 (Gavel; arXiv:2008.09213), the equal allocation :math:`X^{equal}`.
    """

    name = "uniform-sharing-incentive"
    definition = "every user has at least the work of its part by weight of every server, slow ones used like fast ones"
    words = "{user} has {has} tasks; its part of every server, used uniformly, would run {due}"
    in_work = of_rates = True

    def dues(self, case: Case) -> Dues:
        part = parts(case)
        limits = case.numbers(case.cluster.max_tasks)
        used = [min(limit / own, 1) if own > 0 else 0 for limit, own in zip(limits, part.sum(axis=1), strict=True)]
        return case.work, (case.numbers(case.cluster.rate) * part).sum(axis=1) * np.array(used)


def parts(case: Case) -> Numbers:
    r"""Tasks of a user's part of each server, :math:`\gamma_{ni} \phi_n / \sum_m \phi_m`, (users, servers)."""
    weight = case.numbers(case.cluster.weight)
    return np.asarray((weight / weight.sum())[:, None] * monopoly_tasks(case))


def monopoly_tasks(case: Case) -> Numbers:
    r"""Monopoly tasks, :math:`\gamma_{ni}`, (users, servers), in the arithmetic of the case."""
    cluster = case.cluster
    capacity, demand = case.numbers(cluster.capacity), case.numbers(cluster.demand)
    alone = tasks_per_task(demand, capacity)  # tasks on whole servers
    return np.asarray(alone * case.numbers(cluster.eligible.astype(float)))


class StrongSharingIncentive(Property):
    r"""No user has fewer tasks than in a dedicated cloud with its part, by weight, of the total of every resource.

    .. math:: x_n \ge \min\Big(q_n, \sum_i \gamma_{ni},
        \frac{\phi_n}{\sum_m \phi_m} \min_{r : d_{nr} > 0} \frac{C_r}{d_{nr}}\Big)

    The bound is the largest number of tasks of n in any division of the capacities in which n has the fraction
    :math:`\phi_n / \sum_m \phi_m` of the total :math:`C_r` of every resource. Placement constraints and missing
    resources enter by :math:`\sum_i \gamma_{ni}`, the user's monopoly tasks. Resources that n does not demand are
    ignored. A user at its task limit is satisfied.

    Source: equal divisions of Wang, Li, Liang, INFOCOM 2014 (DRFH), IV-D (arXiv:1308.0083); defined here.
    """

    name = "strong-sharing-incentive"
    definition = "every user has at least the tasks of a dedicated cloud with its part by weight of every resource"
    words = "{user} has {has} tasks; a dedicated cloud with its part of every resource would run {due}"

    def dues(self, case: Case) -> Dues:
        weight = case.numbers(case.cluster.weight)
        dedicated = np.minimum(in_pool(case) * weight / weight.sum(), monopoly_tasks(case).sum(axis=1))
        return case.user_tasks, capped(dedicated, case.cluster, case)


def in_pool(case: Case) -> Numbers:
    r"""Tasks that each user could run alone on the pool, :math:`\min_{r : d_{nr} > 0} C_r / d_{nr}`, (users,)."""
    pooled = case.numbers(case.cluster.capacity).sum(axis=0)
    return tasks_per_task(case.numbers(case.cluster.demand), pooled[None])[:, 0]
