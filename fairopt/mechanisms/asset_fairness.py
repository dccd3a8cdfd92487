"""Asset fairness: equal total shares of all resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim


@dataclass(frozen=True)
class AssetFairness(Mechanism):
    """Lexicographic max-min of what users hold, all resources added up as shares of the whole.

        lex max min_n  sigma_n / phi_n,    sigma_n = x_n sum_r d[n,r] / C_r

    Parameters
    ----------
    scope : "pool" (as in the paper) or "servers"

    Properties: envy-freeness, Pareto, strategy-proofness. Not sharing incentive, bottleneck fairness or resource
    monotonicity (DRF theorems 1, 2, 3).

    Source: Ghodsi et al., NSDI 2011, section 5.1.
    """

    name = "asset-fairness"
    title = "asset fairness"
    source = "Ghodsi et al., NSDI 2011, 5.1"
    claims = (
        *claim("envy-freeness", "pareto-optimality", source="NSDI 2011; docs/proofs.md, G"),
        *claim(
            "strategy-proofness",
            "strategy-proofness-placement",
            "strategy-proofness-counts",
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
        *claim("single-resource-fairness", source="docs/proofs.md, J"),
        *claim("population-monotonicity", conditions=("positive demands",), source="docs/proofs.md, I"),
        *claim("sharing-incentive", "bottleneck-fairness", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", holds=False),
    )

    scope: Literal["pool", "servers"] = "pool"

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls("servers"),)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.share_per_task.sum(axis=1), np.inf, self.scope, share_rule="asset")
