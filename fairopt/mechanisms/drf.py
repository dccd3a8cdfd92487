"""Dominant Resource Fairness on one pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.errors import DataError
from ..model import _intake
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class DRF(Mechanism):
    r"""Lexicographic max-min of (weighted) dominant shares on the pool.

    .. math:: \operatorname{lex\,max\,min}_n\ \sigma_n / \phi_n, \quad
        \sigma_n = x_n \max_r \frac{d_{nr}}{C_r \phi_{nr}}

    Parameters
    ----------
    resource_weights : (users, resources), optional
        :math:`\phi_{nr} > 0`, a weight per user and resource. Default: 1. They act in addition to the cluster's weights
        :math:`\phi_n`, and have the same effect if they are equal for all resources.

    Raises
    ------
    DataError
        Resource weights are not positive, or not of shape (users, resources).

    Properties: sharing incentive, envy-freeness, Pareto, strategy-proofness (also of groups, in the weak sense),
    bottleneck fairness; population monotonicity for positive demands. With zero demands a user may lose tasks when
    another user leaves, and a misreport may benefit other users at no loss to the reporting user. Not resource
    monotonicity, which no mechanism with sharing incentive and Pareto has (theorem 6 of the source).

    Source: Ghodsi et al., NSDI 2011, sections 4.1 and 4.3 (doi:10.5555/1972457.1972490); zero demands as in Parkes,
    Procaccia, Shah, EC 2012 (doi:10.1145/2229012.2229075).

    >>> import fairopt as fo
    >>> fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [3.0, 2.0]
    """

    name = "drf"
    title = "DRF"
    source = "Ghodsi et al., NSDI 2011"
    scope = "pool"
    properties = "one pool"
    claims = (
        *claim(
            "sharing-incentive",
            "strong-sharing-incentive",
            "envy-freeness",
            "pareto-optimality",
            "bottleneck-fairness",
            "single-resource-fairness",
            source="NSDI 2011; docs/proofs.md, G",
        ),
        *claim("single-server-drf", "per-server-bottleneck-fairness", source="its definition; docs/proofs.md, J"),
        *claim(
            "strategy-proofness",
            "strategy-proofness-placement",
            "strategy-proofness-counts",
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
        *claim("population-monotonicity", conditions=("positive demands",), source="NSDI 2011; docs/proofs.md, I"),
        *claim("population-monotonicity", "resource-monotonicity", "strong-group-strategy-proofness", holds=False),
    )

    resource_weights: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.resource_weights is not None:
            rows = _intake.matrix(self.resource_weights, "resource_weights", "user", "resource").tolist()
            object.__setattr__(self, "resource_weights", tuple(map(tuple, rows)))

    def program(self, p: Program) -> Statement:
        share = p.dominant_share if self.resource_weights is None else p.share(self.weighted_share(p.cluster))
        return lexmaxmin(share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        if self.resource_weights is None:
            return criterion(cluster, cluster.dominant_share_per_task, np.inf, "pool", share_rule="dominant")
        return criterion(cluster, self.weighted_share(cluster), np.inf, "pool")

    def weighted_share(self, cluster: Cluster) -> Array:
        r"""Weighted dominant share per task, :math:`\max_r d_{nr} / (C_r \phi_{nr})`, (users,).

        Raises `DataError` if resource weights are not positive, or not of shape (users, resources).
        """
        weights = np.array(self.resource_weights)
        if weights.shape != cluster.demand.shape or not (np.isfinite(weights) & (weights > 0)).all():
            raise DataError(
                f"resource_weights must be numbers > 0 of shape (users, resources) = {cluster.demand.shape}, all finite"
            )
        return np.asarray((cluster.share_per_task / weights).max(axis=1))
