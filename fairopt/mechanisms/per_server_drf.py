"""The naive extension of DRF to several servers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..base.errors import DataError
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion, virtual_share_per_task
from ..model.merging import merge
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, lexmaxmin


@dataclass(frozen=True)
class PerServerDRF(Mechanism):
    r"""DRF applied to every server separately, without coordination.

    .. math:: \operatorname{lex\,max\,min}_n\ \frac{x_{ni}}{\gamma_{ni} \phi_n} \quad \text{for every server i}

    :math:`x_{ni} / \gamma_{ni}` is the dominant share of user n on server i.

    Raises
    ------
    DataError
        A task limit can bind, which servers cannot enforce without coordination.

    Properties: sharing incentive, envy-freeness, strategy-proofness. Not Pareto: in the example each user has 6 tasks,
    and could have 10.

    Source: Wang, Li, Liang, INFOCOM 2014, section III (arXiv:1308.0083).

    >>> import fairopt as fo
    >>> fo.PerServerDRF().solve(fo.Cluster([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])).user_tasks.round(3).tolist()
    [6.0, 6.0]
    """

    name = "per-server-drf"
    title = "per-server DRF"
    source = "INFOCOM 2014, III"
    claims = (
        *claim("sharing-incentive", "envy-freeness", source="NSDI 2011, on every server; docs/proofs.md, G"),
        *claim(
            *("strategy-proofness", "strategy-proofness-placement", "strategy-proofness-counts"),
            source="on every server; docs/proofs.md, B",
        ),
        *claim("population-monotonicity", conditions=("positive demands",), source="docs/proofs.md, I"),
        *claim("single-server-drf", source="its definition; docs/proofs.md, J"),
        *claim("pareto-optimality", "per-server-bottleneck-fairness", "single-resource-fairness", holds=False),
        *claim("population-monotonicity", "resource-monotonicity", holds=False),
    )

    def check(self, cluster: Cluster) -> None:
        bound = (cluster.max_tasks < merge(cluster, users=False).cluster.gamma.sum(axis=1)) & cluster.runnable
        if bound.any():
            name = cluster.users[int(np.flatnonzero(bound)[0])]
            raise DataError(
                f"per-server DRF cannot keep the task limit of user {name!r}, as servers do not coordinate; "
                "use DRFH, or drop the limits with cluster.replace(max_tasks=None)"
            )

    def program(self, p: Program) -> Statement:
        return lexmaxmin(p.server_share / p.pair_weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, partial(virtual_share_per_task, cluster), np.inf, "per_server")
