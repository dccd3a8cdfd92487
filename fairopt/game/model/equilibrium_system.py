"""The equations of an equilibrium in level form, on the arrays of a polytope; see `smoothing` for what they are.

Users are in units of their largest gamma and capacities in units of themselves, so that units do not matter.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.algebra import Pairs
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from . import _kernels

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class EquilibriumPoint:
    """Where an algorithm is."""

    tasks: Array  # (pairs,), in the user's largest gamma
    slack: Array  # (pairs,)
    log_price: Array  # (servers, resources), log v
    log_level: Array  # (users,), log of the tasks that the level allows, without limits
    idle: Array  # (servers, resources)
    mu: float
    power: float  # in which slacks are measured


class EquilibriumSystem:
    """The game of one polytope, for one alpha in (0, infinity)."""

    def __init__(self, polytope: Polytope, weight: Array, alpha: float, largest_power: float = 4.0) -> None:
        self.polytope, self.alpha = polytope, alpha
        #: Slacks are measured in this power of a level price.
        self.power, self.largest_power = min(alpha, largest_power), largest_power
        self.start: Index = polytope.start
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.use = polytope.pair_use
        self.largest = np.maximum.reduceat(polytope.gamma, self.start[:-1])
        self.gamma = polytope.gamma / self.largest[polytope.pair_user]
        self.log_gain = np.log(weight[polytope.pair_user]) + np.log(self.gamma)
        self.per_task = self.use / self.gamma[:, None]
        self.weight = weight
        self.limit = polytope.limit / self.largest
        self.limited: Index = np.flatnonzero(np.isfinite(self.limit))
        servers, resources = polytope.cluster.capacity.shape
        self.row = np.zeros((servers, resources), dtype=bool)
        self.row[polytope.row_server, polytope.row_resource] = True

    @cached_property
    def pairs(self) -> Pairs:
        """The same pairs as algebra knows them."""
        cluster, ends = self.polytope.cluster, (np.array([0, len(self.weight)]), np.array([0, len(self.row)]))
        demand = cluster.demand[self.polytope.users] * self.largest[:, None]
        inverse = 1 / np.where(cluster.capacity > 0, cluster.capacity, np.inf)
        return Pairs(self.user, self.server, demand, inverse, *ends)

    @classmethod
    def of(cls, polytope: Polytope, criterion: Criterion) -> EquilibriumSystem:
        """Those of a criterion: the game's, or of a global program, where a task is worth the same on every server.

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
        """The same game for another alpha, which shares the arrays."""
        other = copy(self)
        other.alpha, other.power = alpha, min(alpha, self.largest_power)
        return other

    @property
    def positive(self) -> bool:
        """Do all users of a server need all of its resources?"""
        return bool(((self.use > 0) | ~self.row[self.server]).all())

    # -- parts of the equations ------------------------------------------------------------------

    def sums(self, of_pairs: Array) -> Array:
        """Over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(of_pairs, self.start[:-1]))

    def used(self, tasks: Array) -> Array:
        """The part of every capacity in use, (servers, resources)."""
        return self.pairs.use(tasks)

    def priced(self, point: EquilibriumPoint, a: float) -> tuple[Array, Array, Array]:
        """True slacks, price shares and log prices of the pairs."""
        pairs = len(self.gamma)
        slack, share, cost = np.empty(pairs), np.empty((pairs, self.row.shape[1])), np.empty(pairs)
        log_price = np.where(self.row, a * point.log_price, -1e300)
        powers = np.array([self.power / a, self.power])
        _kernels.price(
            self.start, self.server, self.use, log_price, powers, self.log_gain, point.log_level, slack, share, cost
        )
        return slack, share, cost

    def totals(self, log_level: Array, mu: float) -> tuple[Array, Array]:
        """X_n, and minus its slope over the log of the user's price `U_n^-k`; a limit q bends X below it."""
        total = np.exp(log_level)
        slope = total / self.power
        if len(own := self.limited):
            low = self._below_limits(log_level[own] - np.log(self.limit[own]), mu)
            part, room = np.exp(low), np.maximum(-np.expm1(low), 1e-300)
            total[own] = part * self.limit[own]
            slope[own] = self.limit[own] / (self.power / part + mu / (room * (room + mu)))
        return total, slope

    def _below_limits(self, log_excess: Array, mu: float) -> Array:
        """log of the part t < 1 of its limit that each user has: `(e^log_excess / t)^power = 1 + mu/(1 - t)`."""
        low, high = np.full(len(log_excess), -700.0), np.zeros(len(log_excess))
        for _ in range(80):
            middle = (low + high) / 2
            less = self.power * (log_excess - middle) > np.log1p(mu / np.maximum(-np.expm1(middle), 1e-300))
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return low

    def begin(self, mu: float) -> EquilibriumPoint:
        """All prices of a server equal, products of all pairs `mu`, and about half of everything in use."""
        users, k = self.user, self.power
        at = EquilibriumPoint(
            self.gamma, self.gamma, np.zeros(self.row.shape), np.zeros(len(self.weight)), self.row * 1.0, mu, k
        )
        level = -np.log1p(self.priced(at, k)[0]) / k  # what every pair allows, log
        best = np.maximum.reduceat(level, self.start[:-1])
        low, high = best + np.log1p(k * mu) / k, best + np.log1p(k * mu * np.diff(self.start)) / k
        for _ in range(12):
            middle = (low + high) / 2
            whole = np.add.reduceat(k * mu / np.expm1(k * (middle[users] - level)), self.start[:-1])
            low, high = np.where(whole > 1, middle, low), np.where(whole > 1, high, middle)
        slack = np.expm1(np.minimum(k * (high[users] - level), 50.0))
        part = 1 / slack
        part /= np.add.reduceat(part, self.start[:-1])[users]
        most = high.max()  # of small alpha, levels are beyond the range of numbers
        tasks = part * np.exp(high - most)[users]
        used = self.used(tasks)[self.row]
        scale = 0.5 / (used.sum() / len(used))
        tasks = tasks * scale
        log_scale = np.log(scale) - most
        tasks *= np.minimum(1.0, 0.5 * self.limit / np.add.reduceat(tasks, self.start[:-1]))[users]
        log_level = high + log_scale
        idle = np.where(self.row, np.maximum(1 - self.used(tasks), 0.1), 1.0)
        return EquilibriumPoint(tasks, slack, np.full(self.row.shape, -log_scale), log_level, idle, mu, k)

    def error(self, point: EquilibriumPoint, slack: Array, parts: Array, total: Array, used: Array) -> float:
        """What the certificate will find: tasks misplaced, capacity that idles at a price, overuse."""
        of_users = self.start, point.tasks, total, slack, self.power, point.log_level, self.limit
        return float(_kernels.error(*of_users, self.row, used, parts))

    def wanted(self, point: EquilibriumPoint, share: Array, slack: Array) -> Array:
        """Price shares relative to what the user would pay: one at its limit would pay more than it has to."""
        if not len(self.limited):
            return share
        users = self.user
        above = point.log_level - np.log(self.totals(point.log_level, point.mu)[0])
        part = np.exp(np.minimum(np.log1p(np.maximum(slack, -1 + 1e-20)) - self.power * above[users], 0.0))
        return np.asarray(share * part[:, None])

    def largest_parts(self, share: Array) -> Array:
        """The largest part that each resource has in the price that somebody would pay, (servers, resources)."""
        result = np.zeros(self.row.shape)
        _kernels.largest_parts(self.start, self.server, share, result)
        return result
