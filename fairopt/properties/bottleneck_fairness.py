"""Bottleneck fairness over the pool."""

from __future__ import annotations

import numpy as np

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Numbers, Property
from ._reference import reference


class BottleneckFairness(Property):
    """If one resource is dominant for everybody, the allocation is max-min fair on it.

        r in argmax_r d[n,r]/C_r for all n  =>  x is lexicographic max-min of x_n d[n,r] / phi_n

    Dominant in all servers together: the property is about pooled amounts, also where there are several servers. Levels
    are weighted. Only users who can run something count for whether there is such a resource, and with zeros and ties
    there may be several: then max-min on one is max-min on all. Placement constraints and task counts bind max-min as
    well.

    Source: Ghodsi et al., NSDI 2011. That max-min is DRFH, since shares of r are then the dominant ones.
    """

    name = "bottleneck-fairness"
    definition = "if one resource is dominant for everybody, x is max-min on it"

    def domain(self, cluster: Cluster) -> str:
        share = cluster.share_per_task[cluster.runnable]
        dominant = (share == share.max(axis=1, keepdims=True)).all(axis=0)
        if not len(share):
            return "nobody can run"
        return "" if dominant.any() else "no resource is dominant for everybody"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, reference(get("drfh"), case.cluster, case)

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; max-min of the bottleneck gives it {due}"


def shared_bottleneck(cluster: Cluster) -> int | None:
    """A resource rho with `d[n,rho]/c[i,rho] >= d[n,r]/c[i,r]` for all r and usable pairs; None if there is none."""
    full = cluster.normalised_demand  # 1 for a resource that binds n alone on i
    binds = (full >= 1 - 1e-12) | ~cluster.usable[:, :, None]
    return int(np.argmax(binds.all(axis=(0, 1)))) if binds.all(axis=(0, 1)).any() else None
