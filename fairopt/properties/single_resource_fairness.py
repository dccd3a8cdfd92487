"""Single-resource fairness."""

from __future__ import annotations

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Numbers, Property
from ._reference import reference


class SingleResourceFairness(Property):
    """With one resource the allocation is constrained max-min.

        M = 1  =>  x is lexicographic max-min of x_n d[n] / phi_n

    Levels are weighted; placement constraints and task counts bind constrained max-min as well. With one resource
    nobody demands zero of it.

    Source: Ghodsi et al., NSDI 2011; with placement constraints Choosy (CMMF).
    """

    name = "single-resource-fairness"
    definition = "with one resource, x is constrained max-min"
    resources = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.resources) == 1 else f"there are {len(cluster.resources)} resources, not one"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, reference(get("cmmf"), case.cluster, case)

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; constrained max-min gives it {due}"
