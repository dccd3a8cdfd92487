"""`FairnessEfficiency`: fairness on dominant shares as a concave welfare, with all that a certificate asks of one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._arrays import Array
from .criterion import Criterion

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

        Newton on two numbers: theta, where S is `fair exp(-theta)`, and where `tilt = efficient / T` is between nothing
        and the least price of the hungry, in the logarithm of `t / (1 - t)`. Their shares follow from what prices leave
        for fairness: `log sigma = log phi + (theta - log (price - tilt)) / beta`.
        """
        hungry = (start < high - 1e-6) & (price > 0)
        log_share, log_weight, beta = np.where(hungry, start, high), np.log(self.weight), self.alpha
        if not hungry.any():
            return log_share
        # F has a unit: at these prices users spend as much as it gives out.
        log_share[hungry] += np.log(self.fair + self.efficient) - log_sum(np.log(price[hungry]) + log_share[hungry])
        theta = np.log(self.fair) - log_sum(self._powers(log_share))
        cheapest = int(np.where(hungry, price, np.inf).argmin())
        least, left = price[cheapest], np.exp(theta - beta * (log_share - log_weight)[cheapest])
        left = min(left, _MOST * least)
        for _ in range(200):
            reweighting, fair = least - left, price[hungry] - least + left
            log_share[hungry] = log_weight[hungry] + (theta - np.log(fair)) / beta
            powers, total = self._powers(log_share), log_sum(log_share)
            power_sum = log_sum(powers)
            residual = np.array([np.log(reweighting / self.efficient) + total, theta + power_sum - np.log(self.fair)])
            size, over = float(np.abs(residual).max()), hungry & (log_share > high)
            if size < 0.1 and over.any():  # near enough to tell who would buy more than it can
                hungry &= ~over
                log_share = np.minimum(log_share, high)
                if not hungry.any():
                    break
                dearer = float(price[hungry].min())
                least, left = dearer, min(left + dearer - least, _MOST * dearer)
                continue
            if size < 1e-9:  # an error counts squared
                break
            # Steps are in the logarithm of left / tilt, which is free.
            of_place, of_theta = -(left * reweighting / least) / fair / beta, 1 / beta
            part, power = np.exp(log_share[hungry] - total), (1 - beta) * np.exp(powers[hungry] - power_sum)
            a, b = part @ of_place - left / least, part.sum() * of_theta
            c, d = power @ of_place, 1 + power.sum() * of_theta
            step = np.array([b * residual[1] - d * residual[0], c * residual[0] - a * residual[1]]) / (a * d - b * c)
            step /= max(
                np.abs(of_place * step[0] + of_theta * step[1]).max() / 2, 1.0
            )  # no share changes by more than e^2
            theta, ratio = theta + step[1], left / reweighting * np.exp(step[0])
            left = least * ratio / (1 + ratio)
        return np.minimum(log_share, high)


def log_sum(logs: Array) -> float:
    """The logarithm of a sum, from logarithms of its terms."""
    most = float(logs.max())
    return most + math.log(np.exp(logs - most).sum()) if math.isfinite(most) else most
