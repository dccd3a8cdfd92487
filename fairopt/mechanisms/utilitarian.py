"""Utilitarian welfare: the largest sum of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..base.libraries import cp
from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .alpha_fair import Share, share_of, share_per_task, share_rule
from .reference.program import Program, Statement, maximise


@dataclass(frozen=True)
class Utilitarian(Mechanism):
    r"""Maximise the sum of shares, regardless of weights and of the distribution over users.

    .. math:: \max_x \sum_n \sigma_n, \quad \sigma_n = u_n x_n

    Parameters
    ----------
    share, scope
        Parameters of `AlphaFair`, which define :math:`u_n`.

    Properties: Pareto only: a user with a large demand per unit of share may be allocated nothing.

    Source: the alpha-fair family at alpha = 0 (`AlphaFair`); the benchmark of the price of fairness.

    >>> import fairopt as fo
    >>> fo.Utilitarian("task").solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
    """

    name = "utilitarian"
    title = "utilitarian"
    source = "baseline (alpha = 0)"
    unique = False
    uses_weights = False
    properties = "no fairness"
    claims = (
        *claim("pareto-optimality", source="docs/proofs.md, H"),
        *claim("sharing-incentive", "envy-freeness", holds=False),
    )

    share: Share = "dominant"
    scope: Literal["servers", "pool"] = "servers"

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(scope="pool"), cls("task"))

    def program(self, p: Program) -> Statement:
        return maximise(cp.sum(share_of(p, self.share)), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        rule = share_rule(self.share) if cluster.rated else "unknown"
        return criterion(cluster, share_per_task(cluster, self.share), 0.0, self.scope, share_rule=rule)
