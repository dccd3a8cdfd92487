"""Dominant Resource Fairness with heterogeneous servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class DRFH(Mechanism):
    r"""Lexicographic max-min of global dominant shares over servers.

    .. math::
        \operatorname{lex\,max\,min}_n\ \sigma_n / \phi_n, \quad
        \sigma_n = x_n \max_r d_{nr} / C_r, \quad C_r = \sum_i c_{ir}

    The linear program printed in the paper equalises all shares once, which suffices only if every demand is positive
    and no user is excluded from a server. Here the lexicographic optimum is computed.

    Properties: envy-freeness, Pareto, strategy-proofness, bottleneck fairness on a globally dominant resource;
    population monotonicity for positive demands without placement constraints. Not sharing incentive: with capacities
    (6,1), (1,2) and demands (1,2), (1,1) user 1 has 2/3 tasks, but half of every server would run 3/4. Not bottleneck
    fairness per server (figure 1 of arXiv:1712.10114).

    Source: Wang, Li, Liang, INFOCOM 2014, section IV (arXiv:1308.0083).

    >>> import fairopt as fo
    >>> fo.DRFH().solve(fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])).user_tasks.round(3).tolist()
    [0.667, 1.333]
    """

    name = "drfh"
    title = "DRFH"
    source = "Wang, Li, Liang, INFOCOM 2014"
    claims = (
        *claim("envy-freeness", "pareto-optimality", source="INFOCOM 2014; docs/proofs.md, G"),
        *claim("bottleneck-fairness", source="INFOCOM 2014; docs/proofs.md, J"),
        *claim("single-server-drf", "single-resource-fairness", source="INFOCOM 2014; docs/proofs.md, J"),
        *claim(
            "strategy-proofness",
            "strategy-proofness-placement",
            "strategy-proofness-counts",
            "group-strategy-proofness",
            source="docs/proofs.md, B",
        ),
        *claim(
            "population-monotonicity",
            conditions=("positive demands", "no placement constraints"),
            source="INFOCOM 2014; docs/proofs.md, I",
        ),
        *claim("sharing-incentive", "strong-sharing-incentive", "per-server-bottleneck-fairness", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", "strong-group-strategy-proofness", holds=False),
    )

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.dominant_share / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.dominant_share_per_task, np.inf, "servers", share_rule="dominant")
