"""Where the interior point of a level of max-min is (`level_interior`), and what is wrong there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..linalg import _pairs
from .level import BoundedLevel, Level, Taken, bound, certified
from .options import OPTIONS, LevelPointOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_TINY = 1e-300


class LevelPoint:
    """A point on its way."""

    def __init__(self, problem: Level, rng: np.random.Generator, options: LevelPointOptions = OPTIONS.point) -> None:
        self.problem, self.options = problem, options
        users, resources = len(problem.rising), problem.use.shape[1]
        self.row: Mask = np.zeros((problem.servers, resources), dtype=bool)
        for r in range(resources):
            self.row[problem.server[problem.use[:, r] > 0], r] = True
        self.lam: Array = self.row.astype(float)
        self.rough = True
        user_price = bound(problem, self.lam)[1]
        self.active: Mask = np.ones(len(problem.server), dtype=bool)
        if len(problem.server) > options.many * users:
            self.active = self._some(user_price, rng)
        self.select()
        self.screened_out: Array = np.zeros(len(problem.server))  # what pairs carried that take no part any more
        self._begin(user_price)

    def _some(self, user_price: Array, rng: np.random.Generator) -> Mask:
        from . import _columns

        q = self.problem
        active = np.zeros(len(q.server), dtype=bool)
        _columns.enter(
            q.start, q.server, q.use, self.lam, np.full(len(user_price), np.inf), self.options.cheapest, active
        )
        count = np.diff(q.start)
        drawn = q.start[:-1, None] + (rng.random((len(count), self.options.random)) * count[:, None]).astype(np.intp)
        active[drawn.ravel()] = True
        return active

    def select(self) -> None:
        """The arrays over pairs that take part."""
        q = self.problem
        self.at: Index = np.flatnonzero(self.active)
        self.start = np.searchsorted(self.at, q.start)
        self.user: Index = np.repeat(np.arange(len(q.rising)), np.diff(self.start))
        self.server, self.use = q.server[self.at], q.use[self.at]
        everything = len(self.at) == len(q.server)
        self.taken = Taken(None if everything else self.at, self.start, self.server, self.use)

    def _begin(self, user_price: Array) -> None:
        """Strictly feasible, but for the held: equal prices of whole capacities, and loads about balanced."""
        q = self.problem
        self.tau = q.rising.astype(float)
        total = user_price[q.rising].sum()
        self.lam = self.lam / (0.9 * total)
        self.p = user_price / total
        self.z = np.maximum(self.cost(self.lam) - self.p[self.user], 0.1 * self.p[self.user])
        part = 1 / self.z
        part /= self.sums(part)[self.user]
        want = self.tau[self.user]
        for _ in range(self.options.balancing):
            load = self.priced(part * want).max(axis=1)
            part *= np.where(load > 0, load, 1.0)[self.server] ** -0.5
            part /= self.sums(part)[self.user]
        least = 0.5 / max(float(self.priced(part * want).max()), _TINY)
        self.y = part * np.where(q.rising, least, np.maximum(q.floor, _TINY))[self.user]
        self.t = least / 1.2
        self.w = np.where(self.row, np.maximum(1 - self.priced(self.y), 0.1), 1.0)
        self.v = np.where(q.rising, 0.2 * self.t, 0.1 * np.maximum(q.floor, _TINY))
        self.residuals()

    def sums(self, pairs: Array) -> Array:
        """Over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(pairs, self.start[:-1]))

    def cost(self, prices: Array) -> Array:
        """What the pairs that take part cost, (pairs,)."""
        result = np.empty(len(self.server))
        _pairs.cost(self.server, self.use, prices, result)
        return result

    def priced(self, amount: Array) -> Array:
        """`sum_n use_nir amount_ni`, (servers, resources)."""
        result = np.zeros(self.row.shape)
        _pairs.used(self.server, self.use, amount, result)
        return result

    def residuals(self) -> None:
        """What is wrong with the linear equations, anew."""
        self.dual = self.cost(self.lam) - self.p[self.user] - self.z
        # What pairs that left carried counts as missing here, where others are to carry it; `found` still counts it.
        self.have = self.sums(self.y)
        self.short = self.have - np.where(self.problem.rising, self.t, self.problem.floor) - self.v
        self.take = self.priced(self.y)
        self.excess = np.where(self.row, 1 - self.take - self.w, 0.0)
        self.sum = 1 - float(self.p @ self.tau)

    @property
    def mu(self) -> float:
        """The average product."""
        total = float(self.y @ self.z + (self.lam * self.w)[self.row].sum() + self.p @ self.v)
        return float(total / (len(self.y) + self.row.sum() + len(self.p)))

    def found(self, steps: int) -> BoundedLevel:
        """The point made feasible, and what its prices prove."""
        if not self.screened_out.any():
            return certified(self.problem, self.taken, self.y, self.lam, steps)
        q = self.problem
        pairs = np.flatnonzero(self.active | (self.screened_out > 0))
        amount = self.screened_out[pairs]
        amount[np.searchsorted(pairs, self.at)] += self.y
        taken = Taken(pairs, np.searchsorted(pairs, q.start), q.server[pairs], q.use[pairs])
        return certified(q, taken, amount, self.lam, steps)

    def hold(self, problem: Level) -> None:
        """Go on with some of the rising held at their caps."""
        stop = self.problem.rising & ~problem.rising
        self.problem, self.tau = problem, problem.rising.astype(float)
        screened_out = np.add.reduceat(self.screened_out, problem.start[:-1])
        self.v = np.where(stop, np.maximum(self.have + screened_out - problem.floor, 0.1 * problem.floor), self.v)
        self.residuals()
