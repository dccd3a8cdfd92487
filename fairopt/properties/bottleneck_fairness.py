"""Properties that determine the allocation: max-min with one bottleneck, one resource or one server."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Dues, Property
from ._tasks import reference


class _MaxMin(Property):
    """Base of properties that require the tasks of the mechanism `rule`."""

    rule: ClassVar[str]
    words = "{user} has {has} tasks; constrained max-min gives it {due}"

    def dues(self, case: Case) -> Dues:
        return case.user_tasks, reference(get(self.rule), case.cluster, case)


class BottleneckFairness(_MaxMin):
    r"""Bottleneck fairness: if one resource is dominant for all users, the allocation is max-min fair on it.

    .. math:: \rho \in \arg\max_r \frac{d_{nr}}{C_r} \ \text{ for all n} \quad \Rightarrow \quad
        x \text{ is the lexicographic max-min of } \frac{x_n d_{n\rho}}{\phi_n}

    Dominance refers to the total capacities :math:`C_r` of all servers. Only users that can run tasks count for the
    existence of the resource :math:`\rho`; if there are several such resources, because of zeros or ties, max-min on
    one is max-min on all. Placement constraints and task limits apply to max-min as well. Max-min on the resource is
    DRFH, since shares of the resource are then dominant shares.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490).
    """

    name = "bottleneck-fairness"
    rule = "drfh"
    words = "{user} has {has} tasks; max-min of the bottleneck gives it {due}"
    definition = "if one resource is dominant for all users, it is allocated by max-min"

    def domain(self, cluster: Cluster) -> str:
        share = cluster.share_per_task[cluster.runnable]
        dominant = (share == share.max(axis=1, keepdims=True)).all(axis=0)
        if not len(share):
            return "no user can run a task"
        return "" if dominant.any() else "no resource is dominant for all users"


def shared_bottleneck(cluster: Cluster) -> int | None:
    r"""Index of a resource with :math:`d_{n\rho} / c_{i\rho} \ge d_{nr} / c_{ir}` for all usable pairs, or None."""
    full = cluster.normalised_demand  # 1 for the resource that determines gamma[n,i]
    binds = (full >= 1 - 1e-12) | ~cluster.usable[:, :, None]
    return int(np.argmax(binds.all(axis=(0, 1)))) if binds.all(axis=(0, 1)).any() else None


class PerServerBottleneckFairness(_MaxMin):
    r"""Bottleneck fairness per server: if one resource limits all users on all servers, it is allocated by max-min.

    .. math:: \frac{d_{n\rho}}{c_{i\rho}} \ge \frac{d_{nr}}{c_{ir}} \ \text{ for all r and usable (n, i)}
        \quad \Rightarrow \quad x \text{ is the lexicographic max-min of } \frac{x_n d_{n\rho}}{\phi_n}

    Only usable (user, server) pairs count for the existence of the resource :math:`\rho`. Users without demand for it
    cannot run tasks on any server. Placement constraints and task limits apply to max-min as well (constrained
    max-min).

    Source: Khamse-Ashari et al., TPDS 2018, definition 2 (arXiv:1712.10114).
    """

    name = "per-server-bottleneck-fairness"
    rule = "cmmf"
    words = "{user} has {has} tasks; constrained max-min of the bottleneck gives it {due}"
    definition = "if one resource binds all users on every server, it is allocated by constrained max-min"

    def domain(self, cluster: Cluster) -> str:
        if not cluster.usable.any():
            return "no user can run a task"
        return "" if shared_bottleneck(cluster) is not None else "no resource binds all users on every server"

    def dues(self, case: Case) -> Dues:
        resource = shared_bottleneck(case.cluster)
        usable = case.cluster.usable
        needs = case.cluster.demand[:, 0 if resource is None else resource] > 0
        alone = case.cluster.replace(eligible=usable).select(
            users=[user for user, need in zip(case.cluster.users, needs, strict=True) if need],
            resources=[case.cluster.resources[resource or 0]],
        )
        due = case.user_tasks.copy()  # users without demand for the resource cannot run tasks
        due[needs] = reference(get(self.rule), alone, case)
        return case.user_tasks, due


class SingleResourceFairness(_MaxMin):
    r"""Single-resource fairness: with one resource the allocation is constrained max-min.

    .. math:: R = 1 \quad \Rightarrow \quad x \text{ is the lexicographic max-min of } \frac{x_n d_n}{\phi_n}

    with R resources. Placement constraints and task limits apply to max-min as well. With one resource all demands are
    positive.

    Source: Ghodsi et al., NSDI 2011 (doi:10.5555/1972457.1972490); with placement constraints Ghodsi et al., EuroSys
    2013 (Choosy; doi:10.1145/2465351.2465387).
    """

    name = "single-resource-fairness"
    rule = "cmmf"
    definition = "with one resource the allocation is constrained max-min"
    resources = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.resources) == 1 else f"there are {len(cluster.resources)} resources, not one"


class SingleServerDRF(_MaxMin):
    r"""Single-server fairness: with one server the allocation is that of DRF.

    .. math:: K = 1 \quad \Rightarrow \quad x \text{ is the lexicographic max-min of }
        \frac{x_n}{\phi_n} \max_r \frac{d_{nr}}{C_r}

    with K servers. Task limits apply to DRF as well. Users that cannot run tasks on the server have no tasks in either
    allocation.

    Source: Wang, Li, Liang, INFOCOM 2014 (DRFH; arXiv:1308.0083).
    """

    name = "single-server-drf"
    rule = "drf"
    words = "{user} has {has} tasks; DRF gives it {due}"
    definition = "with one server the allocation is that of DRF"
    servers = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.servers) == 1 else f"there are {len(cluster.servers)} servers, not one"
