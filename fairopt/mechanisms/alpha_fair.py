"""Alpha-fair utilities of a share: the trade-off between efficiency and fairness by one parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.errors import DataError
from ..base.libraries import cp
from ..model import _intake, _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, ShareRule, criterion
from ._base import ALPHAS, Mechanism
from ._claim import claim
from .reference.program import Program, Statement, f_alpha, lexmaxmin, maximise
from .tsf import task_share_per_task

Share = Literal["dominant", "asset", "task", "alone"] | Sequence[float] | Callable[[Cluster], Array]


def share_per_task(cluster: Cluster, share: Share) -> Array:
    """Share per task :math:`u_n`, (users,), from the name of a share, numbers, or a function of the cluster.

    Raises `DataError` for an unknown name, or values that are not one number per user.
    """
    if isinstance(share, str):
        named: dict[str, Array] = {
            "dominant": cluster.dominant_share_per_task,
            "asset": cluster.share_per_task.sum(axis=1),
            "task": np.ones(len(cluster.users)),
        }
        if share == "alone":
            return task_share_per_task(cluster)
        if share not in named:
            raise DataError(
                f"share {share!r} is not one of {', '.join(named)}, alone; or give numbers (users,), or a function"
            )
        return named[share]
    numbers = share(cluster) if callable(share) else share
    return _intake.plain(_validate.row(numbers, "share", cluster.users, "user"), "the share per task")


def share_of(p: Program, share: Share) -> cp.Expression:
    """Shares :math:`u_n x_n`, (users,), as an expression of a program."""
    of_tasks = share_rule(share) not in ("alone", "constant")
    label = f"{share}_share" if isinstance(share, str) else "share"
    return (p.share if of_tasks else p.work_share)(share_per_task(p.cluster, share), label)


def share_rule(share: Share) -> ShareRule:
    """Rule by which shares depend on the data, for derivatives; `unknown` for a function."""
    if callable(share):
        return "unknown"
    return share if isinstance(share, str) and share in ("dominant", "asset", "alone") else "constant"


@dataclass(frozen=True)
class AlphaFair(Mechanism):
    r"""Maximise alpha-fair welfare of a global share.

    .. math::
        \max_x \sum_n \phi_n f_\alpha(\sigma_n / \phi_n), \quad \sigma_n = u_n x_n, \quad
        f_\alpha(t) = \frac{t^{1-\alpha}}{1-\alpha}, \quad f_1(t) = \log t

    alpha = infinity is lexicographic max-min of :math:`\sigma_n / \phi_n`.

    Parameters
    ----------
    alpha : float
        0 (utilitarian) to infinity (max-min).
    share : str, array (users,) or callable
        :math:`u_n`: "dominant" (:math:`\max_r d_{nr}/C_r`), "asset" (:math:`\sum_r d_{nr}/C_r`), "task" (1), "alone"
        (the task share of `TSF`), numbers, or a function of the cluster that returns numbers. With rates "task",
        "alone" and numbers are per unit of work.
    scope : str
        "servers", or "pool": one server with the total capacity.

    Raises
    ------
    DataError
        alpha is negative, the share is unknown or not positive, or the scope is unknown.

    Properties: Pareto for every alpha. alpha = 1 is CEEI; alpha = infinity with dominant shares is DRFH, on a pool DRF.

    Source: Mo and Walrand, "Fair end-to-end window-based congestion control", IEEE/ACM ToN 8(5), 2000
    (doi:10.1109/90.879343); for several resources Joe-Wong et al., INFOCOM 2012.

    >>> import fairopt as fo
    >>> fo.AlphaFair(2).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [3.728, 1.757]
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

    def program(self, p: Program) -> Statement:
        share = share_of(p, self.share)
        if self.alpha == math.inf:
            return lexmaxmin(share / p.weight, p.constraints)
        return maximise(p.weight @ f_alpha(share / p.weight, self.alpha), p.constraints)

    def criterion(self, cluster: Cluster) -> Criterion:
        rule = share_rule(self.share)
        return criterion(cluster, share_per_task(cluster, self.share), self.alpha, self.scope, share_rule=rule)
