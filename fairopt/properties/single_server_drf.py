"""DRF on a single server."""

from __future__ import annotations

from ..mechanisms import get
from ..model.cluster import Cluster
from ._base import Case, Numbers, Property
from ._reference import reference


class SingleServerDRF(Property):
    """With one server the allocation is that of DRF.

        K = 1  =>  x is lexicographic max-min of x_n max_r d[n,r] / (C_r phi_n)

    Levels are weighted; task counts bind DRF as well. A user who may not run on the server, or demands what it lacks,
    has nothing in either, and the others are compared.

    Source: Wang, Li, Liang, INFOCOM 2014 (DRFH).
    """

    name = "single-server-drf"
    definition = "with one server, x is that of DRF"
    servers = 1

    def domain(self, cluster: Cluster) -> str:
        return "" if len(cluster.servers) == 1 else f"there are {len(cluster.servers)} servers, not one"

    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        return case.user_tasks, reference(get("drf"), case.cluster, case)

    def words(self, user: str, has: str, due: str) -> str:
        return f"{user} has {has} tasks; DRF gives it {due}"
