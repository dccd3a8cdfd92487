"""Bottleneck fairness on every server."""

from __future__ import annotations

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Numbers, Property
from ._reference import reference
from .bottleneck_fairness import shared_bottleneck


class PerServerBottleneckFairness(Property):
    """If one resource binds everybody on every server, the allocation is constrained max-min on it.

        d[n,rho]/c[i,rho] >= d[n,r]/c[i,r] for all i, r and usable n  =>  x is max-min of x_n d[n,rho] / phi_n

    Levels are weighted. Only pairs (n, i) where n may run and the server has all that n demands count for whether there
    is such a resource. Users who demand none of it can run nowhere, unless they demand nothing else either. Placement
    constraints and task counts bind constrained max-min as well.

    Source: PF, definition 2.
    """

    name = "per-server-bottleneck-fairness"
    definition = "if one resource binds everybody on every server, x is constrained max-min on it"

    def domain(self, cluster: Cluster) -> str:
        if not cluster.usable.any():
            return "nobody can run"
        return "" if shared_bottleneck(cluster) is not None else "no resource binds everybody on every server"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        resource = shared_bottleneck(case.cluster)
        usable = case.cluster.usable
        needs = case.cluster.demand[:, 0 if resource is None else resource] > 0
        alone = case.cluster.replace(eligible=usable).select(
            users=[user for user, need in zip(case.cluster.users, needs, strict=True) if need],
            resources=[case.cluster.resources[resource or 0]],
        )
        due = case.user_tasks.copy()  # who needs none of it can run nowhere
        due[needs] = reference(get("cmmf"), alone, case)
        return case.user_tasks, due

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; constrained max-min of the bottleneck gives it {due}"
