r"""Scaled data of a concave welfare program or of the game, and starting points of the interior-point method `welfare`.

The game is tractable at two values of alpha: at 1 it is a single convex program, and its limit for alpha to infinity is
PS-DSF, whose levels l of servers and tasks X follow from a choice model (`choices`) if all demands are positive. For a
large alpha the game is scaled by this limit: prices of server i in units of :math:`l_i^{-\alpha}`, prices of users in
units of their marginal utilities at X. Prices are then of order 1 at every alpha, and the scaled marginal utility of a
task of n on server i is

.. math::
    (\phi_n \gamma_{ni} l_i / X_n)^\alpha \le 1,

with equality where n has tasks in the limit. The starting point is then the smoothed choice at the temperature
`_TEMPERATURE / alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..model._arrays import Array, Index
from ..model.criterion import Criterion, FairnessEfficiency, log_sum
from ..model.problem import Problem
from .accuracy import CONVERGED
from .algebra import Pairs
from .central_path import DAMPING, DESCENTS, FULL, LEAST, LEAST_PART, LEAST_SHARE, LOAD
from .choices import Choices, Users
from .factors import LOG_RANGE, TINY
from .state import LARGEST_POWER

#: First alpha of the continuation in alpha: at larger alpha prices of servers may be decades apart.
FIRST_ALPHA = LARGEST_POWER
#: Upper bound of log marginal utilities in the unit of prices, as those of users with small limits could overflow.
_LOG_CAP = 500.0
#: Temperature of the choice model at the starting point, times alpha (`_TEMPERATURE`); and lower bound of log marginal
#: utilities in units of the limit PS-DSF, at which tasks of a pair are zero in double precision (`_LEAST_LOG_VALUE`).
_TEMPERATURE, _LEAST_LOG_VALUE = 0.25, -LOG_RANGE / 2
#: The game is scaled by PS-DSF, computed without task limits, only if its tasks are below this fraction of all limits.
_BELOW_LIMIT = 0.9
#: Distance of log prices of users from their median up to which they are kept when alpha changes.
_SPREAD = 1.0
#: Mean utilization at the uniform starting point.
_MEAN_LOAD = 0.8
#: Mirror descent: number of last iterates that are averaged, since they oscillate (`_AVERAGED`), and damping of log
#: prices (`_PRICE_DAMPING`).
_AVERAGED, _PRICE_DAMPING = 13, 0.35
#: Least relative price at the uniform starting point.
_LEAST_PRICE = CONVERGED
#: Least ratios of the units of complementarity products in successive steps, for large and for small mu: in general
#: (`_DECAY`), where prices may oscillate, and in games without limits (`_DECAY_OF_GAMES`), where units must follow
#: prices that decrease by decades.
_DECAY, _DECAY_OF_GAMES = (0.7, 0.3), (0.1, 0.001)
#: Least complementarity product of a pair at the starting point, relative to its unit.
_LEAST_PRODUCT = 0.05
#: Number of pairs above which dense welfare programs without limits start from an even split and take longer steps.
_LARGE = 20_000


class MarginalUtility(NamedTuple):
    """Log marginal utility of a user's unit of tasks, and its derivatives."""

    log: Array  # (users,)
    elasticity: Array  # (users,), minus the derivative of `log` in the log of tasks
    part: Array | float  # (users,), derivative of `log` in the log weight of the sum of shares


class Point(NamedTuple):
    """Primal-dual iterate, in units of users and of whole capacities; `fairopt.core` has the notation."""

    y: Array  # (pairs,)
    z: Array  # (pairs,)
    lam: Array  # (servers, resources)
    w: Array
    x: Array  # (users,)
    p: Array
    xi: Array  # (limits,)
    v: Array
    log_weight: float  # log weight of the sum of shares, in fairness-efficiency
    level: float  # log of the unit of lam, z, p and xi

    def along(self, step: Change, t: float) -> Point:
        """Iterate after a step of length t along a direction."""
        parts: Any = (one + t * change for one, change in zip(self[2:], step[2:], strict=True))  # type: ignore[operator]
        return Point(self.y * (1 + t * step.y), self.z * (1 + t * step.z), *parts)


class Change(NamedTuple):
    """Search direction: changes of all variables of an iterate, where changes of y and z are relative to their values.

    Prices are in the unit exp(level), and the level of all prices is an unknown of its own.
    """

    y: Array
    z: Array
    lam: Array
    w: Array
    x: Array
    p: Array
    xi: Array
    v: Array
    log_weight: float
    level: float

    def plus(self, other: Change) -> Change:
        """Sum of two directions."""
        parts: Any = (one + more for one, more in zip(self, other, strict=True))  # type: ignore[operator]
        return Change(*parts)


class Market:
    r"""Scaled data of a problem: capacities are one, and every user has about one unit of tasks.

    The unit of a user is the number of tasks that equal parts of its servers could run, at most its limit,

    .. math:: unit_n = \min\Big(\sum_i \gamma_{ni} / N_i,\ q_n\Big)

    with the number :math:`N_i` of users of server i. In the game shares per task are the inverse of a user's largest
    gamma, and `Pairs.value` has the marginal utilities of a task on the other servers relative to that server. The game
    at alpha above `FIRST_ALPHA` is scaled by its limit PS-DSF if all demands are positive and no limit is near; any
    other problem begins at an alpha of at most `FIRST_ALPHA`, which is increased during the iterations.

    Parameters
    ----------
    weight : fixed log weight of the sum of shares in fairness-efficiency; None if it is an unknown

    Attributes
    ----------
    unit : (users,), tasks per unit
    pairs : pairs with demands per unit
    row : (servers, resources), rows that some pair uses
    own : criterion of the users of the polytope, at the current alpha
    user, sign, bound : (limits,), users with a limit (sign 1) or a floor (sign -1), and the limit or floor in units
    """

    def __init__(self, problem: Problem, weight: float | None = None) -> None:
        #: Fixed log weight of the sum of shares, or None if it is an unknown.
        self.weight = weight
        self.log_cap = np.inf
        polytope, rule = problem.polytope, problem.criterion
        self.polytope, self.problem = polytope, problem
        servers = polytope.cluster.shape[1]
        contention = np.bincount(polytope.pair_server, minlength=servers)
        self.unit: Array = np.bincount(polytope.pair_user, polytope.gamma / contention[polytope.pair_server]).astype(
            float
        )
        self.unit = np.minimum(self.unit, polytope.limit)
        self.pairs = self._pairs()
        self.row = self.pairs.present
        own = self.own = rule.restrict(polytope.users)
        #: PS-DSF, the limit of the game by which it is scaled, and log units of prices of users and of servers.
        self.limit: Choices | None = None
        self.log_user_unit, self.log_server_unit = np.zeros(len(self.unit)), np.zeros(servers)
        #: Log ratios of gamma to the user's largest gamma, (pairs,); None outside the game.
        self.log_gamma: Array | None = None
        if rule.scope == "game":
            largest = np.maximum.reduceat(polytope.gamma, polytope.start[:-1])
            self.log_gamma = np.log(polytope.gamma / largest[polytope.pair_user])
            self.own = own = replace(own, share=1 / largest)
            if type(rule) is Criterion and rule.alpha > FIRST_ALPHA:
                self._near_limit()
        #: Monopoly tasks in the user's unit, (pairs,).
        self.size = 1 / self.pairs.takes.max(axis=1)
        if self.limit is None and not isinstance(own, FairnessEfficiency):
            self._set_alpha(min(own.alpha, FIRST_ALPHA))
        limited, floored = polytope.limited, np.flatnonzero(own.floor > 0)
        self.user = np.concatenate([limited, floored])
        self.sign = np.repeat([1.0, -1.0], [len(limited), len(floored)])
        self.bound = np.concatenate([polytope.limit[limited], own.floor[floored]]) / self.unit[self.user]
        self.row_unit = self.limit_unit = 1.0
        game = self.log_gamma is not None
        self.weight_decay = _DECAY_OF_GAMES if game and not len(self.user) else _DECAY
        #: Large dense welfare programs without limits, whose prices do not oscillate: longer steps are safe.
        self.large = not (game or len(self.user)) and len(self.size) > _LARGE and rule.alpha > 0
        self.large = self.large and type(own) in (Criterion, FairnessEfficiency) and self.pairs.dense
        if self.large:
            self.weight_decay = LEAST, LEAST
        self.log_weight_ratio = 0.0
        if isinstance(rule, FairnessEfficiency):
            self.log_weight_ratio = float(np.log(rule.efficient) - np.log(rule.fair))

    def _pairs(self) -> Pairs:
        """Pairs with demands in the units of users."""
        cluster = self.polytope.cluster
        with np.errstate(divide="ignore"):
            inverse = np.where(cluster.capacity > 0, 1 / cluster.capacity, 0.0)
        demand = cluster.demand[self.polytope.users] * self.unit[:, None]
        return Pairs(self.polytope.pair_user, self.polytope.pair_server, demand, inverse, per=self.polytope.per_work)

    def _near_limit(self) -> None:
        """Scale the game by PS-DSF, if all demands are positive and its tasks are well below the limits."""
        pairs, own, polytope = self.pairs, self.own, self.polytope
        if not ((pairs.takes > 0) | ~self.row[pairs.server]).all():
            return
        gain = np.log((own.weight / self.unit)[pairs.user] * polytope.gamma)
        reference = Choices(Users(pairs.start, pairs.user, pairs.server, gain, pairs.takes, self.row, pairs.inverse))
        reference.cool(_TEMPERATURE / own.alpha)
        if (
            reference.tau > _TEMPERATURE / own.alpha
            or not (reference.total * self.unit < _BELOW_LIMIT * polytope.limit).all()
        ):
            return
        self.limit, self.unit = reference, self.unit * reference.total
        self.pairs, self.log_cap = self._pairs(), _LOG_CAP
        self.log_user_unit, self.log_server_unit = (
            own.log_marginal(self.unit) + np.log(self.unit),
            own.alpha * reference.price,
        )
        self._set_alpha(own.alpha)

    def _set_alpha(self, alpha: float) -> None:
        """Set alpha, and in the game marginal utilities of tasks on each server relative to the user's best server."""
        self.own = replace(self.own, alpha=alpha)
        if self.log_gamma is not None:
            log = (alpha - 1) * self.log_gamma + self.pairs.of_user(self.log_user_unit)
            self.pairs = self.pairs.with_value(
                np.exp(np.maximum(log - self.log_server_unit[self.pairs.server], _LEAST_LOG_VALUE))
            )

    @property
    def at_final_alpha(self) -> bool:
        """True if alpha has attained the alpha of the problem."""
        return self.own.alpha >= self.problem.criterion.alpha

    @property
    def power(self) -> float:
        """Exponent max(alpha, 1) between log prices and log levels."""
        return max(self.own.alpha, 1.0)

    @property
    def log_weight_free(self) -> bool:
        """True if the weight of the sum of shares is an unknown (fairness-efficiency)."""
        return isinstance(self.own, FairnessEfficiency) and self.weight is None

    def marginal_utility(self, x: Array, log_weight: float) -> MarginalUtility:
        """Log marginal utilities and derivatives at tasks x (users,), in scaled units."""
        own, tasks, log_unit = self.own, x * self.unit, np.log(self.unit)
        if isinstance(own, FairnessEfficiency):
            log_share = np.log(own.share * tasks)
            fair = own.alpha * (np.log(own.weight) - log_share)
            log = np.logaddexp(fair, log_weight)
            part = np.exp(log_weight - log)
            return MarginalUtility(log + np.log(own.share) + log_unit, own.alpha * (1 - part), part)
        log = own.log_marginal(tasks) + log_unit - self.log_user_unit
        return MarginalUtility(
            np.minimum(log, self.log_cap), np.where(log < self.log_cap, own.elasticity(tasks), 0.0), 0.0
        )

    def log_weight(self, x: Array, free: bool = False) -> tuple[float, Array]:
        """Log weight of the sum of shares that tasks x (users,) imply, and its derivatives (users,) in log x.

        A fixed weight is returned unchanged, unless `free`. Criteria other than fairness-efficiency have the weight 0.
        """
        own = self.own
        if not isinstance(own, FairnessEfficiency) or (self.weight is not None and not free):
            return self.weight or 0.0, np.zeros(len(x))
        log_share = np.log(own.share * x * self.unit)
        powers = own.alpha * np.log(own.weight) + (1 - own.alpha) * log_share
        total, fair = log_sum(log_share), log_sum(powers)
        slope = (1 - own.alpha) * np.exp(powers - fair) - np.exp(log_share - total)
        return self.log_weight_ratio + fair - total, slope

    def excludes(self, tasks: Array, at: Point, tol: float) -> bool:
        r"""True if prices prove at alpha = 1 that no allocation has the welfare of `tasks` (users,), by weak duality:

        .. math::
            \sum_n \phi_n \log x_n \le \sum_{i,r} \lambda_{ir} + \sum_n \phi_n \Big(\log \frac{\phi_n}{p_n} - 1\Big),
            \qquad p_n = \min_i \sum_r d_{nr} \frac{\lambda_{ir}}{c_{ir}}
        """
        phi, lam = self.own.weight, np.exp(at.level) * at.lam
        most = np.log(phi * self.unit / self.pairs.least(self.pairs.cost(lam))) - 1
        return bool(lam[self.row].sum() + phi @ most < phi @ (np.log(tasks) - tol))

    def product_units(self, at: Point) -> tuple[Array, Array]:
        """Units of complementarity products of pairs (pairs,), and of rows (servers, resources) by `row_units`.

        The unit of a pair is the least cost of its user's tasks, or of the pair's monopoly tasks if these are fewer.
        """
        pairs, cost = self.pairs, self.pairs.cost(at.lam)
        turnover = np.minimum(pairs.of_user(at.x), self.size)
        turnover *= pairs.of_user(pairs.least(cost))
        return turnover, self.row_units(cost)

    def balance(self, at: Point, product_units: tuple[Array, Array]) -> None:
        """Increase units of products of rows and limits towards equal mean scaled products at the starting point."""
        pair_mean = float((at.y * at.z / product_units[0]).mean())
        self.row_unit = float(np.sqrt(max((at.lam * at.w / product_units[1])[self.row].mean() / pair_mean, 1.0)))
        full_price = (at.p + self.on_users(self.sign * at.xi))[self.user]
        if len(full_price):
            self.limit_unit = float(np.sqrt(max((at.xi * at.v / (self.bound * full_price)).mean() / pair_mean, 1.0)))

    def row_units(self, cost: Array) -> Array:
        """Units of products of rows, (servers, resources): the least price that alone is the cost of some pair."""
        pairs, result = self.pairs, np.ones((len(self.row), self.pairs.inverse.shape[1]))
        cost = cost if pairs.value is None else cost * pairs.value
        if pairs.dense:
            table = pairs.table(cost if pairs.per is None else cost / pairs.per, np.inf)
        with np.errstate(divide="ignore"):
            for r in range(result.shape[1]):
                if pairs.dense:
                    unit_cost = (table / pairs.demand[:, r, None]).min(axis=0)
                    unit_cost /= pairs.inverse[:, r]
                else:
                    unit_cost = np.full(len(result), np.inf)
                    np.minimum.at(unit_cost, pairs.server, cost / pairs.takes[:, r])
                result[:, r] = unit_cost
        return self.row_unit * np.where(self.row, result, 1.0)

    def on_users(self, of_limits: Any) -> Array:
        """Sum of values (limits,) over the limits of each user, (users,)."""
        if not len(self.user):
            return np.zeros(len(self.unit))
        return np.asarray(np.bincount(self.user, of_limits, len(self.unit)), dtype=float)

    def starting_point(self) -> Point:
        """Starting point: uniform prices for large problems, PS-DSF if it scales the game, or mirror descent."""
        if self.large:
            return self._uniform_point()
        if self.limit is None:
            return self._inside(*self._descended())
        y = np.zeros(len(self.size))
        y[self.limit.pairs] = self.limit.near
        equal_prices = np.full(self.row.shape, -np.log(self.row.shape[1]) / self.power)
        return self._inside(y, equal_prices, np.zeros(len(self.unit)))

    @property
    def _contention(self) -> Index:
        """(servers,), number of users of each server."""
        return np.bincount(self.pairs.server, minlength=len(self.pairs.inverse))

    @property
    def _capped(self) -> tuple[Index, Array]:
        """Users with a limit, and their limits in units, both (limited users,)."""
        return self.user[self.sign > 0], self.bound[self.sign > 0]

    def _relative_prices(self, log_lam: Array) -> tuple[Array, float]:
        """Prices (servers, resources) from log level prices, in the unit of the largest price, and this unit's log."""
        top = self.power * log_lam[self.row].max()
        return np.where(self.row, np.exp(np.maximum(self.power * log_lam - top, -LOG_RANGE)), 0.0), top

    def _descended(self) -> tuple[Array, Array, Array]:
        """Mirror descent from an even split: tasks y (pairs,), log level prices of rows and of limits (users,).

        In each of `DESCENTS` iterations log prices follow the use of rows and limits, and log tasks the reduced costs,
        by damped and bounded changes. The last iterates, which oscillate, are averaged.
        """
        pairs, power, size = self.pairs, self.power, self.size
        y = LOAD * size / self._contention[pairs.server]
        (capped, cap), excess, log_lam = self._capped, np.zeros(len(self.unit)), np.zeros(0)
        means: list[Any] = [0.0, 0.0, 0.0]
        for iteration in range(DESCENTS):
            x = pairs.sums(y)
            limit_use = x[capped] / cap
            shrink = np.ones(len(x))
            shrink[capped] = LOAD / np.maximum(limit_use, LOAD)
            y, x = y * pairs.of_user(shrink), x * shrink
            excess[capped] = np.maximum(excess[capped] + DAMPING * np.maximum(np.log(limit_use / LOAD), -1), 0.0)
            marginal = self.marginal_utility(x, self.log_weight(x)[0]).log / power - excess
            if iteration == 0:
                first_price = np.full(len(pairs.inverse), -np.inf)
                np.maximum.at(
                    first_price, pairs.server, pairs.of_user(marginal) - np.log(pairs.over_value(1 / size)) / power
                )
                log_lam = np.repeat(first_price[:, None], pairs.inverse.shape[1], axis=1)
            change = np.log(np.maximum(pairs.use(y), TINY) / LOAD)
            log_lam = log_lam + _PRICE_DAMPING * np.clip(change, -1, 1)
            lam, top = self._relative_prices(log_lam)
            cost = (np.log(np.maximum(pairs.cost(lam), TINY)) + top) / power
            y = np.minimum(y * np.exp(np.clip(DAMPING * (pairs.of_user(marginal) - cost), -2, 2)), size)
            if iteration >= DESCENTS - _AVERAGED:
                means = [mean + one / _AVERAGED for mean, one in zip(means, (y, log_lam, excess), strict=True)]
        return means[0], means[1], means[2]

    def _inside(self, y: Array, log_lam: Array, excess: Array) -> Point:
        """Interior point near tasks y (pairs,), log level prices, and log level prices `excess` of limits (users,)."""
        pairs, power, size, (capped, cap) = self.pairs, self.power, self.size, self._capped
        lam, top = self._relative_prices(log_lam)
        # Every row has at least the share `LEAST_SHARE` in the cost of some pair: Newton's method would hardly change
        # smaller prices.
        lam = np.where(self.row, np.maximum(lam, LEAST_SHARE * self.row_units(pairs.cost(lam))), 0.0)
        cost, x = pairs.cost(lam), pairs.sums(y)
        p = np.exp(self.marginal_utility(x, self.log_weight(x)[0]).log - top - power * excess)
        p = np.minimum(p, FULL * pairs.least(cost))
        z = np.maximum(cost - pairs.of_user(p), LEAST * cost)
        turnover = np.minimum(pairs.of_user(x), size) * pairs.of_user(pairs.least(cost))
        y = np.maximum(y, np.minimum(_LEAST_PRODUCT * turnover / z, LEAST_PART * size / self._contention[pairs.server]))
        z = np.minimum(z, turnover / y)
        y = y * (FULL / np.maximum(pairs.use(y).max(axis=1), FULL))[pairs.server]
        # Near PS-DSF tasks follow from prices: if tasks changed by a tenth, marginal utilities would change by decades.
        x = pairs.sums(y) if self.limit is None else np.exp(-(np.log(p) + top) / power)
        shrink = np.ones(len(x))
        shrink[capped] = FULL / np.maximum(x[capped] / cap, FULL)
        y, x = y * pairs.of_user(shrink), x * shrink
        weight = self.log_weight(x)[0]
        marginal_value = np.exp(self.marginal_utility(x, weight).log - top)
        w = np.where(self.row, np.maximum(1 - pairs.use(y), LEAST), 1.0)
        at_limit = np.where(excess > 0, np.maximum(marginal_value - p, LEAST * p), LEAST * p)[self.user]
        v = np.maximum(self.sign * (self.bound - x[self.user]), LEAST * np.maximum(x[self.user], self.bound))
        return Point(y, z, lam, w, x, p, at_limit, v, weight, top)

    def _uniform_point(self) -> Point:
        """Starting point with servers divided by weight among their users, and uniform prices per resource unit."""
        pairs, weight = self.pairs, self.pairs.of_user(self.own.weight)
        y = self.size * weight / np.bincount(pairs.server, weight, len(pairs.inverse))[pairs.server]
        y = y * (_MEAN_LOAD / pairs.use(y)[self.row].mean())
        x = pairs.sums(y)
        log_weight = self.log_weight(x)[0]
        log = self.marginal_utility(x, log_weight).log
        level = float(log_sum(log + np.log(x)) - np.log(len(x)))  # expenditure is 1 on average
        p = np.maximum(np.exp(log - level), _LEAST_PRICE)
        split = np.divide(1.0, pairs.inverse, out=np.zeros(self.row.shape), where=self.row)
        split /= np.maximum(split.sum(axis=0), TINY)
        lam = np.where(self.row, len(x) * np.maximum(split / split.sum(), _LEAST_PRICE), 0.0)
        cost, full_price = pairs.cost(lam), pairs.of_user(p)
        z = np.maximum(cost - full_price, LEAST * np.maximum(cost, full_price))
        w = np.where(self.row, np.maximum(1 - pairs.use(y), LEAST), 1.0)
        return Point(y, z, lam, w, x, p, np.zeros(0), np.zeros(0), log_weight, level)

    def continued(self, at: Point, alpha: float) -> Point:
        """Starting point for another alpha.

        In the game, prices of rows are raised to the power that the levels of their users imply. In welfare programs,
        log prices of users within `_SPREAD` of the median, weighted by expenditure, are kept, and tasks follow, since
        prices of users on one level of the max-min limit tend to a limit; only what exceeds this distance is raised.
        """
        pairs, own, cost = self.pairs, self.own, self.pairs.cost(at.lam)
        self._set_alpha(alpha)
        pairs = self.pairs
        log_level, ratio, middle = np.log(pairs.least(cost) / (own.share * self.unit)), alpha / own.alpha, 0.0
        apart = log_level
        if self.log_gamma is None:
            order, spent = np.argsort(log_level), at.x * (at.p + self.on_users(self.sign * at.xi))
            total = np.cumsum(spent[order])
            middle = log_level[order[np.searchsorted(total, total[-1] / 2)]]
            apart = log_level - middle - np.clip(log_level - middle, -_SPREAD, _SPREAD)
        level_growth = (ratio - 1) * apart
        part = at.y / (pairs.of_user(at.x) * cost)
        pair_level = pairs.of_user(level_growth)
        if self.log_gamma is not None:  # in the game prices of a server are also proportional to gamma^alpha
            pair_level = pair_level + (alpha - own.alpha) * self.log_gamma
        row_growth = pairs.use(part * pair_level) / np.maximum(pairs.use(part), TINY)
        top = float(row_growth[self.row].max())
        row_growth = np.exp(row_growth - top)
        level = at.level * ratio + top + (ratio - 1) * middle
        self.log_cap = level + _LOG_CAP
        lam = np.where(self.row, at.lam * row_growth, 0.0)
        # Pairs whose costs increase most lose tasks; the price of a user increases at most by the factor of its least
        # cost.
        new_cost = pairs.cost(lam)
        cost_growth = new_cost / cost
        user_growth = pairs.sums(at.y * cost) / pairs.sums(at.y * cost / cost_growth)
        user_growth = np.minimum(user_growth, pairs.least(new_cost) / pairs.least(cost))
        y = at.y * np.minimum(1.0, 3 * pairs.of_user(user_growth) / cost_growth)
        at = at._replace(
            y=y, z=at.z * cost_growth, lam=lam, x=pairs.sums(y), p=at.p * user_growth, xi=at.xi * user_growth[self.user]
        )
        return self._with_tasks_of(at, level)

    def _with_tasks_of(self, at: Point, level: float) -> Point:
        """Adjust tasks to prices in the unit exp(level), which are more accurate than tasks unless a limit binds."""
        pairs = self.pairs
        full_price = at.p + self.on_users(self.sign * at.xi)
        misfit = self.marginal_utility(at.x, at.log_weight).log - np.log(full_price)
        task_change = at.x * np.expm1(np.clip((misfit - level) / self.power, -2.0, 2.0))
        step_to_limit = np.where(
            at.xi * self.bound > at.v * full_price[self.user], np.inf, self.sign * task_change[self.user]
        )
        task_change[self.user] = self.sign * np.minimum(step_to_limit, 0.5 * at.v)
        x, y = at.x + task_change, at.y * pairs.of_user(1 + task_change / at.x)
        excess = self.sign * (np.exp(self.marginal_utility(x, at.log_weight).log - level) - at.p)[self.user]
        xi = np.where(step_to_limit < 0.5 * at.v, at.xi, np.maximum(excess, LEAST * at.xi))
        return at._replace(y=y, x=x, xi=xi, v=at.v - self.sign * task_change[self.user], level=level)

    def warm_point(self, start: Start) -> Point:
        """Starting point from the iterate of another alpha; the median user's price equals its marginal utility."""
        at = start.point
        self._set_alpha(start.alpha)
        full_price = at.p + self.on_users(self.sign * at.xi)
        level = float(np.median(self.marginal_utility(at.x, at.log_weight).log - np.log(full_price)))
        return self.continued(at._replace(level=level), self.problem.criterion.alpha)

    def accepts(self, start: Start) -> bool:
        """True if a warm start has the same pairs, limits and units, and an alpha > 0, so that prices imply levels.

        No warm start is accepted if PS-DSF scales the game.
        """
        at, shapes = start.point, (self.size.shape, self.row.shape, self.bound.shape)
        compatible = (at.y.shape, at.lam.shape, at.xi.shape) == shapes and np.array_equal(start.unit, self.unit)
        return compatible and self.limit is None and start.alpha > 0


@dataclass(frozen=True)
class Start:
    """Warm start of a problem from the solution at another alpha."""

    point: Point
    unit: Array
    alpha: float
