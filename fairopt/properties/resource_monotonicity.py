"""Resource monotonicity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..model.cluster import Cluster
from ._base import Case, Deviation, Numbers, Property


class ResourceMonotonicity(Property):
    """Nobody loses tasks when a server has more of a resource.

        x_n(c') >= x_n(c) for c' >= c

    One capacity grows, or several, in place; servers are not added. Everything else stays. With zeros a capacity may
    grow from nothing, which lets users run who could not.

    Source: Ghodsi et al., NSDI 2011.
    """

    name = "resource-monotonicity"
    definition = "when a capacity grows nobody has fewer tasks"
    compares = True

    def deviations(self, cluster: Cluster, rng: np.random.Generator) -> Iterator[Deviation]:
        while True:
            capacity = np.array(cluster.capacity)
            i, r = (int(rng.integers(size)) for size in capacity.shape)
            capacity[i, r] = rng.choice([capacity[i, r] + 1, 2 * capacity[i, r] + 1, 4 * capacity[i, r] + 2])
            yield Deviation(cluster.derived(capacity=capacity))

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        grown = deviation.cluster
        same = grown.shape == cluster.shape and grown.derived(capacity=cluster.capacity) == cluster
        return not deviation.users and same and bool((grown.capacity >= cluster.capacity).all())

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return np.asarray(case.changed[1].sum(axis=1)), case.user_tasks

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {due} tasks, and {has} with more capacity"
