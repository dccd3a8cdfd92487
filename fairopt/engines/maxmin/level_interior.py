"""The level of max-min by a structured interior point: Mehrotra's predictor and corrector with Gondzio's correctors.

With slacks z of costs, w of capacities and v of levels, and tau_n = 1 for the rising, 0 for the held:

    z = use.lambda - p,  w = 1 - sum use y,  v = sum_i y - tau t - floor,  sum tau p = 1,  y z = lambda w = p v = mu.

Users and t are eliminated (`level_newton`), which leaves a matrix over (server, resource). Where there are many pairs
only some take part; others come in before they would carry anything, and dear ones leave: what they carried counts
until others carry it. Linear equations are kept as well as the gap asks for, but for those of held users. Slow
progress is in the problem: on dense clusters with no two servers alike this takes twenty to eighty steps, the interior
point of HiGHS 90 to 120.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .level import LEAST_GAP, Found, Level, Taken, bound, by_simplex, everyone_stopped, judged
from .level_newton import Newton, Steps
from .level_screening import let_go, take_in

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: More pairs per user than this, and only some take part: the cheapest and some at random, then as prices say.
_MANY, _CHEAPEST, _RANDOM = 40, 8, 12
#: What pairs that left carried is forgotten below this part of the level.
_ROUNDING = 1e-18
#: What refined steps may leave, relative to the gap.
_SHARP = 1e-2
#: A corrector must lengthen the step by this much.
_MORE = 0.01
_MAX_STEPS, _CORRECTORS, _BALANCING = 200, 8, 15
#: Above this gap an answer is no answer.
_WRONG = 1e-4
#: Most pairs for which a simplex method is tried.
_SIMPLEX = 30_000
_TINY = 1e-300


def highest(problem: Level, rng: np.random.Generator, wanted: float = LEAST_GAP) -> Found | None:
    """The best point and prices: from the interior point, or from a simplex method where that gets stuck."""
    found = _interior(problem, rng, wanted)
    if found.gap < _WRONG or len(problem.server) > _SIMPLEX:
        return found
    return by_simplex(problem)


def _interior(problem: Level, rng: np.random.Generator, wanted: float) -> Found:
    point = Point(problem, rng)
    best = found = point.found(0)
    still = 0
    for number in range(1, _MAX_STEPS + 1):
        stopped = point.problem.stopped(found.low)
        if not stopped.rising.any():
            return everyone_stopped(found, stopped)
        if (stopped.rising != point.problem.rising).any():
            point.hold(stopped)
            best = point.found(number)
        let_go(point, best.gap)
        if not point.active.all():
            take_in(point, best.gap)
        length = point.step(min(best.gap, 1.0))
        if not np.isfinite(point.mu):
            break
        found = point.found(number)
        still = 0 if found.gap < 0.9 * best.gap or not np.isfinite(best.gap) else still + 1
        best = found if found.gap <= best.gap else best
        if best.gap <= wanted:
            return _settled(point, best, number)
        if still > 12 or (length < 1e-4 and still > 3):
            break
    return best


def _settled(point: Point, best: Found, number: int) -> Found:
    """One step beyond what the gap can show: it takes idle capacity and surplus down to rounding."""
    point.step(best.gap)
    found = point.found(number + 1) if np.isfinite(point.mu) else best
    return found if found.gap <= 2 * best.gap else best


class Point:
    """A point on its way."""

    def __init__(self, problem: Level, rng: np.random.Generator) -> None:
        self.problem = problem
        users, resources = len(problem.rising), problem.use.shape[1]
        self.row: Mask = np.zeros((problem.servers, resources), dtype=bool)
        for r in range(resources):
            self.row[problem.server[problem.use[:, r] > 0], r] = True
        self.lam: Array = self.row.astype(float)
        self.rough = True
        worth = bound(problem, self.lam)[1]
        self.active: Mask = np.ones(len(problem.server), dtype=bool)
        if len(problem.server) > _MANY * users:
            self.active = self._some(worth, rng)
        self.select()
        self.gone: Array = np.zeros(len(problem.server))  # what pairs carried that take no part any more
        self._begin(worth)

    def _some(self, worth: Array, rng: np.random.Generator) -> Mask:
        from . import _columns

        q = self.problem
        active = np.zeros(len(q.server), dtype=bool)
        _columns.enter(q.start, q.server, q.use, self.lam, np.full(len(worth), np.inf), _CHEAPEST, active)
        count = np.diff(q.start)
        drawn = q.start[:-1, None] + (rng.random((len(count), _RANDOM)) * count[:, None]).astype(np.intp)
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

    def _begin(self, worth: Array) -> None:
        """Strictly feasible, but for the held: equal prices of whole capacities, and loads about balanced."""
        q = self.problem
        self.tau = q.rising.astype(float)
        total = worth[q.rising].sum()
        self.lam = self.lam / (0.9 * total)
        self.p = worth / total
        self.z = np.maximum(self.cost(self.lam) - self.p[self.user], 0.1 * self.p[self.user])
        part = 1 / self.z
        part /= self.sums(part)[self.user]
        want = self.tau[self.user]
        for _ in range(_BALANCING):
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
        from ..linalg import _pairs

        result = np.empty(len(self.server))
        _pairs.cost(self.server, self.use, prices, result)
        return result

    def priced(self, amount: Array) -> Array:
        """`sum_n use_nir amount_ni`, (servers, resources)."""
        from ..linalg import _pairs

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

    def found(self, steps: int) -> Found:
        """The point made feasible, and what its prices prove."""
        if not self.gone.any():
            return judged(self.problem, self.taken, self.y, self.lam, steps)
        q = self.problem
        pairs = np.flatnonzero(self.active | (self.gone > 0))
        amount = self.gone[pairs]
        amount[np.searchsorted(pairs, self.at)] += self.y
        taken = Taken(pairs, np.searchsorted(pairs, q.start), q.server[pairs], q.use[pairs])
        return judged(q, taken, amount, self.lam, steps)

    def step(self, gap: float) -> float:
        """Predictor, corrector and centring correctors; returns the shorter of the two step lengths."""
        mu = self.mu
        newton = Newton(self, self.rough)
        yz, lw, pv = self.y * self.z, np.where(self.row, self.lam * self.w, 0.0), self.p * self.v
        aim = newton.direction(-yz, -lw, -pv)
        primal, dual = self._longest(aim)
        after = sum(float(product.sum()) for product in self._products(aim, primal, dual))
        centre = after / (len(self.y) + self.row.sum() + len(self.p)) / mu
        target = min(max(centre**3, 1e-8), 0.5) * mu
        centred = np.where(self.row, target - aim.lam * aim.w, 0.0)
        steps = newton.corrected(aim, target - aim.y * aim.z, centred, target - aim.p * aim.v)
        primal, dual = self._longest(steps)
        for _ in range(_CORRECTORS):
            if min(primal, dual) > 0.95:
                break
            products = self._products(steps, min(1.0, primal + 0.3), min(1.0, dual + 0.3))
            # Gondzio: what to add so that no product is far from the target.
            more = [np.maximum(np.clip(a, 0.1 * target, 10 * target) - a, -10 * target) for a in products]
            other = newton.corrected(steps, more[0], np.where(self.row, more[1], 0.0), more[2])
            longer = self._longest(other)
            if min(longer) < min(primal, dual) + _MORE:
                break
            steps = other
            primal, dual = longer
        # A gap is not known yet where held users have not their levels; the products know it.
        left = float(yz.sum() + lw.sum() + pv.sum())
        steps = newton.refined(steps, _SHARP * min(gap, left / self.t))
        self.rough = newton.rough
        primal, dual = self._longest(steps)
        back = min(max(0.9, 1 - gap), 0.99995) if min(primal, dual) > 0.9 else 0.9
        primal, dual = back * primal, back * dual
        self.gone *= 1 - primal  # so much of it others carry now
        if self.gone.max() < _ROUNDING * self.t:
            self.gone[:] = 0.0
        self.y, self.w = self.y + primal * steps.y, self.w + primal * steps.w
        self.v, self.t = self.v + primal * steps.v, self.t + primal * steps.t
        self.z, self.lam, self.p = self.z + dual * steps.z, self.lam + dual * steps.lam, self.p + dual * steps.p
        self.residuals()
        return min(primal, dual)

    def _longest(self, steps: Steps) -> tuple[float, float]:
        """The longest steps, at most 1, after which nothing is negative: primal and dual."""
        from ..linalg._pairs import longest

        row = self.row
        primal = ((self.y, steps.y), (self.w[row], steps.w[row]), (self.v, steps.v))
        dual = ((self.z, steps.z), (self.lam[row], steps.lam[row]), (self.p, steps.p))
        return min(longest(*pair) for pair in primal), min(longest(*pair) for pair in dual)

    def _products(self, steps: Steps, primal: float, dual: float) -> tuple[Array, Array, Array]:
        lw = np.where(self.row, (self.lam + dual * steps.lam) * (self.w + primal * steps.w), 0.0)
        yz = (self.y + primal * steps.y) * (self.z + dual * steps.z)
        return yz, lw, (self.p + dual * steps.p) * (self.v + primal * steps.v)

    def hold(self, problem: Level) -> None:
        """Go on with some of the rising held at their caps."""
        stop = self.problem.rising & ~problem.rising
        self.problem, self.tau = problem, problem.rising.astype(float)
        gone = np.add.reduceat(self.gone, problem.start[:-1])
        self.v = np.where(stop, np.maximum(self.have + gone - problem.floor, 0.1 * problem.floor), self.v)
        self.residuals()
