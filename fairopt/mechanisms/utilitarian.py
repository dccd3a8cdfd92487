"""The efficient end: the largest sum of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..model.cluster import Cluster
from ..model.criterion import Criterion, criterion
from ._base import Mechanism
from ._claim import claim
from .alpha_fair import Share, share_per_task


@dataclass(frozen=True)
class Utilitarian(Mechanism):
    """The largest total share, whoever gets it; weights do not matter.

        maximise  sum_n sigma_n,    sigma_n = u_n x_n

    Parameters
    ----------
    share, scope : as in `AlphaFair`

    Properties: Pareto. Nothing else: whoever needs much for a share of 1 may get nothing.

    Source: alpha = 0 of the alpha-fair family; the benchmark of the price of fairness.
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

    def criterion(self, cluster: Cluster) -> Criterion:
        return criterion(cluster, share_per_task(cluster, self.share), 0.0, self.scope)
