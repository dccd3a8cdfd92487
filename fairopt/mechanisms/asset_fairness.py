"""Asset fairness: equal total shares of all resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class AssetFairness(Mechanism):
    r"""Lexicographic max-min of asset shares, the sums of a user's shares of all resources.

    .. math:: \operatorname{lex\,max\,min}_n\ \sigma_n / \phi_n, \quad \sigma_n = x_n \sum_r d_{nr} / C_r

    Parameters
    ----------
    scope : str
        "pool" (as in the paper) or "servers".

    Properties: envy-freeness, Pareto, strategy-proofness. Not sharing incentive, bottleneck fairness or resource
    monotonicity (theorems 1, 2 and 3 of the source).

    Source: Ghodsi et al., NSDI 2011, section 5.1 (doi:10.5555/1972457.1972490).

    >>> import fairopt as fo
    >>> fo.AssetFairness().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(2).tolist()
    [2.52, 2.16]
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
        *claim("population-monotonicity", "resource-monotonicity", "strong-group-strategy-proofness", holds=False),
    )

    scope: Literal["pool", "servers"] = "pool"

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls("servers"),)

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.asset_share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.share_per_task.sum(axis=1), np.inf, self.scope, share_rule="asset")
