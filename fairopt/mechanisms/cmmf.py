"""Constrained max-min fairness: one resource, placement constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.errors import DataError
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class CMMF(Mechanism):
    r"""Lexicographic max-min of shares of one resource, such as machines, under placement constraints.

    .. math:: \operatorname{lex\,max\,min}_n\ \sigma_n / \phi_n, \quad \sigma_n = x_n d_n / C

    with the total capacity C.

    Raises
    ------
    DataError
        The cluster has several resources.

    Properties: sharing incentive, envy-freeness, Pareto, strategy-proofness in demand and placement, population and
    resource monotonicity.

    Source: Ghodsi, Zaharia, Shenker, Stoica, "Choosy: max-min fair sharing for datacenter jobs with constraints",
    EuroSys 2013 (doi:10.1145/2465351.2465387).

    >>> import fairopt as fo
    >>> fo.CMMF().solve(fo.Cluster([[3], [1]], [[1], [1]], eligible=[[1, 0], [1, 1]])).user_tasks.tolist()
    [2.0, 2.0]
    """

    name = "cmmf"
    title = "CMMF"
    source = "Ghodsi et al., EuroSys 2013 (Choosy)"
    properties = "one resource"
    claims = (
        *claim("sharing-incentive", "envy-freeness", "pareto-optimality", source="EuroSys 2013; docs/proofs.md, G"),
        *claim("population-monotonicity", "resource-monotonicity", source="docs/proofs.md, K"),
        *claim("bottleneck-fairness", "per-server-bottleneck-fairness", source="its definition; docs/proofs.md, J"),
        *claim("single-resource-fairness", "single-server-drf", source="its definition; docs/proofs.md, J"),
        *claim(
            "strategy-proofness",
            "strategy-proofness-placement",
            "strategy-proofness-counts",
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
    )

    def check(self, cluster: Cluster) -> None:
        if len(cluster.resources) != 1:
            raise DataError(
                f"CMMF is for one resource, this cluster has {len(cluster.resources)}; "
                f"choose it with cluster.select(resources=[{cluster.resources[0]!r}])"
            )

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.dominant_share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.share_per_task[:, 0], np.inf, "servers", share_rule="asset")
