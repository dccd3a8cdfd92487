"""One level of lexicographic max-min: the common level of some users raised as high as it goes, and its proof.

    maximise t   s.t.   sum_i y_ni >= t  (rising users),   sum_i y_ni >= floor_n  (held users),
                        sum_n use_nir y_ni <= 1,   y >= 0,

y in units of level, pairs (n, i) sorted by user. A rising user whose cap lies below the level is held there, and one
whose floor lies above it is held at that (`waiting`). With
prices lambda of whole capacities and `p_n` the least cost of a pair of n, any feasible point has
`t <= (sum lambda - sum_held p_n floor_n) / sum_rising p_n`: so are points judged, wherever they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ..._libraries import optimize, sp
from ..linalg import _pairs

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: The smallest relative gap that can be told from rounding.
LEAST_GAP = 1e-14


@dataclass(frozen=True)
class SolvedLevelOptions:
    """What counts as held at a level, and as on it."""

    #: Held users may miss their level by this part.
    missed: float = 1e-9
    #: A floor that is above a level by less than this part is on it.
    same: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = SolvedLevelOptions()

#: By what part a sum of prices may be off.
_ROUNDING = 2 * float(np.finfo(float).eps)
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Level:
    """The data of one level."""

    start: Index  # (users + 1,), where each user's pairs start
    server: Index  # (pairs,)
    use: Array  # (pairs, resources), of whole capacities per unit of level
    servers: int
    rising: Mask  # (users,)
    floor: Array  # (users,), what held users have, and the others at least
    cap: Array  # (users,), above which a user stops rising

    @property
    def user(self) -> Index:
        """The user of every pair."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def waiting(self, level: float) -> Level:
        """The same with those held at their floors who have more there than a level: it would have to pass them."""
        return replace(self, rising=self.rising & (self.floor <= level * (1 + OPTIONS.same)))

    def stopped(self, low: float) -> Level:
        """The same with those held at their caps who have them below a level that everyone can have."""
        stop = self.rising & (self.cap < low)
        return replace(self, rising=self.rising & ~stop, floor=np.where(stop, self.cap, self.floor))


@dataclass(frozen=True)
class BoundedLevel:
    """A point and prices; `low <= t <= high` is proved, with those rising and held who are in `problem`."""

    problem: Level
    pairs: Index | None  # that `amount` is about; None: all
    amount: Array  # y
    prices: Array  # (servers, resources), of whole capacities
    user_price: Array  # (users,), p; sum 1 over the rising
    low: float
    high: float
    steps: int = 0

    @property
    def gap(self) -> float:
        """Relative, and not below what rounding leaves."""
        return max(self.high / self.low - 1, LEAST_GAP) if self.low > 0 else np.inf

    @property
    def amounts(self) -> Array:
        """y of all pairs, (pairs,)."""
        if self.pairs is None:
            return self.amount
        result = np.zeros(len(self.problem.server))
        result[self.pairs] = self.amount
        return result


def bound(problem: Level, prices: Array) -> tuple[float, Array]:
    """The highest level that prices leave possible, and the least cost of every user's pairs."""
    from . import _columns

    user_price = np.empty(len(problem.rising))
    _columns.cheapest(problem.start, problem.server, problem.use, prices, user_price)
    total = float(user_price[problem.rising].sum())
    fixed = float(user_price[~problem.rising] @ problem.floor[~problem.rising])
    paid = float(prices.sum())
    # Of large prices that nearly cancel, only so much is known.
    rounding = _ROUNDING * (paid + fixed)
    return (paid - fixed + rounding) / total if total > 0 else np.inf, user_price


class Taken(NamedTuple):
    """Pairs that take part, and what `Level` has of them."""

    pairs: Index | None  # None: all
    start: Index
    server: Index
    use: Array


def certified(problem: Level, taken: Taken, amount: Array, prices: Array, steps: int = 0) -> BoundedLevel:
    """The point scaled back until it is feasible, and what it and the prices prove."""
    from . import _columns

    pairs, start, server, use = taken
    load = np.zeros_like(prices)
    _pairs.used(server, use, amount, load)
    inside = np.empty(len(amount))
    _columns.inside(server, use, load, amount, inside)
    amount = inside
    have = np.add.reduceat(amount, start[:-1])
    low = float(have[problem.rising].min(initial=np.inf))
    fixed = ~problem.rising & (problem.floor > 0)
    if fixed.any() and (part := float((have[fixed] / problem.floor[fixed]).min())) < 1:
        # A point that takes from those who are held proves nothing, unless by rounding.
        low = low * part if part > 1 - OPTIONS.missed else 0.0
    high, user_price = bound(problem, prices)
    total = user_price[problem.rising].sum()
    scale = 1 / total if total > 0 else 1.0
    return BoundedLevel(problem, pairs, amount, prices * scale, user_price * scale, low, high, steps)


def with_amounts(found: BoundedLevel, amounts: Array) -> BoundedLevel:
    """What was found, with amounts of all pairs in place of its own where those reach a higher level."""
    problem = found.problem
    other = certified(problem, Taken(None, problem.start, problem.server, problem.use), amounts, found.prices)
    return replace(other, steps=found.steps) if other.gap < found.gap else found


def everyone_stopped(found: BoundedLevel, problem: Level) -> BoundedLevel:
    """Nobody rises any more: the point that showed it has all caps, and nothing remains to be proved."""
    return replace(found, problem=problem, prices=0 * found.prices, user_price=0 * found.user_price, high=found.low)


@dataclass
class Budget:
    """Seconds that are left for a simplex method, over all levels: it is asked where nothing else gets on."""

    seconds: float


def by_simplex(problem: Level, budget: Budget) -> BoundedLevel | None:
    """A vertex by HiGHS: slow, but it needs no interior. `None` when it was not solved in the time that is left."""
    while budget.seconds > 0:
        count, users = len(problem.server), len(problem.rising)
        resources = problem.use.shape[1]
        rows = (problem.server[:, None] * resources + np.arange(resources)).ravel()
        columns = np.repeat(np.arange(count), resources)
        size = problem.servers * resources
        take = sp.csr_matrix((problem.use.ravel(), (rows, columns)), shape=(size, count + 1))
        unit = np.where(problem.rising, 1.0, np.maximum(problem.floor, 1e-300))
        have = sp.csr_matrix((1 / unit[problem.user], (problem.user, np.arange(count))), shape=(users, count))
        short = sp.hstack([-have, sp.csr_matrix(problem.rising.astype(float)[:, None])])
        begun = _clock.now()
        result = optimize.linprog(
            np.append(np.zeros(count), -1.0),
            A_ub=sp.vstack([take, short], format="csr"),
            b_ub=np.concatenate([np.ones(size), np.where(problem.rising, 0.0, -1.0)]),
            method="highs-ds",
            options={**_OPTIONS, "time_limit": budget.seconds},
        )
        budget.seconds -= _clock.now() - begun
        if result.status != 0:
            return None
        prices = np.maximum(-result.ineqlin.marginals[:size], 0.0).reshape(problem.servers, resources)
        everything = Taken(None, problem.start, problem.server, problem.use)
        found = certified(problem, everything, np.maximum(result.x[:count], 0.0), prices)
        after = problem.stopped(found.low)
        if (after.rising == problem.rising).all():
            return found
        if not after.rising.any():
            return everyone_stopped(found, after)
        problem = after
    return None
