"""Properties that name the allocation: max-min where there is one bottleneck, one resource or one server."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Dues, Property
from ._tasks import reference


class _MaxMin(Property):
    """A property that names the mechanism whose tasks are due."""

    rule: ClassVar[str]
    words = "{user} has {has} tasks; constrained max-min gives it {due}"

    def dues(self, case: Case) -> Dues:
        return case.user_tasks, reference(get(self.rule), case.cluster, case)


class BottleneckFairness(_MaxMin):
    """Bottleneck fairness: if one resource is dominant for all users, the allocation is max-min fair on it.

        r in argmax_r d[n,r]/C_r for all n  =>  x is lexicographic max-min of x_n d[n,r] / phi_n

    Dominant in all servers together: the property is about pooled amounts, also where there are several servers. Levels
    are weighted. Only users who can run something count for whether there is such a resource, and with zeros and ties
    there may be several: then max-min on one is max-min on all. Placement constraints and task counts bind max-min as
    well.

    Source: Ghodsi et al., NSDI 2011. That max-min is DRFH, since shares of r are then the dominant ones.
    """

    name = "bottleneck-fairness"
    rule = "drfh"
    words = "{user} has {has} tasks; max-min of the bottleneck gives it {due}"
    definition = "if one resource is dominant for everybody, x is max-min on it"

    def domain(self, cluster: Cluster) -> str:
        share = cluster.share_per_task[cluster.runnable]
        dominant = (share == share.max(axis=1, keepdims=True)).all(axis=0)
        if not len(share):
            return "nobody can run"
        return "" if dominant.any() else "no resource is dominant for everybody"


def shared_bottleneck(cluster: Cluster) -> int | None:
    """A resource rho with `d[n,rho]/c[i,rho] >= d[n,r]/c[i,r]` for all r and usable pairs; None if there is none."""
    full = cluster.normalised_demand  # 1 for a resource that binds n alone on i
    binds = (full >= 1 - 1e-12) | ~cluster.usable[:, :, None]
    return int(np.argmax(binds.all(axis=(0, 1)))) if binds.all(axis=(0, 1)).any() else None


class PerServerBottleneckFairness(_MaxMin):
    """Bottleneck fairness per server: if one resource binds all users there, it is shared by constrained max-min.

        d[n,rho]/c[i,rho] >= d[n,r]/c[i,r] for all i, r and usable n  =>  x is max-min of x_n d[n,rho] / phi_n

    Levels are weighted. Only pairs (n, i) where n may run and the server has all that n demands count for whether there
    is such a resource. Users who demand none of it can run nowhere, unless they demand nothing else either. Placement
    constraints and task counts bind constrained max-min as well.

    Source: PF, definition 2.
    """

    name = "per-server-bottleneck-fairness"
    rule = "cmmf"
    words = "{user} has {has} tasks; constrained max-min of the bottleneck gives it {due}"
    definition = "if one resource binds everybody on every server, x is constrained max-min on it"

    def domain(self, cluster: Cluster) -> str:
        if not cluster.usable.any():
            return "nobody can run"
        return "" if shared_bottleneck(cluster) is not None else "no resource binds everybody on every server"

    def dues(self, case: Case) -> Dues:
        resource = shared_bottleneck(case.cluster)
        usable = case.cluster.usable
        needs = case.cluster.demand[:, 0 if resource is None else resource] > 0
        alone = case.cluster.replace(eligible=usable).select(
            users=[user for user, need in zip(case.cluster.users, needs, strict=True) if need],
            resources=[case.cluster.resources[resource or 0]],
        )
        due = case.user_tasks.copy()  # who needs none of it can run nowhere
        due[needs] = reference(get(self.rule), alone, case)
        return case.user_tasks, due


class SingleResourceFairness(_MaxMin):
    """Single-resource fairness: with one resource the allocation is constrained max-min.

        M = 1  =>  x is lexicographic max-min of x_n d[n] / phi_n

    Levels are weighted; placement constraints and task counts bind constrained max-min as well. With one resource
    nobody demands zero of it.

    Source: Ghodsi et al., NSDI 2011; with placement constraints Choosy (CMMF).
    """

    name = "single-resource-fairness"
    rule = "cmmf"
    definition = "with one resource, x is constrained max-min"
    resources = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.resources) == 1 else f"there are {len(cluster.resources)} resources, not one"


class SingleServerDRF(_MaxMin):
    """Single-server fairness: with one server the allocation is that of DRF.

        K = 1  =>  x is lexicographic max-min of x_n max_r d[n,r] / (C_r phi_n)

    Levels are weighted; task counts bind DRF as well. A user who may not run on the server, or demands what it lacks,
    has nothing in either, and the others are compared.

    Source: Wang, Li, Liang, INFOCOM 2014 (DRFH).
    """

    name = "single-server-drf"
    rule = "drf"
    words = "{user} has {has} tasks; DRF gives it {due}"
    definition = "with one server, x is that of DRF"
    servers = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.servers) == 1 else f"there are {len(cluster.servers)} servers, not one"
