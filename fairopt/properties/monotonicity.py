"""Population monotonicity and resource monotonicity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from ..model.cluster import Cluster
from ._base import Case, Deviation, Dues, Property


class PopulationMonotonicity(Property):
    r"""No user loses tasks when another user leaves.

    .. math:: x_n(\text{without } m) \ge x_n(\text{with } m) \quad \text{for all } n \ne m

    The weights, placement constraints and task limits of the remaining users are unchanged. The leaving user may have
    had no tasks, or may have demanded resources that no other user demands.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490).
    """

    name = "population-monotonicity"
    definition = "when a user leaves, no other has fewer tasks"
    words = "{user} has {due} tasks, and {has} after the other user left"
    compares = True
    in_work = True

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.users) > 1 else "there is one user"

    def deviations(self, cluster: Cluster, rng: Generator) -> Iterator[Deviation]:
        order = rng.permutation(len(cluster.users)).tolist() if len(cluster.users) > 1 else []
        return (Deviation(cluster.drop_user(cluster.users[n]), (cluster.users[n],)) for n in order)

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        left = deviation.users
        return len(left) == 1 and left[0] in cluster.users and deviation.cluster == cluster.drop_user(left[0])

    def dues(self, case: Case) -> Dues:
        deviation = case.changed[0]
        stays = ~np.isin(case.cluster.users, deviation.users)
        has = case.work.copy()
        has[stays] = case.changed_work
        return has, np.where(stays, case.work, 0 * has)


class ResourceMonotonicity(Property):
    r"""No user loses tasks when capacities increase.

    .. math:: x_n(c') \ge x_n(c) \quad \text{for } c' \ge c

    One or several capacities of existing servers increase; all other data are unchanged. A capacity may increase from
    zero, so that further users can run tasks.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490).
    """

    name = "resource-monotonicity"
    definition = "when a capacity grows, no user has fewer tasks"
    words = "{user} has {due} tasks, and {has} with more capacity"
    compares = True
    in_work = True

    def deviations(self, cluster: Cluster, rng: Generator) -> Iterator[Deviation]:
        while True:
            capacity = np.array(cluster.capacity)
            i, r = (int(rng.integers(size)) for size in capacity.shape)
            capacity[i, r] = rng.choice([capacity[i, r] + 1, 2 * capacity[i, r] + 1, 4 * capacity[i, r] + 2])
            yield Deviation(cluster.derived(capacity=capacity))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        grown = deviation.cluster
        same = grown.shape == cluster.shape and grown.derived(capacity=cluster.capacity) == cluster
        return not deviation.users and same and bool((grown.capacity >= cluster.capacity).all())

    def dues(self, case: Case) -> Dues:
        return case.changed_work, case.work
