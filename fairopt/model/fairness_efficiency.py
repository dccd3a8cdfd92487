"""`FairnessEfficiency`: fairness on dominant shares as a concave welfare, with all that a certificate asks of one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, special
from .criterion import Criterion

Array = NDArray[np.float64]


#: At the start of what is bought, and where a user is left out, at most this part of the least price is for fairness.
_MOST = 0.999


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
            return np.asarray(np.log(self.share) + self._log_slopes(np.log(self.share * user_tasks)))

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """Per user, terms whose sum bounds `F(x') - p x' - (F(x) - p x)` over all x' <= high.

        A tangent at the point y that would be bought at these prices; F is homogeneous, so its slope times y is
        `fair + efficient`, and what its slope exceeds the price by can be collected on at most `high`.
        """
        with np.errstate(all="ignore"):
            scale = float(np.exp(np.median(self.log_marginal(tasks) - log_marginal)))
            price = price * scale
            log_share = np.log(self.share * tasks)
            bought = self._bought(price / self.share, log_share, np.log(self.share * high))
            # A tangent anywhere is a bound; where the search for the best one fails, the one at x.
            terms = (self._terms(point, log_share, tasks, price, high) for point in (bought, log_share))
            return np.asarray(min(terms, key=np.sum) / scale)

    def _terms(self, point: Array, log_share: Array, tasks: Array, price: Array, high: Array) -> Array:
        slope = self.share * np.exp(self._log_slopes(point))
        terms = np.maximum(slope - price, 0.0) * high + price * tasks
        terms[0] += self._value(point) - self._value(log_share) - self.fair - self.efficient
        return np.where(np.isfinite(terms), terms, np.inf)

    def _powers(self, log_share: Array) -> Array:
        """Logarithms of the terms of S."""
        return np.asarray(self.alpha * np.log(self.weight) + (1 - self.alpha) * log_share)

    def _log_slopes(self, log_share: Array) -> Array:
        powers = self._powers(log_share)
        fair = np.log(self.fair) + powers - log_share - log_sum(powers)
        return np.asarray(np.logaddexp(fair, np.log(self.efficient) - log_sum(log_share)))

    def _value(self, log_share: Array) -> float:
        fair = self.fair / (1 - self.alpha) * log_sum(self._powers(log_share))
        return float(fair + self.efficient * log_sum(log_share))

    def _bought(self, price: Array, start: Array, high: Array) -> Array:
        """Logarithms of the shares whose slopes are the prices, or `high` for users who would buy more.

        Two numbers tell them: theta, where S is `fair exp(-theta)`, and where `tilt = efficient / T` is between nothing
        and the least price of the hungry, in the logarithm of `t / (1 - t)`. What prices leave for fairness is
        `log sigma = log phi + (theta - log (price - tilt)) / beta`. Powell's hybrid method finds both, or nearly so.
        """
        hungry = (start < high - 1e-6) & (price > 0)
        if not hungry.any():
            return high
        log_weight = np.log(self.weight)
        cheapest = int(np.where(hungry, price, np.inf).argmin())
        dearer, least = price - price[cheapest], price[cheapest]

        def shares(theta: float, place: float) -> Array:
            left = least * float(special.expit(place))
            wanted = log_weight + (theta - np.log(np.maximum(dearer + left, 0.0))) / self.alpha
            return np.where(hungry, np.minimum(wanted, high), high)

        def missed(at: Array) -> Array:
            found = shares(*at)
            tilt = np.log(least / self.efficient) + special.log_expit(-at[1])
            return np.array([tilt + log_sum(found), at[0] + log_sum(self._powers(found)) - np.log(self.fair)])

        theta = np.log(self.fair) - log_sum(self._powers(start))
        left = min(np.exp(theta - self.alpha * (start - log_weight)[cheapest]) / least, _MOST)
        return shares(*optimize.root(missed, [theta, special.logit(left)]).x)


def log_sum(logs: Array) -> float:
    """The logarithm of a sum, from logarithms of its terms."""
    most = float(logs.max())
    return most + math.log(np.exp(logs - most).sum()) if math.isfinite(most) else most
