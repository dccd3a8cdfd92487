"""Alpha-fair conditions where many users have all their tasks and servers are free: who pays nothing is spared.

The price of a free server goes to 0 with mu, and so does the pay of users at their limits there, `pi -> 0`. Newton's
step of pi is then many times pi, downwards; to first order xi grows with it and the rest v shrinks, so that one such
user stops the step. Once `xi > spared B` (a task costs a twentieth of what it is worth, and next to nothing of all that
is spent) its tasks do not answer to pi any more:

    s = q - v,    v = mu / xi,    pi = d . lam - z of any sign,    xi = what rho = 0 leaves, at most most_spared B.

Nor may products of limits of users who hardly count run away, or count more than others in mu.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .conditions import Welfare
from .point import Point

Array = NDArray[np.float64]


class SparingWelfare(Welfare):
    """The conditions, with users who are spared."""

    def spared(self, point: Point) -> NDArray[np.bool_]:
        """Users at their limit who pay next to nothing of what a task is worth to them, (users,)."""
        high = np.where(self.sign > 0, point.excess, 0.0) > self.options.spared * self.of_price
        return np.asarray((self.of_limited(high.astype(float)) > 0) & ~(self.spent(point) > self.options.counts))

    def evened(self, of_limits: Array) -> Array:
        most = self.options.outlier * np.median(of_limits) if len(of_limits) else np.inf
        return np.minimum(of_limits, most)

    def moved(self, at: Point, step: Point, t: float) -> Point:
        """The point after a part t of a step; who is spared pays what the step says, which may be less than nothing."""
        there, spared = super().moved(at, step, t), self.spared(at)
        user_price = at.user_price + t * step.user_price
        there = replace(there, user_price=np.where(spared, user_price, there.user_price))
        little = ~(self.spent(at) > self.options.counts)
        there = self._fitted(at, there, spared | (little & (user_price < (1 - self.options.cut) * at.user_price)))
        before = at.room * at.excess
        most = self.options.grown * np.maximum(before, np.median(before)) / there.room
        return replace(there, excess=np.where(little[self.limited], np.minimum(there.excess, most), there.excess))

    def _fitted(self, at: Point, there: Point, changed: NDArray[np.bool_]) -> Point:
        """The excess of users who are spared, or whose pay was stopped short, is what their pay leaves."""
        own = changed[self.limited] & (self.sign > 0)
        rho, excess = self.marginal(there).residual, there.excess.copy()
        left, most = excess[own] - rho[self.limited[own]], self.options.most_spared * self.of_price
        excess[own] = np.clip(left, self.options.excess_fall * at.excess[own], most)
        return replace(there, excess=excess)
