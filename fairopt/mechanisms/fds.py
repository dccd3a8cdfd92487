"""Fairness on dominant shares, with separate parameters for fairness and efficiency."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..base.errors import DataError
from ..base.libraries import cp
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion, FairnessEfficiency, criterion
from ._base import Mechanism
from ._claim import claim
from .reference.program import Program, Statement, f_alpha, maximise


@dataclass(frozen=True)
class FDS(Mechanism):
    r"""Maximise the fairness-efficiency trade-off of Joe-Wong et al. in dominant shares.

    .. math::
        \max_x\ \operatorname{sgn}(1-\beta) \Big(\sum_n (\sigma_n / T)^{1-\beta}\Big)^{1/\beta} T^\lambda, \quad
        \sigma_n = x_n \max_r d_{nr} / C_r, \quad T = \sum_n \sigma_n

    Parameters
    ----------
    beta : float
        Parameter of the fairness measure, > 0.
    lam : float, optional
        Exponent :math:`\lambda` of efficiency. Default: :math:`(1-\beta)/\beta`, for which FDS is alpha-fair with alpha
        = beta.

    The logarithm of the objective's modulus is concave for :math:`\lambda \ge (1-\beta)/\beta` if
    :math:`0 < \beta < 1`, and for :math:`\lambda \le (1-\beta)/\beta` if :math:`\beta > 1`. For these parameters the
    paper proves Pareto efficiency. At beta = 1 only lam = 0 is defined (the limit, CEEI). Weights enter as in the
    alpha-fair family, which is an extension of the paper.

    Raises
    ------
    DataError
        The parameters make the problem non-convex or undefined.

    Properties: Pareto; sharing incentive, envy-freeness and bottleneck fairness at lam = (1-beta)/beta for beta >= 1.

    Source: Joe-Wong, Sen, Lan, Chiang, IEEE/ACM ToN 21(6), 2013 (doi:10.1109/TNET.2012.2233213).

    >>> import fairopt as fo
    >>> fo.FDS(3, -1).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [3.744, 1.752]
    """

    name = "fds"
    title = "FDS"
    source = "Joe-Wong et al., ToN 2013"
    scope = "pool"
    properties = "where it is convex; those with a beta at lam = (1-beta)/beta"
    claims = (
        *claim("pareto-optimality", source="Joe-Wong et al., ToN 2013; docs/proofs.md, H"),
        *claim(
            "sharing-incentive",
            "envy-freeness",
            "bottleneck-fairness",
            source="docs/proofs.md, D",
            beta=(1, math.inf),
            lam=None,
        ),
        *claim("strategy-proofness-counts", source="docs/proofs.md, L", beta=(0.01, math.inf), lam=None),
        *claim(
            "strategy-proofness", "population-monotonicity", "resource-monotonicity", holds=False, beta=(2, 2), lam=None
        ),
    )

    beta: float = 2.0
    lam: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "beta", _validate.number(self.beta, "beta", "a finite number > 0", lambda beta: 0 < beta < math.inf)
        )
        if self.lam is not None:
            object.__setattr__(
                self, "lam", _validate.number(self.lam, "lam", "a finite number, or None", math.isfinite)
            )
        if self.beta == 1 and self._lam != 0:
            raise DataError("at beta = 1 only lam = 0 has a meaning (it is CEEI); choose another beta")
        if self._efficient < 0:
            bound, side = (1 - self.beta) / self.beta, ">=" if self.beta < 1 else "<="
            raise DataError(
                f"{type(self).__name__}(beta={self.beta:g}, lam={self._lam:g}) is not convex; for this beta it is when "
                f"lam {side} {bound:g}"
            )

    @property
    def _lam(self) -> float:
        return (1 - self.beta) / self.beta if self.lam is None else self.lam

    @property
    def _efficient(self) -> float:
        """Exponent of T beyond alpha-fairness, with the sign such that positive values favour larger totals T."""
        extra = self._lam - (1 - self.beta) / self.beta
        return extra if self.beta < 1 else -extra

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(0.5), cls(0.5, 2.0), cls(3.0, -2.0))

    def share(self, cluster: Cluster) -> Array:
        """Share per task of the fairness measure, (users,)."""
        return cluster.dominant_share_per_task

    def criterion(self, cluster: Cluster) -> Criterion:
        alpha_fair_part = criterion(cluster, self.share(cluster), self.beta, "pool")
        if self._efficient == 0:
            return alpha_fair_part
        return FairnessEfficiency(
            **alpha_fair_part.plain, fair=abs(1 - self.beta) / self.beta, efficient=self._efficient
        )

    def program(self, p: Program) -> Statement:
        """State the logarithm of the objective's modulus, or alpha-fair welfare at lam = (1-beta)/beta."""
        share, beta = p.share(self.share(p.cluster)), self.beta
        if self._efficient == 0:
            return maximise(p.weight @ f_alpha(share / p.weight, beta), p.constraints)
        mean = cp.pnorm(cp.multiply(p.weight ** (beta / (1 - beta)), share), 1 - beta, approx=False)
        fair = abs(1 - beta) / beta
        return maximise(fair * cp.log(mean) + self._efficient * cp.log(cp.sum(share)), p.constraints)


@dataclass(frozen=True)
class GFJ(FDS):
    r"""Maximise the trade-off of `FDS` in numbers of tasks instead of dominant shares.

    .. math::
        \max_x\ \operatorname{sgn}(1-\beta) \Big(\sum_n (x_n / T)^{1-\beta}\Big)^{1/\beta} T^\lambda, \quad
        T = \sum_n x_n

    Parameters, convexity and errors are those of `FDS`.

    Source: Joe-Wong, Sen, Lan, Chiang, IEEE/ACM ToN 21(6), 2013 (doi:10.1109/TNET.2012.2233213).

    >>> import fairopt as fo
    >>> fo.GFJ(0.5).solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.round(3).tolist()
    [4.091, 1.636]
    """

    name = "gfj"
    title = "GFJ"
    properties = "where it is convex; depends on the size of a task"
    counts_tasks = True
    claims = claim("pareto-optimality", source="Joe-Wong et al., ToN 2013; docs/proofs.md, H")

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(0.5, 2.0),)

    def share(self, cluster: Cluster) -> Array:
        return np.ones(len(cluster.users))
