r"""The data of concave welfare and of the game in units of a problem, and where a run of `welfare` begins.

alpha has two ends at which the game is known: at 1 it is one program, and its limit at infinity is PS-DSF, whose prices
of servers P and tasks X `choices` finds where demands are positive. Near that end the game is measured in its limit:
prices of servers in `P_i^alpha`, what users pay in what their tasks are worth at X. Then prices and pays are of order 1
whatever alpha is, and a task is worth on a server

.. math::
    (\phi_n \gamma_{ni} / (P_i X_n))^\alpha \le 1

beside its price, 1 where n runs in the limit. Choices as smooth as `_SMOOTH / alpha` are where the run begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..model._arrays import Array
from ..model.criterion import Criterion, FairnessEfficiency, log_sum
from ..model.problem import Problem
from .algebra import Pairs
from .choices import Choices, Users

TINY = 1e-300
#: Where alpha begins.
GENTLE = 4.0
#: So far above a unit of welfare, in logarithms, worth no longer grows: numbers of who has a limit would overflow.
_MOST = 500.0
#: Temperature of the choices near PS-DSF from which the game begins, times alpha, and the least worth of a task there,
#: in logarithms: nobody goes where it is worth less.
_SMOOTH, _WORTHLESS = 0.25, -300.0
#: Limits of task counts are far from what a user has in PS-DSF up to this part of them.
_FAR = 0.9
#: Steps of mirror descent to a first point, and over how many of them it is an average: they go to and fro.
_DESCENTS, _LAST = 25, 13
#: With more pairs, most users being on most servers, welfare without limits takes another start, and bolder steps.
_MANY = 20_000


class Worth(NamedTuple):
    """Marginal worth of a unit, and its derivatives."""

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
    level: float  # log of the unit of lam, z, p and xi

    def along(self, step: Change, t: float) -> Point:
        """Point after a part t of a step."""
        parts: Any = (one + t * change for one, change in zip(self[2:], step[2:], strict=True))  # type: ignore[operator]
        return Point(self.y * (1 + t * step.y), self.z * (1 + t * step.z), *parts)


class Change(NamedTuple):
    """Change of a point; amounts and slacks of pairs relative to themselves.

    Prices change in units of `level`, the log of what all pay, which changes by itself.
    """

    y: Array
    z: Array
    lam: Array
    w: Array
    x: Array
    p: Array
    xi: Array
    v: Array
    tilt: float
    level: float

    def plus(self, other: Change) -> Change:
        """Sum of two changes."""
        parts: Any = (one + more for one, more in zip(self, other, strict=True))  # type: ignore[operator]
        return Change(*parts)


class Market:
    """Data of a problem, scaled so that users have about 1."""

    def __init__(self, problem: Problem, weight: float | None = None) -> None:
        #: At which the log of the weight of the sum of shares is held, if it is.
        self.weight = weight
        self.most = np.inf
        polytope, rule = problem.polytope, problem.criterion
        self.polytope, self.problem = polytope, problem
        servers = polytope.cluster.shape[1]
        crowd = np.bincount(polytope.pair_server, minlength=servers)
        self.unit: Array = np.bincount(polytope.pair_user, polytope.gamma / crowd[polytope.pair_server]).astype(float)
        self.unit = np.minimum(self.unit, polytope.limit)
        self.pairs = self._pairs()
        self.row = self.pairs.present
        own = self.own = rule.restrict(polytope.users)
        #: The game's limit, from which it begins, and logs of units of pay (users,) and of prices (servers,).
        self.limit: Choices | None = None
        self.log_user, self.log_server = np.zeros(len(self.unit)), np.zeros(servers)
        #: In the game logs of what a user could run on a server, beside the most on any, (pairs,).
        self.log_gamma: Array | None = None
        if rule.scope == "game":
            largest = np.maximum.reduceat(polytope.gamma, polytope.start[:-1])
            self.log_gamma = np.log(polytope.gamma / largest[polytope.pair_user])
            self.own = own = replace(own, share=1 / largest)
            if type(rule) is Criterion and rule.alpha > GENTLE:
                self._near_limit()
        #: What of each user a server could run, (pairs,).
        self.size = 1 / self.pairs.takes.max(axis=1)
        if self.limit is None and not isinstance(own, FairnessEfficiency):
            self._take(min(own.alpha, GENTLE))
        limited, floored = polytope.limited, np.flatnonzero(own.floor > 0)
        self.user = np.concatenate([limited, floored])
        self.sign = np.repeat([1.0, -1.0], [len(limited), len(floored)])
        self.bound = np.concatenate([polytope.limit[limited], own.floor[floored]]) / self.unit[self.user]
        self.of_row = self.of_limit = 1.0
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

    def _pairs(self) -> Pairs:
        """Pairs in units of users."""
        cluster = self.polytope.cluster
        with np.errstate(divide="ignore"):
            inverse = np.where(cluster.capacity > 0, 1 / cluster.capacity, 0.0)
        demand = cluster.demand[self.polytope.users] * self.unit[:, None]
        return Pairs(self.polytope.pair_user, self.polytope.pair_server, demand, inverse)

    def _near_limit(self) -> None:
        """Measure the game in its limit, if that has no zero demands nor limits near what users have."""
        pairs, own, polytope = self.pairs, self.own, self.polytope
        if not ((pairs.takes > 0) | ~self.row[pairs.server]).all():
            return
        gain = np.log((own.weight / self.unit)[pairs.user] * polytope.gamma)
        near = Choices(Users(pairs.start, pairs.user, pairs.server, gain, pairs.takes, self.row))
        near.cool(_SMOOTH / own.alpha)
        if near.tau > _SMOOTH / own.alpha or not (near.total * self.unit < _FAR * polytope.limit).all():
            return
        self.limit, self.unit = near, self.unit * near.total
        self.pairs, self.most = self._pairs(), _MOST
        self.log_user, self.log_server = own.log_marginal(self.unit) + np.log(self.unit), own.alpha * near.price
        self._take(own.alpha)

    def _take(self, alpha: float) -> None:
        """Switch to another alpha; in the game the worth of a task on each server follows."""
        self.own = replace(self.own, alpha=alpha)
        if self.log_gamma is not None:
            log = (alpha - 1) * self.log_gamma + self.pairs.of_user(self.log_user)
            self.pairs = self.pairs.worth(np.exp(np.maximum(log - self.log_server[self.pairs.server], _WORTHLESS)))

    @property
    def steep(self) -> bool:
        """True once alpha has reached the problem's."""
        return self.own.alpha >= self.problem.criterion.alpha

    @property
    def power(self) -> float:
        """Exponent max(alpha, 1) between log prices and log levels."""
        return max(self.own.alpha, 1.0)

    @property
    def tilted(self) -> bool:
        """True if marginal worth has a free weight on the sum of shares."""
        return isinstance(self.own, FairnessEfficiency) and self.weight is None

    def worth(self, x: Array, tilt: float) -> Worth:
        """Marginal worth at tasks x (users,), in scaled units."""
        own, tasks, log_unit = self.own, x * self.unit, np.log(self.unit)
        if isinstance(own, FairnessEfficiency):
            log_share = np.log(own.share * tasks)
            fair = own.alpha * (np.log(own.weight) - log_share)
            log = np.logaddexp(fair, tilt)
            part = np.exp(tilt - log)
            return Worth(log + np.log(own.share) + log_unit, own.alpha * (1 - part), part)
        log = own.log_marginal(tasks) + log_unit - self.log_user
        return Worth(np.minimum(log, self.most), np.where(log < self.most, own.elasticity(tasks), 0.0), 0.0)

    def tilt(self, x: Array, free: bool = False) -> tuple[float, Array]:
        """Log weight of the sum of shares at tasks x (users,), and its derivatives by log x.

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
        """Units of products: of pairs the smaller turnover of user and server, of rows `of_rows`."""
        pairs, cost = self.pairs, self.pairs.cost(at.lam)
        turnover = np.minimum(pairs.of_user(at.x), self.size)
        turnover *= pairs.of_user(pairs.least(cost))
        return turnover, self.of_rows(cost)

    def even(self, at: Point, weights: tuple[Array, Array]) -> None:
        """Scale units of rows and limits so that products at the starting point are about equal."""
        pair = float((at.y * at.z / weights[0]).mean())
        self.of_row = float(np.sqrt(max((at.lam * at.w / weights[1])[self.row].mean() / pair, 1.0)))
        pays = (at.p + self.on_users(self.sign * at.xi))[self.user]
        if len(pays):
            self.of_limit = float(np.sqrt(max((at.xi * at.v / (self.bound * pays)).mean() / pair, 1.0)))

    def of_rows(self, cost: Array) -> Array:
        """Units of products of rows, (servers, resources): the price at which a row alone is the cost of a pair."""
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
        """Sum over limits of each user, (users,)."""
        if not len(self.user):
            return np.zeros(len(self.unit))
        return np.asarray(np.bincount(self.user, of_limits, len(self.unit)), dtype=float)

    def begin(self) -> Point:
        """Starting point by mirror descent in logs: prices follow use, amounts follow worth over cost.

        Near the limit of the game it is that, with one price for all resources of a server.
        """
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
        if self.limit is not None:
            y = np.zeros(len(size))
            y[self.limit.pairs] = self.limit.near
            means = [y, np.full(self.row.shape, -np.log(self.row.shape[1]) / power), excess]
        for number in range(_DESCENTS if self.limit is None else 0):
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
        p = np.exp(self.worth(x, self.tilt(x)[0]).log - top - power * excess)
        p = np.minimum(p, 0.9 * pairs.least(cost))
        z = np.maximum(cost - pairs.of_user(p), 0.1 * cost)
        turnover = np.minimum(pairs.of_user(x), size) * pairs.of_user(pairs.least(cost))
        y = np.maximum(y, np.minimum(0.05 * turnover / z, 0.07 * size / crowd[pairs.server]))
        z = np.minimum(z, turnover / y)
        y = y * (0.9 / np.maximum(pairs.use(y).max(axis=1), 0.9))[pairs.server]
        # Where alpha is large nobody's worth is that of nine tenths of its tasks.
        x = pairs.sums(y) if self.limit is None else np.exp(-(np.log(p) + top) / power)
        shrink = np.ones(len(x))
        shrink[who] = 0.9 / np.maximum(x[who] / cap, 0.9)
        y, x = y * pairs.of_user(shrink), x * shrink
        tilt = self.tilt(x)[0]
        worth = np.exp(self.worth(x, tilt).log - top)
        w = np.where(self.row, np.maximum(1 - pairs.use(y), 0.1), 1.0)
        at_limit = np.where(excess > 0, np.maximum(worth - p, 0.1 * p), 0.1 * p)[self.user]
        v = np.maximum(self.sign * (self.bound - x[self.user]), 0.1 * np.maximum(x[self.user], self.bound))
        return Point(y, z, lam, w, x, p, at_limit, v, tilt, top)

    def _even(self) -> Point:
        """Starting point with servers split evenly and uniform prices per resource."""
        pairs, crowd = self.pairs, np.bincount(self.pairs.server, minlength=len(self.pairs.inverse))
        y = self.size / crowd[pairs.server]
        y = y * (0.8 / pairs.use(y)[self.row].mean())
        x = pairs.sums(y)
        tilt = self.tilt(x)[0]
        log = self.worth(x, tilt).log
        level = float(log_sum(log + np.log(x)) - np.log(len(x)))  # users spend 1 on average
        p = np.maximum(np.exp(log - level), 1e-12)
        part = np.divide(1.0, pairs.inverse, out=np.zeros(self.row.shape), where=self.row)
        part /= np.maximum(part.sum(axis=0), TINY)
        lam = np.where(self.row, len(x) * np.maximum(part / part.sum(), 1e-12), 0.0)
        cost, pays = pairs.cost(lam), pairs.of_user(p)
        z = np.maximum(cost - pays, 0.1 * np.maximum(cost, pays))
        w = np.where(self.row, np.maximum(1 - pairs.use(y), 0.1), 1.0)
        return Point(y, z, lam, w, x, p, np.zeros(0), np.zeros(0), tilt, level)

    def steepened(self, at: Point, alpha: float) -> Point:
        """Starting point for a larger alpha: prices of rows grow by powers of the levels of their users."""
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
        level = at.level * alpha / own.alpha + top
        self.most = level + _MOST
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
        more = at.x * np.expm1(np.clip((missed - level) / self.power, -2.0, 2.0))
        toward = np.where(at.xi * self.bound > at.v * pays[self.user], np.inf, self.sign * more[self.user])
        more[self.user] = self.sign * np.minimum(toward, 0.5 * at.v)
        x, y = at.x + more, at.y * pairs.of_user(1 + more / at.x)
        excess = self.sign * (np.exp(self.worth(x, at.tilt).log - level) - at.p)[self.user]
        xi = np.where(toward < 0.5 * at.v, at.xi, np.maximum(excess, 0.1 * at.xi))
        return at._replace(y=y, x=x, xi=xi, v=at.v - self.sign * more[self.user], level=level)

    def begin_from(self, start: Start) -> Point:
        """Starting point from that of another alpha, in the median user's unit."""
        at = start.point
        self._take(start.alpha)
        pays = at.p + self.on_users(self.sign * at.xi)
        level = float(np.median(self.worth(at.x, at.tilt).log - np.log(pays)))
        return self.steepened(at._replace(level=level), self.problem.criterion.alpha)

    def fits(self, start: Start) -> bool:
        """True if a warm start has the same pairs, limits and units; at alpha = 0 its prices say nothing of levels."""
        at, own = start.point, (self.size.shape, self.row.shape, self.bound.shape)
        alike = (at.y.shape, at.lam.shape, at.xi.shape) == own and np.array_equal(start.unit, self.unit)
        return alike and self.limit is None and start.alpha > 0


@dataclass(frozen=True)
class Start:
    """Warm start for another alpha."""

    point: Point
    unit: Array
    alpha: float
