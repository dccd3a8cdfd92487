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
    r"""Allocate what users buy with equal (weighted) incomes :math:`\phi_n` at market-clearing prices.

    .. math:: \max_x \sum_n \phi_n \log x_n

    The optimum does not depend on a share per task. At market-clearing prices every resource with a positive price is
    exhausted. With rates :math:`x_n` is work.

    Parameters
    ----------
    scope : str
        "pool" (as in the source of DRF) or "servers".

    Properties: sharing incentive, envy-freeness, Pareto, bottleneck fairness of the pool. Neither strategy-proof nor
    population monotone (theorems 4 and 5 of NSDI 2011).

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
        # Utility is work, which is not proportional to resources if rates differ. At alpha = 1 the optimum is the same
        # for all shares per unit of work.
        if cluster.rated:
            return criterion(cluster, partial(task_share_per_task, cluster), 1.0, self.scope, share_rule="alone")
        return criterion(cluster, cluster.dominant_share_per_task, 1.0, self.scope, share_rule="dominant")
