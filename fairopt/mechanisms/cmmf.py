"""Constrained max-min fairness: one resource, placement constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim


@dataclass(frozen=True)
class CMMF(Mechanism):
    """Lexicographic max-min of machines (of one resource) under placement constraints.

        lex max min_n  x_n d[n] / (C phi_n)

    Properties: those of max-min on one resource: envy-freeness, Pareto, strategy-proofness in demand and placement.

    Source: Ghodsi, Zaharia, Shenker, Stoica, "Choosy", EuroSys 2013.
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

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.share_per_task[:, 0], np.inf, "servers", share_rule="asset")
