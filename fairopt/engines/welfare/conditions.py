"""The optimality conditions of alpha-fair welfare on the arrays of a polytope; `newton` solves them by Newton steps.

Unknowns: tasks x of every pair (user, server) and their slacks z, prices lam of every capacity and what of it idles, w;
every user's tasks s and what it pays per task, pi; and theta. Limits and floors are the core's.

    d . lam - z - pi  = 0                  (pairs)     x z    = mu
    sum_n d x + w - 1 = 0                  (capacities)  lam w  = mu
    sum_i x - s       = 0                  (users)
    rho = A log s + B log pi - B g - theta = 0

rho says that a task is worth what it costs, `G = phi^alpha u^(1-alpha) s^-alpha = pi`: g is `log G` at s = 1, and
(A, B) = (1, 1/alpha), below alpha = 1 (alpha, 1), which works down to alpha = 0. In logarithms because at alpha = 500
nothing else is of moderate size. The free number theta is the unit of welfare; it is paired with `sum s pi = users`.
Users are in units of the starting s and capacities in units of themselves.
Where efficiency counts besides fairness (`efficiency`) worth has a second part, and a second unit goes with it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.algebra import Pairs
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ..linalg import _pairs
from .options import OPTIONS, ConditionsOptions
from .point import Point, Residuals, Rest, Start, Worth, bend

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Welfare:
    """The conditions for one polytope and criterion, alpha finite."""

    #: mu need not fall below `least tol`.
    least = 0.0
    #: Do whole Newton steps go to and fro now and then?
    wavers = False

    def __init__(
        self, polytope: Polytope, criterion: Criterion, options: ConditionsOptions = OPTIONS.conditions
    ) -> None:
        self.options = options
        own = criterion.restrict(polytope.users)
        self.polytope, self.own, self.alpha = polytope, own, own.alpha
        self.of_share, self.of_price = (1.0, 1 / own.alpha) if own.alpha > 1 else (own.alpha, 1.0)
        self.start: Index = polytope.start
        self.server = polytope.pair_server
        servers, resources = polytope.cluster.capacity.shape
        self.remainder: Rest | None = None
        self.row = np.zeros((servers, resources), dtype=bool)
        self.row[polytope.row_server, polytope.row_resource] = True

        split = polytope.gamma / np.bincount(self.server, own.weight[polytope.pair_user], servers)[self.server]
        even = own.weight * np.add.reduceat(split, self.start[:-1])  # every server split evenly
        wanted = np.log(even)
        if own.alpha > 1:  # closer to equal shares
            equal = np.log(own.weight) - (1 - 1 / own.alpha) * np.log(own.share)
            wanted = wanted / own.alpha + (1 - 1 / own.alpha) * equal
        wanted = np.exp(wanted - wanted.max())
        split *= (own.weight * wanted / even)[polytope.pair_user]
        self.per_task = polytope.pair_use / polytope.gamma[:, None]
        scale = options.use / self.used(split)[self.row].mean()
        self.unit = np.maximum(scale * wanted, np.finfo(float).tiny)
        self.first: Array = scale * split / self.unit[polytope.pair_user]
        self.per_task *= self.unit[polytope.pair_user][:, None]
        log_share = np.log(own.share) + np.log(self.unit)
        self.gain = own.alpha * np.log(own.weight) + (1 - own.alpha) * log_share

    # -- parts of the equations ------------------------------------------------------------------

    def used(self, tasks: Array) -> Array:
        """The part of every capacity in use, (servers, resources)."""
        result = np.zeros(self.row.shape)
        _pairs.used(self.server, self.per_task, tasks, result)
        return result

    @cached_property
    def pairs(self) -> Pairs:
        """Those that take part, in the units of tasks."""
        polytope, users = self.polytope, len(self.unit)
        capacity, demand = polytope.cluster.capacity, polytope.cluster.demand[polytope.users]
        with np.errstate(divide="ignore"):
            inverse = np.where(capacity > 0, 1 / capacity, 0.0)
        user = np.repeat(np.arange(users), np.diff(self.start))
        ends = np.array([0, users]), np.array([0, len(capacity)])
        return Pairs(user, self.server, demand * self.unit[:, None], inverse, *ends)

    def cost(self, price: Array) -> Array:
        """What a task costs at prices, (pairs,)."""
        result = np.empty(len(self.server))
        _pairs.cost(self.server, self.per_task, price, result)
        return result

    def summed(self, pairs: Array) -> Array:
        """Sums over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(pairs, self.start[:-1]))

    def marginal(self, point: Point) -> Worth:
        """By how much the log of what a task is worth misses what is paid, (users,)."""
        marginal = self.of_share * np.log(point.total) - self.of_price * self.gain
        log_price = np.log(np.maximum(point.user_price, np.finfo(float).tiny))
        residual = marginal + self.of_price * log_price - point.units[0]
        return Worth(residual, self.of_share, (np.ones(len(residual)),))

    def spent(self, point: Point) -> Array:
        """What users spend, (users,), on average 1 once theta is right."""
        return np.asarray(point.user_price * point.total)

    def second_order(self, at: Point, marginal: Worth, step: Point) -> Array:
        """What rho deviates from its tangent by, after a step."""
        return np.asarray(
            self.of_share * bend(step.total / at.total) + self.of_price * bend(step.user_price / at.user_price)
        )

    def residual_units(self, point: Point) -> Array:
        """What is wrong with the equations that go with units, (units,)."""
        return np.array([float(len(self.gain) - self.spent(point).sum())])

    def change_units(self, point: Point, total: Array, user_price: Array, units: Array) -> Array:
        """By how much a step changes those, to first order."""
        spent = point.user_price * total + point.total * user_price
        return np.array([-float(spent.sum())])

    def residuals(self, point: Point, marginal: Worth) -> Residuals:
        """What is wrong at a point."""
        pays = np.repeat(point.user_price, np.diff(self.start))
        sums, used = self.summed(point.tasks), self.used(point.tasks)
        if self.remainder is not None:
            sums, used = sums + point.remainder * self.remainder.sums, used + point.remainder * self.remainder.use
        return Residuals(
            self.cost(point.price) - point.slack - pays,
            np.where(self.row, used + point.idle - 1, 0.0),
            sums - point.total,
            marginal.residual,
            self.residual_units(point),
        )

    def fractions(self, point: Point) -> Array:
        """Tasks as parts of monopoly tasks, (pairs,): coordinates of the polytope."""
        tasks = point.tasks
        if self.remainder is not None:
            tasks = np.zeros(len(self.polytope.gamma))
            tasks[self.remainder.inside] = point.tasks
        return np.asarray(tasks * (self.unit[self.polytope.pair_user] / self.polytope.gamma))

    # -- where to start --------------------------------------------------------------------------

    def begin(self) -> Point:
        """Servers split evenly, about half in use; every unit of a resource has the same price everywhere."""
        users, total = len(self.gain), self.summed(self.first)
        user_price, units = self.first_user_price(total)
        user_price = np.maximum(user_price, 1e-12)
        part = np.where(self.row, self.polytope.cluster.capacity, 0.0)
        part = part / np.maximum(part.sum(axis=0), np.finfo(float).tiny)
        price = np.where(self.row, users * np.maximum(part / max(part.sum(), 1e-300), 1e-12), 0.0)
        cost, pays = self.cost(price), np.repeat(user_price, np.diff(self.start))
        slack = np.maximum(cost - pays, 0.1 * np.maximum(cost, pays))
        idle = np.where(self.row, np.maximum(1 - self.used(self.first), self.options.idle), 1.0)
        return Point(self.first, slack, price, idle, total, user_price, units)

    def first_user_price(self, total: Array) -> tuple[Array, Array]:
        """What tasks are worth at the start, users spending 1 on average, and the units that make it so."""
        log_user_price = self.gain - self.of_share / self.of_price * np.log(total)
        user_price = np.exp(log_user_price - log_user_price.max())
        scale = len(total) / float((user_price * total).sum())
        return user_price * scale, np.array([self.of_price * (np.log(scale) - log_user_price.max())])

    def fits(self, start: Start) -> bool:
        """Is it a start for the same cluster?"""
        at = start.point
        shapes = at.tasks.shape, at.price.shape, at.total.shape
        return shapes == (self.server.shape, self.row.shape, self.unit.shape)

    def begin_from(self, start: Start) -> Point:
        """A point of another alpha, in the units of this one; theta where it fits best."""
        at, scale = start.point, start.unit / self.unit
        each = np.repeat(scale, np.diff(self.start))
        tasks = at.tasks * each
        point = replace(
            at,
            tasks=tasks,
            slack=at.slack / each,
            total=self.summed(tasks),
            user_price=at.user_price / scale,
        )
        point = replace(point, units=self.fitting(point))
        # Products far below the average would take many steps to grow.
        low = self.options.centred * float((at.tasks * at.slack).mean())
        lift = np.sqrt(np.maximum(low / (at.tasks * at.slack), 1.0))
        low = self.options.centred * float((at.price * at.idle)[self.row].mean())
        raised = np.sqrt(np.maximum(low / np.where(self.row, at.price * at.idle, low), 1.0))
        point = replace(point, tasks=point.tasks * lift, slack=point.slack * lift)
        return replace(point, total=self.summed(point.tasks), price=at.price * raised, idle=at.idle * raised)

    def fitting(self, point: Point) -> Array:
        """The units that fit most users of a point, (units,)."""
        return np.array([float(np.median(self.marginal(replace(point, units=np.zeros(1))).residual))])

    def moved(self, at: Point, step: Point, t: float) -> Point:
        """The point after a part t of a step; users who hardly count may be stopped short."""
        tasks, grown = at.tasks + t * step.tasks, t * step.user_price / at.user_price
        remainder = at.remainder + t * step.remainder
        total = self.summed(tasks) + (0.0 if self.remainder is None else remainder * self.remainder.sums)
        counts = self.spent(at) > self.options.counts
        fall = np.maximum(1 + grown, np.where(counts, self.options.counted_fall, self.options.fall))
        return replace(
            at,
            tasks=tasks,
            slack=at.slack + t * step.slack,
            price=np.where(self.row, at.price + t * step.price, 0.0),
            idle=np.where(self.row, at.idle + t * step.idle, 1.0),
            total=total,
            user_price=at.user_price * np.where(grown > -0.5, 1 + grown, fall),
            units=at.units + t * step.units,
            remainder=remainder,
        )
