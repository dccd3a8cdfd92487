"""`FairnessEfficiency`: fairness on dominant shares as a concave welfare, with all that a certificate asks of one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._arrays import Array
from .criterion import Criterion


@dataclass(frozen=True, eq=False)
class FairnessEfficiency(Criterion):
    """`F = fair log M(sigma) + efficient log T(sigma)`, both factors > 0: the logarithm of |f| of `FDS`.

    `T = sum_n sigma_n`, `S = sum_n phi_n^beta sigma_n^(1-beta)` and `M = S^(1/(1-beta))`, beta = `alpha`. What a
    task is worth has a part for fairness and one for efficiency, which is the same for every share:

        dF/dx_n = u_n (fair phi_n^beta sigma_n^(-beta) / S + efficient / T)

    Source: Joe-Wong, Sen, Lan, Chiang, IEEE/ACM ToN 21(6), 2013; the logarithm, weights and bound are ours.
    """

    fair: float = 1.0
    efficient: float = 0.0

    @property
    def stiffness(self) -> float:
        """1: weights are in S as well, so that errors of marginal utilities are made up for by demands."""
        return 1.0

    def log_marginal(self, user_tasks: Array) -> Array:
        """`log dF/dx_n` at user tasks (users,)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_share = np.log(self.share * user_tasks)
            powers = self.alpha * np.log(self.weight) + (1 - self.alpha) * log_share
            fair = np.log(self.fair) + powers - log_share - log_sum(powers)
            slope = np.logaddexp(fair, np.log(self.efficient) - log_sum(log_share))
            return np.asarray(np.log(self.share) + slope)

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """Per user, by the tangent at x, what in sum bounds `F(x') - p x' - (F(x) - p x)` over `low <= x' <= high`."""
        excess = np.exp(log_marginal) - price
        return np.asarray(np.maximum(excess * (high - tasks), excess * (low - tasks)))


def log_sum(logs: Array) -> float:
    """The logarithm of a sum, from logarithms of its terms."""
    most = float(logs.max())
    return most + math.log(np.exp(logs - most).sum()) if math.isfinite(most) else most
