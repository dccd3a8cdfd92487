"""Max-min fairness of one divisible resource: water filling."""

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
class MaxMin(Mechanism):
    r"""Max-min fairness of one resource: satisfy small demands, and divide the remainder equally (by weight).

    .. math:: \operatorname{lex\,max\,min}_n\ a_n / \phi_n, \quad a_n = d_n x_n \le d_n q_n, \quad \sum_n a_n \le C

    The amounts :math:`a_n` are in resource units. A user demands at most its task limit :math:`q_n`: the example
    divides 15 units among demands of 2, 3, 6 and 7.

    Raises
    ------
    DataError
        The cluster has several resources.

    Properties: sharing incentive, envy-freeness, Pareto, strategy-proofness (also of groups), population and resource
    monotonicity.

    Source: Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2.

    >>> import fairopt as fo
    >>> fo.MaxMin().solve(fo.Cluster([[15]], [[1]] * 4, max_tasks=[2, 3, 6, 7])).user_tasks.tolist()
    [2.0, 3.0, 5.0, 5.0]
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

    def program(self, p: Program) -> Statement:
        amount = p.share(p.cluster.demand[:, 0], "amount")
        return lexmaxmin(amount / p.weight, p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.demand[:, 0], np.inf, "pool", share_rule="demand")
