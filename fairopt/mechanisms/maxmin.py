"""Max-min fairness of one divisible resource: water filling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim


@dataclass(frozen=True)
class MaxMin(Mechanism):
    """Nobody gets more than it demands, and what is left over is divided equally (by weight).

        lex max min_n  a_n / phi_n,    a_n = d[n] x_n <= d[n] q_n,    sum_n a_n <= C

    The demand of a user is its task limit: `Cluster([[15]], [[1]] * 4, max_tasks=[2, 3, 6, 7])` divides 15 among
    demands of 2, 3, 6 and 7.

    Properties: all of them, for one resource.

    Source: Bertsekas and Gallager, "Data Networks", 6.5.2; LEC "Water Filling".
    """

    name = "maxmin"
    title = "max-min"
    source = "Bertsekas, Gallager 1992"
    scope = "pool"
    properties = "one resource, one pool"
    claims = (
        *claim(
            "sharing-incentive",
            "strong-sharing-incentive",
            "envy-freeness",
            "pareto-optimality",
            source="Bertsekas, Gallager 1992; docs/proofs.md, G",
        ),
        *claim("bottleneck-fairness", "per-server-bottleneck-fairness", source="its definition; docs/proofs.md, J"),
        *claim("single-resource-fairness", "single-server-drf", source="its definition; docs/proofs.md, J"),
        *claim("population-monotonicity", "resource-monotonicity", source="water filling; docs/proofs.md, I"),
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
                f"max-min is for one resource, this cluster has {len(cluster.resources)}; use DRF for several, or "
                f"choose one with cluster.select(resources=[{cluster.resources[0]!r}])"
            )

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.demand[:, 0], np.inf, "pool", share_rule="demand")
