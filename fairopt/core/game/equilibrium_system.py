"""The game in level form, on the arrays of a polytope: what a user's level is on a server at its prices.

Users are in units of their largest gamma and capacities in units of themselves, so that units do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array, Index
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ..algebra import Pairs
from ..solution import Run, Solution

P = ParamSpec("P")
T = TypeVar("T")


def suppress_fp_warnings(generator: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Decorate a generator to ignore floating-point warnings in its own steps, and not in its caller's."""

    @wraps(generator)
    def stepped(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = generator(*args, **kwargs)
        while True:
            with np.errstate(all="ignore"):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    return stepped


#: Costs below this, relative to the server's dearest resource, are computed in logarithms.
_TINY = 1e-280


@compiled
def costs(server, use, log_gain, price, a, share, whole, level):  # type: ignore[no-untyped-def]
    """`D v^a` of the pairs (pairs, resources) over `e^above`, their sums, and `log gain - above/a`.

    `price` (servers, resources) is log v; above is that of the server's dearest resource, or of the pair's where sums
    would be too small for logarithms.
    """
    servers, size = price.shape
    top, scaled = np.full(servers, -np.inf), np.empty((servers, size))
    for i in range(servers):
        for r in range(size):
            top[i] = max(top[i], a * price[i, r])
        for r in range(size):
            scaled[i, r] = np.exp(a * price[i, r] - top[i])
    for k in range(len(server)):
        i, above, total = server[k], top[server[k]], 0.0
        for r in range(size):
            share[k, r] = use[k, r] * scaled[i, r]
            total += share[k, r]
        if not total > _TINY:
            above, total = -np.inf, 0.0
            for r in range(size):
                if use[k, r] > 0:
                    above = max(above, np.log(use[k, r]) + a * price[i, r])
            for r in range(size):
                share[k, r] = np.exp(np.log(use[k, r]) + a * price[i, r] - above) if use[k, r] > 0 else 0.0
                total += share[k, r]
        whole[k] = total
        level[k] = log_gain[k] - above / a


@compiled
def exploitability(start, server, level, share, whole, tasks, limit, power, row, used):  # type: ignore[no-untyped-def]
    """The largest error, relative in tasks: misplaced, priced and idle, or beyond a capacity; see `certificates.game`.

    `level` (pairs,) is log, `share` (pairs, resources) of costs, over `whole`. Of a pair that pays less than its user
    would, as one at its limit may, prices count less, in this `power`.
    """
    worst, parts = 0.0, np.zeros(row.shape)
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += tasks[k]
        if not np.isfinite(total):
            return np.inf
        log_total = np.log(total)
        for k in range(start[n], start[n + 1]):
            above = log_total - level[k]
            worst = max(worst, min(-above, limit[n] / total - 1) if above < 0 else tasks[k] / total * above)
            part = (1.0 if above >= 0 else np.exp(power * above)) / whole[k]
            for r in range(row.shape[1]):
                parts[server[k], r] = max(parts[server[k], r], share[k, r] * part)
    for i in range(row.shape[0]):
        for r in range(row.shape[1]):
            if row[i, r]:
                worst = max(worst, (1 - used[i, r]) * parts[i, r], used[i, r] - 1)
    return worst


#: Slacks are measured in this power of level prices, or alpha if that is less.
_LARGEST = 4.0


class EquilibriumSystem:
    """Equations of the game on one polytope, for one alpha in (0, infinity)."""

    def __init__(self, polytope: Polytope, weight: Array, alpha: float) -> None:
        self.polytope, self.alpha = polytope, alpha
        self.start: Index = polytope.start
        self.user, self.server = polytope.pair_user, np.ascontiguousarray(polytope.pair_server)  # compiled once
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
        costs(self.server, self.use, self.log_gain, price, a, share, whole, level)
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
        return float(exploitability(*of_pairs, self.limit, self.power, self.row, self.used(tasks)))


def solution(
    method: EquilibriumSystem, tasks: Array, log_price: Array | None, by: str, steps: int, seconds: float, tol: float
) -> Solution:
    """Wrap tasks of pairs and level prices as a candidate; without prices only its certificate tells its error."""
    polytope = method.polytope
    found, log, status = polytope.allocation(polytope.inside(tasks / method.gamma)), None, "not measured"
    if log_price is not None:
        log = log_unit_prices(method, log_price)
        status = "converged" if method.exploitability(tasks, log_price) <= tol else "not converged"
    run = Run(by, seconds)
    return Solution(found, None, "equilibrium", (run,), 0.0, steps, status, log=log, rough=log is not None)


def log_unit_prices(method: EquilibriumSystem, log_price: Array) -> Array:
    """Log prices per resource unit (servers, resources) from level prices: `alpha log v - log c`."""
    capacity = method.polytope.cluster.capacity
    return np.where(method.row, method.alpha * log_price - np.log(np.where(method.row, capacity, 1.0)), -np.inf)
