"""Competitive Equilibrium from Equal Incomes, which is the Nash bargaining solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..base.libraries import cp
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, maximise
from .tsf import task_share_per_task


@dataclass(frozen=True)
class CEEI(Mechanism):
    r"""Let every user spend an equal (weighted) income at market prices that clear.

    .. math:: \max_x \sum_n \phi_n \log x_n

    The share per task cancels. Markets clear: a resource with a positive price is exhausted.

    Parameters
    ----------
    scope : str
        "pool" (as in the DRF paper) or "servers".

    Properties: sharing incentive, envy-freeness, Pareto, bottleneck fairness of the pool. Not strategy-proof (DRF
    theorem 4), not population monotone (theorem 5).

    Source: Varian, J. Economic Theory 9, 1974 (doi:10.1016/0022-0531(74)90075-1); Ghodsi et al., NSDI 2011, section
    5.2; as a convex program Eisenberg and Gale 1959 (doi:10.1214/aoms/1177706369).

    >>> import fairopt as fo
    >>> fo.CEEI().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
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

    def program(self, p: Program) -> Statement:
        return maximise(p.weight @ cp.log(p.work), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        # Utility is work, which is not proportional to the resources held if rates differ; at alpha = 1 all shares per
        # unit of work have the same optimum.
        if cluster.rated:
            return criterion(cluster, partial(task_share_per_task, cluster), 1.0, self.scope, share_rule="alone")
        return criterion(cluster, cluster.dominant_share_per_task, 1.0, self.scope, share_rule="dominant")
