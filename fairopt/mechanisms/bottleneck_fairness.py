"""Bottleneck-based fairness: no user has a justified complaint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.libraries import cp
from ..certificates import Certificate, feasibility
from ..model._arrays import Array, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, maximise


@dataclass(frozen=True)
class BottleneckFairness(Mechanism):
    r"""Allocate every user all its tasks, or at least its entitlement of some exhausted resource.

    .. math::
        x_n = q_n \quad\text{or}\quad x_n d_{nr} \ge C_r \phi_n / \textstyle\sum_m \phi_m
        \ \text{ for some } r \text{ with } \textstyle\sum_m x_m d_{mr} = C_r

    Such allocations are not unique. The market equilibrium of Gutman and Nisan is selected, which maximises
    :math:`\sum_n \phi_n \log x_n` subject to :math:`x_n \le q_n`. At market prices a user with fewer than :math:`q_n`
    tasks spends its whole budget, so that it receives at least its entitlement of some resource with a positive price,
    which is exhausted. The certificate verifies the displayed condition.

    Properties: sharing incentive, envy-freeness, Pareto (of the selected allocation). Not strategy-proof.

    Source: Dolev, Feitelson, Halpern, Kupferman, Linial, "No justified complaints: on fair sharing of multiple
    resources", ITCS 2012 (doi:10.1145/2090236.2090243); selection: Gutman and Nisan, "Fair allocation without trade",
    AAMAS 2012 (arXiv:1204.4286).

    >>> import fairopt as fo
    >>> fo.BottleneckFairness().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
    """

    name = "bottleneck-fairness"
    title = "bottleneck fairness"
    source = "Dolev et al., ITCS 2012; Gutman, Nisan 2012"
    scope = "pool"
    unique = False
    properties = "no justified complaint"
    claims = (
        *claim("sharing-incentive", "pareto-optimality", source="AAMAS 2012; docs/proofs.md, H"),
        *claim("envy-freeness", source="docs/proofs.md, H"),
        *claim("bottleneck-fairness", "single-resource-fairness", source="docs/proofs.md, J"),
        *claim("strategy-proofness-counts", source="docs/proofs.md, L"),
        *claim("strategy-proofness", holds=False),
    )

    @property
    def met_by_criterion(self) -> bool:
        r"""True: the optimum of the criterion with :math:`x_n \le q_n` satisfies what `certify` checks."""
        return True

    def program(self, p: Program) -> Statement:
        return maximise(p.weight @ cp.log(p.user_tasks), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, cluster.dominant_share_per_task, 1.0, "pool", share_rule="dominant")

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        """Certificate by the largest complaint: a user's relative distance from the nearest sufficient condition.

        It is infinite if tasks have another shape, are not finite, or are on a server that cannot run them.
        """
        feasible, where = feasibility(cluster, tasks)
        if not np.isfinite(feasible):
            return Certificate(feasible, np.inf, "complaint", where), None
        x, capacity = tasks.sum(axis=1), cluster.pooled_capacity
        used = ratio(x[:, None] * cluster.demand, capacity)
        entitlement = cluster.weight / cluster.weight.sum()
        idle = 1 - used.sum(axis=0)
        short = 1 - used / entitlement[:, None]
        blocked = np.where(cluster.demand > 0, np.maximum(idle, short), np.inf).min(axis=1)
        hungry = np.where(np.isinf(cluster.max_tasks), np.inf, 1 - x / np.maximum(cluster.max_tasks, 1e-300))
        complaint = np.where(cluster.runnable, np.maximum(np.minimum(blocked, hungry), 0.0), 0.0)
        worst = int(complaint.argmax())
        text = where if feasible > complaint[worst] else f"largest for user {cluster.users[worst]!r}"
        return Certificate(feasible, float(complaint[worst]), "complaint", text), log_prices
