r"""Concave welfare, and the game, by an interior point whose matrix `algebra` eliminates, in either order.

With what a unit of user n is worth `m_n(x)`, costs of pairs at prices lambda of whole capacities, pay p, limits q and
floors (sign -1) with excesses xi:

.. math::

    z = cost - p \ge 0 \perp y \ge 0, \qquad w = 1 - use\,y \ge 0 \perp \lambda \ge 0, \qquad
    v = \pm(q - x) \ge 0 \perp \xi \ge 0,

    x = \sum_i y, \qquad \log(p \pm \xi) = \log m(x).

A product counts by what its user turns over or by its price, so that nobody is small. Pay may have any sign where a
limit binds: nothing diverges where a user has all of its tasks and servers are free. Where worth has a part for the
sum of shares, one more unknown is what that part weighs; where that goes to and fro it is held in a run, and Brent's
method finds it. In the game costs are divided by what a task is worth on its
server beside the user's best one (`Pairs.value`).

Where alpha is large prices of servers are decades apart, and a start would have to know which is where: alpha begins at
4 and is doubled as soon as equations hold about, prices being taken to the power that their users' levels ask for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize
from ..certificates.backward import error_at
from ..model.criterion import Criterion
from ..model.fairness_efficiency import FairnessEfficiency, log_sum
from ..model.problem import Problem
from .algebra import Equations, Pairs

Array = NDArray[np.float64]
Index = NDArray[np.intp]
TINY = 1e-300
#: Where alpha begins, and by what it grows, also in the game, as long as the equations are met about.
_GENTLE, _STEEPER, _STEEPER_GAME = 4.0, 2.0, 3.0
#: So far above a unit of welfare, in logarithms, worth no longer grows: numbers of who has a limit would overflow.
_MOST = 500.0
#: Steps of mirror descent to a first point, and over how many of them it is an average: they go to and fro.
_DESCENTS, _LAST = 25, 13
#: With more pairs, most users being on most servers, welfare without limits takes another start, and bolder steps.
_MANY = 20_000
#: What of a point a predictor tells, but for pairs.
_LATER = ("lam", "w", "x", "xi", "v", "tilt")


class Worth(NamedTuple):
    """What a unit is worth, and how that falls."""

    log: Array  # (users,)
    elastic: Array  # (users,), by how much it falls with the log of the tasks
    part: Array | float  # (users,), how it grows with the log of the weight of sums of shares


class Point(NamedTuple):
    y: Array  # (pairs,)
    z: Array
    lam: Array  # (servers, resources)
    w: Array
    x: Array  # (users,)
    p: Array
    xi: Array  # (limits,)
    v: Array
    tilt: float  # log of the weight of the sum of shares

    def along(self, step: Change, t: float) -> Point:
        """A part of a step further."""
        parts: Any = (one + t * change for one, change in zip(self[2:], step[2:], strict=True))  # type: ignore[operator]
        return Point(self.y * (1 + t * step.y), self.z * (1 + t * step.z), *parts)


class Change(NamedTuple):
    """Of a point, amounts and slacks of pairs by parts of themselves."""

    y: Array
    z: Array
    lam: Array
    w: Array
    x: Array
    p: Array
    xi: Array
    v: Array
    tilt: float

    def plus(self, other: Change) -> Change:
        """Both at once."""
        parts: Any = (one + more for one, more in zip(self, other, strict=True))  # type: ignore[operator]
        return Change(*parts)


class Market:
    """The data of a problem in units in which users have about 1."""

    def __init__(self, problem: Problem, weight: float | None = None) -> None:
        #: At which the log of the weight of the sum of shares is held, if it is.
        self.weight = weight
        polytope, rule = problem.polytope, problem.criterion
        self.polytope, self.problem = polytope, problem
        servers = polytope.cluster.shape[1]
        crowd = np.bincount(polytope.pair_server, minlength=servers)
        self.unit: Array = np.bincount(polytope.pair_user, polytope.gamma / crowd[polytope.pair_server]).astype(float)
        self.unit = np.minimum(self.unit, polytope.limit)
        demand = polytope.cluster.demand[polytope.users] * self.unit[:, None]
        with np.errstate(divide="ignore"):
            inverse = np.where(polytope.cluster.capacity > 0, 1 / polytope.cluster.capacity, 0.0)
        ends = np.array([0, len(demand)]), np.array([0, servers])
        self.pairs = Pairs(polytope.pair_user, polytope.pair_server, demand, inverse, *ends)
        self.row = self.pairs.present
        #: What of each user a server could run, (pairs,).
        self.size = 1 / self.pairs.takes.max(axis=1)
        own = self.own = rule.restrict(polytope.users)
        #: In the game logs of what a user could run on a server, beside the most on any, (pairs,).
        self.log_gamma: Array | None = None
        if rule.scope == "game":
            largest = np.maximum.reduceat(polytope.gamma, polytope.start[:-1])
            self.log_gamma = np.log(polytope.gamma / largest[polytope.pair_user])
            self.own = own = replace(own, share=1 / largest)
        if not isinstance(own, FairnessEfficiency):
            self._take(min(own.alpha, _GENTLE))
        limited, floored = polytope.limited, np.flatnonzero(own.floor > 0)
        self.user = np.concatenate([limited, floored])
        self.sign = np.repeat([1.0, -1.0], [len(limited), len(floored)])
        self.bound = np.concatenate([polytope.limit[limited], own.floor[floored]]) / self.unit[self.user]
        self.of_row = self.of_limit = 1.0
        self.most = np.inf
        #: What is left of weights after a step, at least, at first and later. Where limits bind prices swing; in the
        #: game without limits some are so far below others that weights have to fall with them.
        game = self.log_gamma is not None
        self.follow = (0.1, 0.001) if game and not len(self.user) else (0.7, 0.3)
        #: Many pairs, and nothing that makes prices swing: steps are bold.
        self.plain = not (game or len(self.user)) and len(self.size) > _MANY and rule.alpha > 0
        self.plain = self.plain and type(own) in (Criterion, FairnessEfficiency) and self.pairs.dense
        if self.plain:
            self.follow = 0.1, 0.1
        self.ratio = 0.0
        if isinstance(rule, FairnessEfficiency):
            self.ratio = float(np.log(rule.efficient) - np.log(rule.fair))

    def _take(self, alpha: float) -> None:
        """Go on with another alpha, by which the game says what a task is worth where."""
        self.own = replace(self.own, alpha=alpha)
        if self.log_gamma is not None:
            self.pairs = self.pairs.worth(np.exp((alpha - 1) * self.log_gamma))

    @property
    def steep(self) -> bool:
        """Is alpha as large as it is to be?"""
        return self.own.alpha >= self.problem.criterion.alpha

    @property
    def power(self) -> float:
        """By how much logs of prices are further apart than those of levels."""
        return max(self.own.alpha, 1.0)

    @property
    def tilted(self) -> bool:
        """Has worth a part for the sum of shares?"""
        return isinstance(self.own, FairnessEfficiency) and self.weight is None

    def worth(self, x: Array, tilt: float) -> Worth:
        """At tasks (users,) in units; in the efficient case without a unit of welfare."""
        own, tasks, log_unit = self.own, x * self.unit, np.log(self.unit)
        if isinstance(own, FairnessEfficiency):
            log_share = np.log(own.share * tasks)
            fair = own.alpha * (np.log(own.weight) - log_share)
            log = np.logaddexp(fair, tilt)
            part = np.exp(tilt - log)
            return Worth(log + np.log(own.share) + log_unit, own.alpha * (1 - part), part)
        log = own.log_marginal(tasks) + log_unit
        return Worth(np.minimum(log, self.most), np.where(log < self.most, own.elasticity(tasks), 0.0), 0.0)

    def tilt(self, x: Array, free: bool = False) -> tuple[float, Array]:
        """What the weight of the sum of shares is to be at tasks (users,), and its slopes in their logs.

        `free`: also where it is held.
        """
        own = self.own
        if not isinstance(own, FairnessEfficiency) or (self.weight is not None and not free):
            return self.weight or 0.0, np.zeros(len(x))
        log_share = np.log(own.share * x * self.unit)
        powers = own.alpha * np.log(own.weight) + (1 - own.alpha) * log_share
        total, fair = log_sum(log_share), log_sum(powers)
        slope = (1 - own.alpha) * np.exp(powers - fair) - np.exp(log_share - total)
        return self.ratio + fair - total, slope

    def weights(self, at: Point) -> tuple[Array, Array]:
        """Units of products of pairs, a user's turnover, or a server's if that is less, and of rows."""
        pairs, cost = self.pairs, self.pairs.cost(at.lam)
        turnover = np.minimum(pairs.of_user(at.x), self.size)
        turnover *= pairs.of_user(pairs.least(cost))
        return turnover, self.of_rows(cost)

    def even(self, at: Point, weights: tuple[Array, Array]) -> None:
        """Let products of rows and limits aim at what they are at a first point, about."""
        pair = float((at.y * at.z / weights[0]).mean())
        self.of_row = float(np.sqrt(max((at.lam * at.w / weights[1])[self.row].mean() / pair, 1.0)))
        pays = (at.p + self.on_users(self.sign * at.xi))[self.user]
        if len(pays):
            self.of_limit = float(np.sqrt(max((at.xi * at.v / (self.bound * pays)).mean() / pair, 1.0)))

    def of_rows(self, cost: Array) -> Array:
        """Units of products of rows, (servers, resources): the price at which a row is all that a pair pays."""
        pairs, result = self.pairs, np.ones((len(self.row), self.pairs.inverse.shape[1]))
        cost = cost if pairs.value is None else cost * pairs.value
        table = pairs.table(cost, np.inf) if pairs.dense else cost
        with np.errstate(divide="ignore"):
            for r in range(result.shape[1]):
                if pairs.dense:
                    each = (table / pairs.demand[:, r, None]).min(axis=0)
                    each /= pairs.inverse[:, r]
                else:
                    each = np.full(len(result), np.inf)
                    np.minimum.at(each, pairs.server, cost / pairs.takes[:, r])
                result[:, r] = each
        return self.of_row * np.where(self.row, result, 1.0)

    def on_users(self, of_limits: Any) -> Array:
        """The sum over a user's limits, (users,)."""
        if not len(self.user):
            return np.zeros(len(self.unit))
        return np.asarray(np.bincount(self.user, of_limits, len(self.unit)), dtype=float)

    def begin(self) -> Point:
        """Mirror descent in logs: prices follow use, amounts what a server is worth over what it costs."""
        pairs, power = self.pairs, self.power
        size = self.size
        if self.plain:
            return self._even()
        crowd = np.bincount(pairs.server, minlength=len(pairs.inverse))
        y = 0.7 * size / crowd[pairs.server]
        caps = np.flatnonzero(self.sign > 0)
        who, cap = self.user[caps], self.bound[caps]
        excess, log_lam = np.zeros(len(self.unit)), np.zeros(0)
        means: list[Any] = [0.0, 0.0, 0.0]
        for number in range(_DESCENTS):
            x = pairs.sums(y)
            full = x[who] / cap
            shrink = np.ones(len(x))
            shrink[who] = 0.7 / np.maximum(full, 0.7)
            y, x = y * pairs.of_user(shrink), x * shrink
            excess[who] = np.maximum(excess[who] + 0.7 * np.maximum(np.log(full / 0.7), -1), 0.0)
            value = self.worth(x, self.tilt(x)[0]).log / power - excess
            if number == 0:
                most = np.full(len(pairs.inverse), -np.inf)
                np.maximum.at(most, pairs.server, pairs.of_user(value) - np.log(pairs.over_value(1 / size)) / power)
                log_lam = np.repeat(most[:, None], pairs.inverse.shape[1], axis=1)
            change = np.log(np.maximum(pairs.use(y), TINY) / 0.7)
            log_lam = log_lam + 0.35 * np.clip(change, -1, 1)
            top = power * log_lam[self.row].max()
            lam = np.where(self.row, np.exp(np.maximum(power * log_lam - top, -600)), 0.0)
            cost = (np.log(np.maximum(pairs.cost(lam), TINY)) + top) / power
            y = np.minimum(y * np.exp(np.clip(0.7 * (pairs.of_user(value) - cost), -2, 2)), size)
            if number >= _DESCENTS - _LAST:
                means = [mean + one / _LAST for mean, one in zip(means, (y, log_lam, excess), strict=True)]
        y, log_lam, excess = means
        top = power * log_lam[self.row].max()
        lam = np.where(self.row, np.exp(np.maximum(power * log_lam - top, -600)), 0.0)
        # A row that idles costs the first user to whom that matters a part of what it pays: Newton's method sees it.
        lam = np.where(self.row, np.maximum(lam, 0.3 * self.of_rows(pairs.cost(lam))), 0.0)
        cost, x = pairs.cost(lam), pairs.sums(y)
        self.level = top
        p = np.exp(self.worth(x, self.tilt(x)[0]).log - top - power * excess)
        p = np.minimum(p, 0.9 * pairs.least(cost))
        z = np.maximum(cost - pairs.of_user(p), 0.1 * cost)
        turnover = np.minimum(pairs.of_user(x), size) * pairs.of_user(pairs.least(cost))
        y = np.maximum(y, np.minimum(0.05 * turnover / z, 0.07 * size / crowd[pairs.server]))
        z = np.minimum(z, turnover / y)
        y = y * (0.9 / np.maximum(pairs.use(y).max(axis=1), 0.9))[pairs.server]
        x = pairs.sums(y)
        shrink = np.ones(len(x))
        shrink[who] = 0.9 / np.maximum(x[who] / cap, 0.9)
        y, x = y * pairs.of_user(shrink), x * shrink
        tilt = self.tilt(x)[0]
        worth = np.exp(self.worth(x, tilt).log - top)
        w = np.where(self.row, np.maximum(1 - pairs.use(y), 0.1), 1.0)
        at_limit = np.where(excess > 0, np.maximum(worth - p, 0.1 * p), 0.1 * p)[self.user]
        v = np.maximum(self.sign * (self.bound - x[self.user]), 0.1 * np.maximum(x[self.user], self.bound))
        return Point(y, z, lam, w, x, p, at_limit, v, tilt)

    def _even(self) -> Point:
        """Servers split evenly, most of them in use; a unit of a resource has the same price everywhere."""
        pairs, crowd = self.pairs, np.bincount(self.pairs.server, minlength=len(self.pairs.inverse))
        y = self.size / crowd[pairs.server]
        y = y * (0.8 / pairs.use(y)[self.row].mean())
        x = pairs.sums(y)
        tilt = self.tilt(x)[0]
        log = self.worth(x, tilt).log
        self.level = float(log_sum(log + np.log(x)) - np.log(len(x)))  # users spend 1 on average
        p = np.maximum(np.exp(log - self.level), 1e-12)
        part = np.divide(1.0, pairs.inverse, out=np.zeros(self.row.shape), where=self.row)
        part /= np.maximum(part.sum(axis=0), TINY)
        lam = np.where(self.row, len(x) * np.maximum(part / part.sum(), 1e-12), 0.0)
        cost, pays = pairs.cost(lam), pairs.of_user(p)
        z = np.maximum(cost - pays, 0.1 * np.maximum(cost, pays))
        w = np.where(self.row, np.maximum(1 - pairs.use(y), 0.1), 1.0)
        return Point(y, z, lam, w, x, p, np.zeros(0), np.zeros(0), tilt)

    def steepened(self, at: Point, alpha: float) -> Point:
        """A point for a larger alpha: prices of rows are powers of the levels of those who pay for little else."""
        pairs, own, cost = self.pairs, self.own, self.pairs.cost(at.lam)
        self._take(alpha)
        pairs = self.pairs
        low = (alpha / own.alpha - 1) * np.log(pairs.least(cost) / (own.share * self.unit))
        part = at.y / (pairs.of_user(at.x) * cost)
        of_pair = pairs.of_user(low)
        if self.log_gamma is not None:  # in the game a server's prices are what its users pay times what it is worth
            of_pair = of_pair + (alpha - own.alpha) * self.log_gamma
        of_row = pairs.use(part * of_pair) / np.maximum(pairs.use(part), TINY)
        top = float(of_row[self.row].max())
        of_row = np.exp(of_row - top)
        self.level = self.level * alpha / own.alpha + top
        self.most = self.level + _MOST
        lam = np.where(self.row, at.lam * of_row, 0.0)
        # Of pairs on servers of several levels the dearer ones matter less; nobody pays more than its cheapest.
        dearer = pairs.cost(lam)
        grown = dearer / cost
        of_user = pairs.sums(at.y * cost) / pairs.sums(at.y * cost / grown)
        of_user = np.minimum(of_user, pairs.least(dearer) / pairs.least(cost))
        y = at.y * np.minimum(1.0, 3 * pairs.of_user(of_user) / grown)
        at = at._replace(y=y, z=at.z * grown, lam=lam, x=pairs.sums(y), p=at.p * of_user, xi=at.xi * of_user[self.user])
        pays = at.p + self.on_users(self.sign * at.xi)
        missed = self.worth(at.x, at.tilt).log - np.log(pays)
        # What a unit costs is known better than tasks, but for those whom a limit holds.
        more = at.x * np.expm1(np.clip((missed - self.level) / self.power, -2.0, 2.0))
        toward = np.where(at.xi * self.bound > at.v * pays[self.user], np.inf, self.sign * more[self.user])
        more[self.user] = self.sign * np.minimum(toward, 0.5 * at.v)
        x, y = at.x + more, at.y * pairs.of_user(1 + more / at.x)
        excess = self.sign * (np.exp(self.worth(x, at.tilt).log - self.level) - at.p)[self.user]
        xi = np.where(toward < 0.5 * at.v, at.xi, np.maximum(excess, 0.1 * at.xi))
        return at._replace(y=y, x=x, xi=xi, v=at.v - self.sign * more[self.user])

    def begin_from(self, start: Start) -> Point:
        """A point of another alpha, in the unit of welfare that fits most users."""
        at = start.point
        self._take(start.alpha)
        pays = at.p + self.on_users(self.sign * at.xi)
        self.level = float(np.median(self.worth(at.x, at.tilt).log - np.log(pays)))
        return self.steepened(at, self.problem.criterion.alpha)

    def fits(self, start: object) -> bool:
        """Is it a start for the same pairs and limits, in the same units?"""
        return (
            isinstance(start, Start)
            and np.array_equal(start.unit, self.unit)
            and [np.shape(each) for each in start.point] == [*start.shapes_of(self)]
        )


@dataclass(frozen=True)
class Start:
    """Where a run for another alpha may begin."""

    point: Point
    unit: Array
    alpha: float

    @staticmethod
    def shapes_of(market: Market) -> Iterator[tuple[int, ...]]:
        """Of the parts of a point."""
        pair, row = market.size.shape, market.row.shape
        user, limit = market.unit.shape, market.bound.shape
        yield from (pair, pair, row, row, user, user, limit, limit, ())


class Step:
    """Newton's equations at a point, factored."""

    def __init__(self, market: Market, at: Point, weights: tuple[Array, Array], rough: bool) -> None:
        self.market, self.at, self.weights = market, at, weights
        q, pairs = market, market.pairs
        self.worth = q.worth(at.x, at.tilt)
        self.pays = at.p + q.on_users(q.sign * at.xi)
        self.inverse = 1 / at.z
        self.product = at.y * at.z / weights[0]
        #: Errors of slacks as parts of them.
        self.dual = 1 - pairs.slack(at.lam, at.p) * self.inverse
        self.excess = np.where(q.row, 1 - pairs.use(at.y) - at.w, 0.0)
        self.short = at.x - pairs.sums(at.y)
        self.rho = np.log(self.pays) - self.worth.log + q.level
        self.off = at.v - q.sign * (q.bound - at.x[q.user])
        tilt, self.slopes = q.tilt(at.x)
        self.untilted = tilt - at.tilt if q.tilted else 0.0
        self.mu = self._mean(float(self.product.sum()), at)
        errors = (
            self.dual * self.product, self.excess, self.short / at.x, self.rho / q.power, self.off / q.bound,
            self.untilted,
        )  # fmt: skip
        self.missed = max(float(np.abs(each).max(initial=0.0)) for each in errors)
        self.rough = rough

    def _mean(self, of_pairs: float, at: Point) -> float:
        """The mean product over its weight, from their sum over pairs."""
        q = self.market
        of_limits = at.xi * at.v / (q.bound * self._worth_of_limits)
        total = of_pairs + (at.lam * at.w / self.weights[1])[q.row].sum() + of_limits.sum()
        return float(total / (len(at.y) + np.count_nonzero(q.row) + len(at.v)))

    @property
    def _worth_of_limits(self) -> Array:
        return np.asarray(self.market.of_limit * self.pays[self.market.user])

    def factor(self) -> None:
        """Eliminate pairs, limits and tasks."""
        q, at = self.market, self.at
        self.weight = at.y * self.inverse
        stiff = np.maximum(self.worth.elastic, 1e-13) * self.pays / at.x + q.on_users(at.xi / at.v)
        self.loose = 1 / stiff
        self.ratio = np.where(q.row, at.w / np.maximum(at.lam, TINY), 0.0)
        idle = np.where(q.row, self.ratio, np.inf)
        self.equations = Equations(q.pairs, self.weight, idle, self.loose, np.zeros(len(at.x)), self.rough)
        #: Users whose worth hardly depends on tasks, and does not say these.
        self.unsaid = self.loose > q.pairs.sums(self.weight)
        if q.tilted:
            users = self.worth.part * self.pays
            self.by_tilt = self._solve(None, 0 * at.lam, 0 * at.x, -users, 0 * at.lam, None)

    def _solve(
        self, own: Array | None, rows: Array, short: Array, k: Array, excess: Array, sharp: Array | None
    ) -> tuple[Array, Array, Array]:
        """Changes of prices, pay and tasks."""
        pairs = self.market.pairs
        b, e = rows - excess, short - self.loose * k
        if own is not None:
            b, e = b + pairs.use(own), e - pairs.sums(own)
        lam, p, _ = self.equations.solve(b, e, np.zeros(1), sharp)
        return lam, p, -self.loose * (p + k)

    def direction(
        self, cy: Array | float, cw: Array, cv: Array, bend: Array | None = None, wrong: bool = True
    ) -> Change:
        """The step that changes products by so much, of pairs by parts; other equations are put right if `wrong`."""
        q, at = self.market, self.at
        none = np.zeros(len(at.x))
        short, excess, off = (self.short, self.excess, self.off) if wrong else (none, 0 * at.lam, 0 * at.v)
        rho = (self.rho if wrong else none) + (none if bend is None else bend)
        own = at.y * (self.dual + cy if wrong else cy)
        rows = np.where(q.row, cw / np.maximum(at.lam, TINY), 0.0)
        k = rho * self.pays + q.on_users(q.sign * (cv + at.xi * off) / at.v)
        lam, p, x = self._solve(own, rows, short, k, excess, None)
        tilt: Any = 0.0
        if q.tilted:
            slope = self.slopes / at.x
            tilt = ((self.untilted if wrong else 0.0) + slope @ x) / (1 - slope @ self.by_tilt[2])
            tilt = float(np.clip(tilt, -1.0, 1.0))  # where its slope is nearly 0 it would run away
            lam, p, x = (one + tilt * more for one, more in zip((lam, p, x), self.by_tilt, strict=True))
        return self._whole(cy, rows, lam, p, x, wrong, short, off, cv, tilt)

    def _whole(
        self, cy: Array | float, rows: Array, lam: Array, p: Array, x: Array, wrong: bool, short: Array, off: Array,
        cv: Array, tilt: float,
    ) -> Change:  # fmt: skip
        """With what follows from prices, pay and tasks."""
        q, at, pairs = self.market, self.at, self.market.pairs
        z = pairs.slack(lam, p)
        z *= self.inverse
        if wrong:
            z -= self.dual
        y = cy - z
        if self.unsaid.any():
            x = np.where(self.unsaid, pairs.sums(at.y * y) - short, x)
        w = rows - self.ratio * lam
        v = -q.sign * x[q.user] - off
        xi = (cv - at.xi * v) / at.v
        return Change(y, z, lam, w, x, p, xi, v, tilt)

    def finished(self, step: Change, sharp: float) -> Change:
        """With what factors left of the equations of rows and users put right."""
        q, at, pairs, best, least = self.market, self.at, self.market.pairs, step, np.inf
        for _ in range(3):
            tasks = at.y * step.y
            rows = np.where(q.row, self.excess - pairs.use(tasks) - step.w, 0.0)
            users = self.short + step.x - pairs.sums(tasks)
            size = max(float(np.abs(rows).max()), float((np.abs(users) / at.x).max()))
            if not size < least:
                break
            best, least = step, size
            if size <= sharp:
                break
            nothing = 0 * at.lam
            lam, p, x = self._solve(None, nothing, users, 0 * at.x, rows, np.array([sharp]))
            step = step.plus(self._whole(0.0, nothing, lam, p, x, False, users, 0 * at.v, 0 * at.v, 0.0))
        self.rough = self.rough and least < 50 * sharp
        return best

    def longest(self, step: Change) -> float:
        """The longest step, at most 1, that leaves nothing negative."""
        q, at = self.market, self.at
        pays = step.p + q.on_users(q.sign * step.xi)
        falls = [step.y, step.z, (step.lam / np.maximum(at.lam, TINY))[q.row], step.w / at.w]
        falls += [step.x / at.x / 0.95, pays / self.pays / 0.95, step.xi / at.xi, step.v / at.v]
        return 1 / max(max(float(-each.min(initial=0.0)) for each in falls), 1.0)

    def aims(self) -> tuple[Change, float]:
        """Predictor, corrector and centring correctors: the step, and how far it goes."""
        q, at = self.market, self.at
        self.factor()
        of_row, of_limit = self.weights[1], q.bound * self._worth_of_limits
        lw, xv = np.where(q.row, at.lam * at.w, 0.0), at.xi * at.v
        aim = self.direction(-1.0, -lw, -xv)
        t = self.longest(aim)
        bent, there = (
            aim.y * aim.z,
            at._replace(**{name: getattr(at, name) + t * getattr(aim, name) for name in _LATER}),
        )
        whole, curved = float(self.product.sum()), float(self.product @ bent)
        target = (self._mean(whole * (1 - t) + t * t * curved, there) / self.mu) ** 3
        target = min(max(target, 1e-6), (0.05 if q.plain else 0.1) if t > 0.1 else 0.5) * self.mu
        if self.mu > 1e-4:
            target = max(target, min(0.005 * self.missed, 0.5 * self.mu))
        bend = np.log(self.pays + t * (aim.p + q.on_users(q.sign * aim.xi))) + q.level
        most = 0.5 * np.minimum(self.worth.elastic, 1.0)
        bend = np.clip(bend - q.worth(there.x, there.tilt).log - (1 - t) * self.rho, -most, most)
        aimed = target / self.product
        step = self.direction(
            aimed - bent - 1,
            np.where(q.row, target * of_row - lw - aim.lam * aim.w, 0.0),
            target * of_limit - xv - aim.xi * aim.v,
            bend,
        )
        t = self.longest(step)
        for _ in range(5):
            if t > 0.9:
                break
            far = min(1.1 * t + 0.5 if q.plain else t + 0.3, 1.0)
            pairs = (1 + far * step.y) * (1 + far * step.z)
            rows = np.where(q.row, (at.lam + far * step.lam) * (at.w + far * step.w) / of_row, target)
            limits = (at.xi + far * step.xi) * (at.v + far * step.v) / of_limit
            low, high = (0.2, 5.0) if q.plain else (0.1, 10.0)
            groups = (pairs, aimed), (rows, target), (limits, target)
            asked = [np.maximum(np.clip(one, low * aim, high * aim) - one, -high * aim) for one, aim in groups]
            tried = self.direction(asked[0], asked[1] * of_row, asked[2] * of_limit, wrong=False)
            tried = step.plus(tried)
            longer = self.longest(tried)
            if longer < t + (0.01 * (far - t) if q.plain else 0.02):
                break
            step, t = tried, longer
        step = self.finished(step, max(1e-2 * min(self.mu, 1.0), 1e-15))
        longest = self.longest(step)
        self.rough = self.rough and longest > 0.95 * t
        return step, longest


@dataclass(frozen=True)
class Candidate:
    """Fractions (pairs,) of a feasible allocation, log prices of whole capacities (rows,), their error, and steps."""

    fractions: Array
    log_rows: Array
    error: float
    steps: int
    warm: Start | None = None
    off: float = 0.0  # by what the weight of the sum of shares is to change, if it was held


def run(
    problem: Problem, tol: float, start: object = None, most: int = 60, patience: float = math.inf,
    weight: float | None = None,
) -> Candidate:  # fmt: skip
    """The best point of a run; from a start for another alpha if it fits and that leads somewhere.

    `patience`: it ends after so many steps in which products do not halve, nor alpha grows.
    """
    polytope = problem.polytope
    q, warm = Market(problem, weight), None
    following = isinstance(start, Start) and q.fits(start)
    at = first = q.begin_from(start) if following and isinstance(start, Start) else q.begin()
    best = Candidate(np.zeros(len(polytope.gamma)), np.full(len(polytope.row_server), -np.inf), np.inf, 0)
    weights = q.weights(at)
    q.even(at, weights)
    step, since, short, slow, least, lowest = Step(q, at, weights, True), 0, 0, 0, np.inf, np.inf
    for number in range(most + 1):
        if not np.isfinite(step.mu + step.missed):
            break
        if q.steep and step.mu > 1e-3 and step.missed < 0.1:
            warm = Start(step.at, q.unit, q.own.alpha)
        if q.steep and step.mu * len(at.y) <= tol * len(at.x) and step.missed < 1e-4:
            found = _judged(q, step.at, tol, number)
            since = 0 if found.error < 0.7 * best.error or step.mu < 0.5 * least else since + 1
            best, least = min(best, found, key=lambda one: one.error), min(least, step.mu)
            if best.error <= 0.5 * tol or since > 5 or step.mu < 1e-16:
                break
        change, t = step.aims()
        t = min(1.0, t * (0.9 if t < 0.9 else max(0.95, 1 - np.sqrt(10 * step.mu))))
        for _ in range(8):
            there = step.at.along(change, t)
            follow = q.follow[0] if step.mu > 1e-4 else q.follow[1]
            of_pairs, of_rows = q.weights(there)
            then = np.maximum(of_pairs, follow * weights[0]), np.maximum(of_rows, follow * weights[1])
            new = Step(q, there, then, step.rough)
            if new.missed + new.mu <= 2 * (step.missed + step.mu) + 1e-9:
                break
            t /= 2
        gains = q.steep and step.mu < 0.5 * lowest
        slow, lowest = (0, step.mu) if gains else (slow + 1, lowest)
        if slow > patience:
            break
        if t < 0.5 and step.mu < 1e-9:  # rounding is about all that is left: others find last digits from here
            since += 2
        short = short + 1 if t < 0.01 else 0
        if short > 10 and q.power > _GENTLE:
            break
        step, weights = new, then
        if not q.steep and step.missed < 0.3:
            steeper = _STEEPER if q.log_gamma is None else _STEEPER_GAME
            slow = 0
            at = q.steepened(step.at, min(q.own.alpha * steeper, problem.criterion.alpha))
            weights = q.weights(at)
            step = Step(q, at, weights, step.rough)
    if np.isinf(best.error) and np.isfinite(step.mu + step.missed):
        best = _judged(q, step.at, tol, most)
    if following and best.error > tol:
        return run(problem, tol, patience=patience)
    if q.tilted and best.error > tol and most > 1:
        best = min(best, _weighed(problem, tol, first.tilt), key=lambda one: one.error)
    return replace(best, warm=warm, off=q.tilt(step.at.x, free=True)[0] - step.at.tilt)


def _weighed(problem: Problem, tol: float, weight: float) -> Candidate:
    """The weight of the sum of shares by Brent's method, each in a run of its own: in one run it may go to and fro."""
    tried: list[Candidate] = []

    def off(weight: float) -> float:
        found = run(problem, tol, weight=weight)
        tried.append(found)
        return 0.0 if found.error <= tol else found.off

    length, here = 8.0, off(weight)
    for _ in range(8):
        further = weight + math.copysign(length, here)
        there = off(further)
        if not here * there > 0:
            break
        weight, here, length = further, there, 2 * length
    if here * there < 0:
        optimize.brentq(off, weight, further, xtol=1e-12, maxiter=30)
    best = min(tried, key=lambda one: one.error)
    return replace(best, steps=sum(each.steps for each in tried))


def _judged(q: Market, at: Point, tol: float, steps: int) -> Candidate:
    polytope = q.polytope
    fractions = polytope.inside(at.y * q.pairs.of_user(q.unit) / polytope.gamma)
    log_rows = np.log(at.lam[polytope.row_server, polytope.row_resource]) + q.level
    error = error_at(polytope, q.problem.criterion, polytope.allocation(fractions), log_rows, tol)
    return Candidate(fractions, log_rows, error, steps)
