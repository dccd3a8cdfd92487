"""Alpha-fair utilities of a share: the trade-off between efficiency and fairness in one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import DataError
from ..model import _intake, _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, ShareRule, criterion
from ._base import ALPHAS, Mechanism
from ._claim import claim

Share = Literal["dominant", "asset", "task"] | Sequence[float] | Callable[[Cluster], Array]


def share_per_task(cluster: Cluster, share: Share) -> Array:
    """`u_n` by name, as numbers (users,), or from a function of the cluster."""
    if isinstance(share, str):
        named: dict[str, Array] = {
            "dominant": cluster.dominant_share_per_task,
            "asset": cluster.share_per_task.sum(axis=1),
            "task": np.ones(len(cluster.users)),
        }
        if share not in named:
            raise DataError(
                f"share {share!r} is not one of {', '.join(named)}; or give numbers (users,), or a function"
            )
        return named[share]
    numbers = share(cluster) if callable(share) else share
    return _intake.plain(_validate.row(numbers, "share", cluster.users, "user"), "the share per task")


def share_rule(share: Share) -> ShareRule:
    """Rule by which shares follow from the data, for derivatives; unknown for a function."""
    if callable(share):
        return "unknown"
    return share if isinstance(share, str) and share in ("dominant", "asset") else "constant"


@dataclass(frozen=True)
class AlphaFair(Mechanism):
    """Alpha-fair welfare of a global share.

        maximise  sum_n phi_n f_alpha(sigma_n / phi_n),    sigma_n = u_n x_n,
        f_alpha(t) = t^(1-alpha)/(1-alpha),  log t at alpha = 1;  alpha = infinity: lexicographic max-min

    Parameters
    ----------
    alpha : 0 (utilitarian) to infinity (max-min)
    share : "dominant", "asset", "task", numbers (users,), or a function of the cluster that returns them
    scope : "servers" or "pool"

    Properties: Pareto for every alpha. alpha = 1 is CEEI; alpha = infinity with dominant shares is DRFH, on a pool DRF.

    Source: Mo and Walrand 2000; for several resources Joe-Wong et al., INFOCOM 2012.
    """

    name = "alpha-fair"
    title = "alpha-fair"
    source = "Mo, Walrand 2000"
    properties = "from utilitarian to max-min"
    claims = (
        *claim("pareto-optimality", source="docs/proofs.md, H"),
        *claim("strategy-proofness-counts", source="docs/proofs.md, L", alpha=(0.01, 64)),
        *claim("sharing-incentive", "per-server-bottleneck-fairness", holds=False, alpha=(1.5, 64)),
        *claim("strategy-proofness", "population-monotonicity", "resource-monotonicity", holds=False, alpha=(0.5, 4)),
    )

    alpha: float = 2.0
    share: Share = "dominant"
    scope: Literal["servers", "pool"] = "servers"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _validate.alpha(self.alpha))

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (
            *(cls(alpha) for alpha in ALPHAS),
            cls(3.0, "asset", "pool"),
            cls(2.0, "task"),
        )

    def criterion(self, cluster: Cluster) -> Criterion:
        rule = share_rule(self.share)
        return criterion(cluster, share_per_task(cluster, self.share), self.alpha, self.scope, share_rule=rule)
