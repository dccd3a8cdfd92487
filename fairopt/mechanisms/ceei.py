"""Competitive Equilibrium from Equal Incomes, which is the Nash bargaining solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim


@dataclass(frozen=True)
class CEEI(Mechanism):
    """Every user spends an equal (weighted) income at market prices; equivalently

        maximise  sum_n phi_n log x_n.

    The share per task cancels. Prices clear: a resource with a positive price is used up.

    Parameters
    ----------
    scope : "pool" (as in the DRF paper) or "servers"

    Properties: sharing incentive, envy-freeness, Pareto, bottleneck fairness of the pool. Not strategy-proof (DRF
    theorem 4), not population monotone (theorem 5).

    Source: Varian 1974; Ghodsi et al., NSDI 2011, section 5.2; as a convex program Eisenberg and Gale 1959.
    """

    name = "ceei"
    title = "CEEI"
    source = "Varian 1974; NSDI 2011, 5.2"
    claims = (
        *claim("sharing-incentive", "envy-freeness", "pareto-optimality", source="Varian 1974; docs/proofs.md, H"),
        *claim("bottleneck-fairness", conditions=("one server",), source="NSDI 2011, table 2; docs/proofs.md, J"),
        *claim("single-resource-fairness", source="docs/proofs.md, J"),
        *claim("strategy-proofness-counts", source="docs/proofs.md, L"),
        *claim("strategy-proofness", "population-monotonicity", "resource-monotonicity", holds=False),
        *claim("single-server-drf", holds=False),
    )

    scope: Literal["pool", "servers"] = "pool"

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls("servers"),)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.dominant_share_per_task, 1.0, self.scope, share_rule="dominant")
