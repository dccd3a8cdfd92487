"""Rigorous enclosures of optima and equilibria at finite alpha, by interval arithmetic.

For a fixed active set the optimality conditions are equations. Krawczyk's operator proves that a small box around a
computed solution contains exactly one solution. Intervals over the box then verify the conditions that are strict
inequalities: users prefer the servers where they have tasks, and rows without a price are not overused. Solutions at
degenerate ties, where such an inequality is an equality, are not enclosed.

Vectors and matrices are arrays of objects, in which zeros are plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificates.rational import Numbers, numbers, zeros
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.criterion import Criterion

#: Relative tolerance with which pairs, rows and prices are recognised as active.
_ACTIVE = 1e-7
#: Largest denominator of alpha, and of a share per task.
_DENOMINATOR = 10**6
#: Largest number of equations that are solved.
_SIZE = 60
#: Number of decimal digits of the bounds of intervals, which are rounded outwards.
DIGITS = 50
DOWN, UP = Context(DIGITS, ROUND_FLOOR), Context(DIGITS, ROUND_CEILING)

#: Indices of a server and a resource.
Place = tuple[int, int]


@dataclass(frozen=True)
class Interval:
    """Closed interval from `low` to `high`."""

    low: Decimal
    high: Decimal

    def __add__(self, other: Any) -> Any:
        if not other:
            return self
        other = interval(other)
        return Interval(DOWN.add(self.low, other.low), UP.add(self.high, other.high))

    def __neg__(self) -> Interval:
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __mul__(self, other: Any) -> Any:
        if not other:
            return 0
        other = interval(other)
        ends = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(DOWN.multiply(*each) for each in ends), max(UP.multiply(*each) for each in ends))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / interval(other))

    def __rtruediv__(self, other: Any) -> Any:
        if self.low <= 0 <= self.high:
            raise ZeroDivisionError("an interval with 0 in it divides nothing")
        return other * Interval(DOWN.divide(Decimal(1), self.high), UP.divide(Decimal(1), self.low))

    def within(self, other: Interval) -> bool:
        """True if the interval lies strictly inside the other."""
        return other.low < self.low and self.high < other.high


def interval(value: Any) -> Interval:
    """Interval that encloses a number."""
    if isinstance(value, Interval):
        return value
    top, bottom = value.as_integer_ratio()
    return Interval(DOWN.divide(top, bottom), UP.divide(top, bottom))


def logarithm(value: Any) -> Interval:
    """Enclosure of the natural logarithm of a number or an interval; logarithms of `decimal` are correctly rounded.

    Raises `ZeroDivisionError` if the number or the interval is not positive.
    """
    one = interval(value)
    if one.low <= 0:
        raise ZeroDivisionError("logarithms are of numbers > 0")
    return Interval(DOWN.next_minus(one.low.ln(DOWN)), UP.next_plus(one.high.ln(UP)))


#: Array of intervals.
Box = NDArray[np.object_]
intervals: Callable[[Any], Box] = np.frompyfunc(interval, 1, 1)
logs: Callable[[Any], Box] = np.frompyfunc(logarithm, 1, 1)


low: Callable[[Box], NDArray[np.object_]] = np.frompyfunc(lambda one: one.low, 1, 1)
high: Callable[[Box], NDArray[np.object_]] = np.frompyfunc(lambda one: one.high, 1, 1)


def contracted(residual: Box, slopes: Callable[[Box], Box], slope: Array, widths: Sequence[float]) -> Box | None:
    """Box around 0 with exactly one solution of F(w) = 0; None if that cannot be proved.

    `residual` is F(0), `slopes` encloses F'(w) over a box, and `slope` approximates F'(0). Boxes W with the half-widths
    `widths` are tried in turn. If the image of the box under Krawczyk's operator, `-Y F(0) + (I - Y F'(W)) W` with an
    approximate inverse Y of F'(0), is strictly inside the box, it contains the solution, and is returned.

    Source: Krawczyk, Computing 4, 1969 (doi:10.1007/BF02234767); Moore, SIAM J. Numer. Anal. 14(4), 1977
    (doi:10.1137/0714040).
    """
    inverse = numbers(np.asarray(np.linalg.inv(slope), dtype=float))
    for width in widths:
        box = np.full(len(residual), Interval(Decimal(-width), Decimal(width)))
        image = intervals((np.eye(len(box), dtype=int) - inverse @ slopes(box)) @ box - inverse @ residual)
        if all(one.within(whole) for one, whole in zip(image, box, strict=True)):
            return image
    return None


def middles(table: Box) -> Array:
    """Midpoints of an array of intervals, as floats."""
    return np.asarray(np.frompyfunc(lambda one: (float(one.low) + float(one.high)) / 2, 1, 1)(intervals(table)), float)


def rank(table: Numbers) -> int:
    """Rank of a small matrix of fractions, by elimination."""
    places = np.argwhere(table != 0)
    if not len(places):
        return 0
    i, k = places[0]
    return 1 + rank(np.delete(table - np.outer(table[:, k] / table[i, k], table[i]), i, axis=0))


@dataclass(frozen=True)
class Enclosure:
    """Bounds on the tasks of an exact solution, (users, servers), as fractions."""

    low: Numbers
    high: Numbers


def enclosed(cluster: Cluster, criterion: Criterion, tasks: Array, log_prices: Array | None) -> Enclosure | None:
    """Enclosure of a solution of an alpha-fair program or of the game, near given tasks and log prices.

    The result is None if no proof is found: without prices, for other criteria (also with floors or caps), rates,
    degenerate ties, non-unique splits, or too many users.
    Data are taken as exact rational numbers, but alpha and shares per task as the simple fractions that they
    approximate.
    """
    if log_prices is None or log_prices.ndim != 2 or criterion.scope == "per_server" or criterion.floor.any():
        return None
    if cluster.rated or not 0 < criterion.alpha < np.inf or np.isfinite(criterion.cap).any():
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _Equations(cluster, criterion, tasks, np.exp(log_prices)).solved()
    except (ArithmeticError, ValueError):  # a singular matrix is a ValueError
        return None


def _simple(value: float) -> Fraction:
    """Fraction with a small denominator that a floating-point number represents; without one, `ZeroDivisionError`."""
    found = Fraction(value).limit_denominator(_DENOMINATOR)
    if float(found) != value:
        raise ZeroDivisionError(f"{value} is no simple fraction")
    return found


class _Equations:
    """Optimality conditions as equations, with the relative changes w of tasks and prices as unknowns, pairs first.

    At pairs with tasks, `log cost + alpha log X = log K`, with the user's total X and the coefficient K of
    `_log_coefficient`, or `X = q` for a user at its limit q. At rows with a price, the use equals the capacity.
    """

    def __init__(self, cluster: Cluster, criterion: Criterion, tasks: Array, prices: Array) -> None:
        self.cluster, self.alpha, self.game = cluster, _simple(criterion.alpha), criterion.scope == "game"
        self.demand = numbers(cluster.demand)
        # Capacities are divisors: capacities of unusable resources are set to 1.
        self.capacity = numbers(np.where(cluster.capacity > 0, cluster.capacity, 1.0))
        idle = cluster.capacity - tasks.T @ cluster.demand
        full = idle <= _ACTIVE * np.maximum(cluster.capacity, 1e-300)
        cost = prices * cluster.capacity
        largest = cost.max(axis=1, keepdims=True) if self.game else cost.max()
        priced = np.argwhere(full & (cost > _ACTIVE * largest)).tolist()
        there = tasks > _ACTIVE * np.maximum(cluster.gamma, 1e-300)
        pairs = np.argwhere(there)
        self.count = len(pairs)
        #: Users and servers of usable pairs, beginning with the pairs with tasks.
        runs = cluster.usable & (cluster.max_tasks > 0)[:, None]
        self.user, self.server = np.vstack([pairs, np.argwhere(runs & ~there)]).T
        rows = self._independent(sorted(((i, r) for i, r in priced), key=lambda at: -cost[at]))
        self.rows = tuple(np.array(rows, dtype=int).reshape(-1, 2).T)
        self.start = numbers(np.concatenate([tasks[there], prices[self.rows]]))
        if not 0 < len(self.start) <= _SIZE:
            raise ZeroDivisionError("there are too many equations, or none")
        self.log_coefficient = np.array(
            [self._log_coefficient(criterion, n, i) for n, i in zip(self.user, self.server, strict=True)]
        )
        #: `full`: mask of users at their limits. `amounts`: use of each (server, resource) per task, by pair. `owns`:
        #: 0-1 matrix (users, pairs with tasks) of the pairs of each user. `limit`: task limits of the users in `full`.
        self.full = tasks.sum(axis=1) >= cluster.max_tasks * (1 - _ACTIVE)
        self.amounts = zeros(len(self.user), *cluster.capacity.shape)
        self.amounts[np.arange(len(self.user)), self.server] = self.demand[self.user]
        self.owns = (np.arange(len(self.full))[:, None] == self.user[: self.count]).astype(int).astype(object)
        self.limit = numbers(np.where(self.full, cluster.max_tasks, 1.0))
        #: For pairs with tasks: `held`, mask of users at their limits; `power`, coefficient of log X in the equation;
        #: `target`, right-hand side of the equation.
        own = self.user[: self.count]
        self.held = self.full[own]
        self.power = np.array([1 if one else self.alpha for one in self.held], dtype=object)
        self.target = np.where(self.held, logs(self.limit[own]), self.log_coefficient[: self.count])

    def _independent(self, priced: list[Place]) -> list[Place]:
        """Linearly independent rows of `priced`; other rows, whose exhaustion follows, are marked in `implied`."""
        rows: list[Place] = []
        self.implied = np.zeros(self.capacity.shape, dtype=bool)
        for i, r in priced:
            here = [s for j, s in rows if i == j] + [r]
            users = self.user[: self.count][self.server[: self.count] == i]
            table = np.vstack([self.demand[users][:, here], self.capacity[i, here]])
            if rank(table) == len(here):
                rows.append((i, r))
            else:
                self.implied[i, r] = True
        return sorted(rows)

    def _log_coefficient(self, criterion: Criterion, n: int, i: int) -> Any:
        """Enclosure of `log K` with `K = phi^alpha s^(1-alpha)`, where s is the share per task on the server."""
        needs = self.demand[n] > 0
        share = (
            1 / (self.capacity[i, needs] / self.demand[n, needs]).min() if self.game else _simple(criterion.share[n])
        )
        return logarithm(Fraction(criterion.weight[n])) * self.alpha + logarithm(share) * (1 - self.alpha)

    def values(self, box: Box) -> tuple[Box, Box, Box, Box]:
        """Enclosures over a box of w: tasks of pairs, total and cost for each usable pair, used fractions of rows."""
        tasks, prices = np.split((box + 1) * self.start, [self.count])
        used = (tasks @ self.amounts[: self.count].swapaxes(0, 1)) / self.capacity
        cost = self.amounts[:, self.rows[0], self.rows[1]] @ prices
        return tasks, intervals(self.owns @ tasks)[self.user], intervals(cost), intervals(used)

    def residuals(self, box: Box) -> Box:
        _, total, cost, used = self.values(box)
        paid = logs(np.where(self.held, 1, cost[: self.count]))
        return intervals(
            np.concatenate([paid + self.power * logs(total[: self.count]) - self.target, used[self.rows] - 1])
        )

    def slopes(self, box: Box) -> Box:
        """Enclosure of the Jacobian of the residuals with respect to w."""
        _, total, cost, _ = self.values(box)
        own = self.owns[self.user[: self.count]] * (self.power / total[: self.count])[:, None]
        paid = np.where(self.held, 0, 1) / np.where(self.held, 1, cost[: self.count])
        of_pairs = np.hstack([own, self.amounts[: self.count, self.rows[0], self.rows[1]] * paid[:, None]])
        use = (self.amounts[: self.count] / self.capacity)[:, self.rows[0], self.rows[1]].T
        none = np.zeros((len(use), len(use)), dtype=object)
        return np.asarray(np.vstack([of_pairs, np.hstack([use, none])]) * self.start)

    def solved(self) -> Enclosure | None:
        """Enclosure of the solution; None unless Krawczyk's operator and the inequalities prove it."""
        point = np.zeros(len(self.start), dtype=object)
        for _ in range(4):
            step = np.linalg.solve(middles(self.slopes(point)), middles(self.residuals(point)))
            self.start = numbers(self.start.astype(float) * np.exp(-step))
        # Relative half-widths of boxes, tried in turn.
        image = contracted(self.residuals(point), self.slopes, middles(self.slopes(point)), (1e-11, 1e-9, 1e-7))
        return None if image is None else self._judged(image)

    def _judged(self, box: Box) -> Enclosure | None:
        tasks, total, cost, used = self.values(box)
        others = ~self.implied
        others[self.rows] = False
        free = np.isfinite(self.cluster.max_tasks) & ~self.full
        over = high(total) > np.where(free, self.cluster.max_tasks, np.inf)[self.user]
        if (low(tasks) <= 0).any() or (low(total) <= 0).any() or (high(used)[others] > 1).any() or over.any():
            return None
        if not all(
            self._content(k, one, cost) for k, one in enumerate(self.log_coefficient - logs(total) * self.alpha)
        ):
            return None
        ends = zeros(2, *self.cluster.shape[:2])
        for n, i, one in zip(self.user, self.server, tasks, strict=False):
            # The tasks of a user at its limit are exact only on a single server; a split over several is enclosed.
            whole = self.full[n] and self.owns[n].sum() == 1
            ends[:, n, i] = self.limit[n] if whole else (Fraction(one.low), Fraction(one.high))
        return Enclosure(*ends)

    def _content(self, k: int, marginal: Interval, cost: Box) -> bool:
        """True if the inequality of the usable pair k holds: its user does not prefer a server without tasks.

        For a user at its limit, no other server may be cheaper, and marginal utility must be at least the cost where
        the user has tasks. `marginal` is the log marginal utility.
        """
        if not self.full[self.user[k]]:
            return bool(k < self.count or marginal.high < logarithm(cost[k]).low)
        if k < self.count:
            return bool(cost[k].high == 0 or marginal.low >= logarithm(cost[k]).high)
        own = self.user[: self.count] == self.user[k]
        return self.game or bool((high(cost[: self.count][own]) <= cost[k].low).all())
