"""The game in level form, on the arrays of a polytope: what a user's level is on a server at its prices.

Users are in units of their largest gamma and capacities in units of themselves, so that units do not matter.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np

from ...core.algebra import Pairs
from ...model._arrays import Array, Index
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from . import _kernels

#: Slacks are measured in this power of level prices, or alpha if that is less.
_LARGEST = 4.0


class EquilibriumSystem:
    """Equations of the game on one polytope, for one alpha in (0, infinity)."""

    def __init__(self, polytope: Polytope, weight: Array, alpha: float) -> None:
        self.polytope, self.alpha = polytope, alpha
        self.start: Index = polytope.start
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.use = polytope.pair_use
        self.largest = np.maximum.reduceat(polytope.gamma, self.start[:-1])
        self.gamma = polytope.gamma / self.largest[polytope.pair_user]
        self.log_gain = np.log(weight[polytope.pair_user]) + np.log(self.gamma)
        self.weight = weight
        self.limit = polytope.limit / self.largest
        self.limited: Index = np.flatnonzero(np.isfinite(self.limit))
        servers, resources = polytope.cluster.capacity.shape
        self.row = np.zeros((servers, resources), dtype=bool)
        self.row[polytope.row_server, polytope.row_resource] = True
        self.per_task = self.pairs.takes

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs for `core.algebra`."""
        cluster = self.polytope.cluster
        demand = cluster.demand[self.polytope.users] * self.largest[:, None]
        inverse = 1 / np.where(cluster.capacity > 0, cluster.capacity, np.inf)
        return Pairs(self.user, self.server, demand, inverse)

    @classmethod
    def of(cls, polytope: Polytope, criterion: Criterion) -> EquilibriumSystem:
        """Equations of a criterion: of the game, or of welfare, where a task is worth the same on every server.

        Levels are then those of a game with `phi gamma` in place of `(phi^alpha u^(1-alpha) gamma)^(1/alpha)`: its
        equilibria are the optima of the program, which no unit of welfare tells apart.
        """
        found = cls(polytope, criterion.weight[polytope.users], criterion.alpha)
        if criterion.scope != "game":
            marginal = criterion.log_marginal(np.ones(len(criterion.weight)))[polytope.users]
            gain = (marginal[polytope.pair_user] + np.log(polytope.gamma)) / criterion.alpha
            found.log_gain = gain - np.log(found.largest)[polytope.pair_user]
        return found

    def at(self, alpha: float) -> EquilibriumSystem:
        """The same game for another alpha; arrays are shared."""
        other = copy(self)
        other.alpha = alpha
        return other

    @property
    def positive(self) -> bool:
        """True if all users of a server need all of its resources."""
        return bool(((self.use > 0) | ~self.row[self.server]).all())

    # -- parts of the equations ------------------------------------------------------------------

    def sums(self, of_pairs: Array) -> Array:
        """Sum over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(of_pairs, self.start[:-1]))

    def used(self, tasks: Array) -> Array:
        """Used part of every capacity, (servers, resources)."""
        return self.pairs.use(tasks)

    @property
    def power(self) -> float:
        """Power of level prices in which slacks are measured."""
        return min(self.alpha, _LARGEST)

    def levels(self, log_price: Array, a: float) -> tuple[Array, Array, Array]:
        """Levels of pairs, `log(phi gamma) - log(sum_r D v^a)/a`, and terms and value of that sum, scaled."""
        level, share, whole = np.empty(len(self.gamma)), np.empty(self.use.shape), np.empty(len(self.gamma))
        price = np.where(self.row, log_price, 0.0)
        _kernels.costs(self.server, self.use, self.log_gain, price, a, share, whole, level)
        return level - np.log(whole) / a, share, whole

    def begin(self, part: float) -> Array:
        """Starting tasks of pairs: smoothed choices at equal prices, which use about half of all capacity.

        `part` is by how much a user's tasks on a server, relative to all, follow what a pair lacks of its best one.
        """
        users, k = self.user, self.power
        level = self.log_gain - np.log(self.use.sum(axis=1)) / k  # what every pair allows, log
        best = np.maximum.reduceat(level, self.start[:-1])
        low, high = best + np.log1p(k * part) / k, best + np.log1p(k * part * np.diff(self.start)) / k
        for _ in range(12):
            middle = (low + high) / 2
            whole = np.add.reduceat(k * part / np.expm1(k * (middle[users] - level)), self.start[:-1])
            low, high = np.where(whole > 1, middle, low), np.where(whole > 1, high, middle)
        of_pair = 1 / np.expm1(np.minimum(k * (high[users] - level), 50.0))
        of_pair /= self.sums(of_pair)[users]
        tasks = of_pair * np.exp(high - high.max())[users]  # of small alpha, levels are beyond the range of numbers
        tasks = tasks * (0.5 / self.used(tasks)[self.row].mean())
        return np.asarray(tasks * np.minimum(1.0, 0.5 * self.limit / self.sums(tasks))[users])

    def exploitability(self, tasks: Array, log_price: Array) -> float:
        """Exploitability as certified: misplaced tasks, priced capacity that idles, overuse."""
        of_pairs = self.start, self.server, *self.levels(log_price, self.alpha), tasks
        return float(_kernels.exploitability(*of_pairs, self.limit, self.power, self.row, self.used(tasks)))
