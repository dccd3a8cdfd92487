"""Rigorous bounds on answers at finite alpha: the conditions of an optimum or an equilibrium have a solution inside.

With the active set fixed these conditions are equations. Krawczyk's operator proves that a small box around a computed
answer has exactly one solution of them; that nobody prefers another server, and no idle row has a price, are then
inequalities between intervals. Answers where one of them is an equality, at degenerate ties, are not enclosed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ..model.criterion import Criterion
from .rational import Numbers, numbers

#: A pair has tasks if it has this part of what it could run alone; a row is full, and a price one, likewise.
_ACTIVE = 1e-7
#: Largest numerator and denominator of alpha, and denominator of a share per task.
_ALPHA, _DENOMINATOR = 100, 10**6
#: Most equations.
_SIZE = 60
#: Ends are rounded outwards to so many bits.
BITS = 160

Number = Fraction | int
Array = NDArray[np.float64]
#: A user, or a resource, and a server, by number.
Place = tuple[int, int]


def _rounded(value: Fraction, up: bool) -> Fraction:
    """The nearest number of `BITS` bits that is not smaller (`up`), or not larger."""
    top, bottom = value.numerator, value.denominator
    shift = BITS - (abs(top).bit_length() - bottom.bit_length())
    if top == 0 or bottom.bit_length() <= BITS:
        return value
    whole = (abs(top) << shift if shift >= 0 else abs(top) >> -shift) // bottom
    if shift < 0:  # both divisions round down
        whole = abs(top) // (bottom << -shift)
    whole += (top > 0) == up
    found = Fraction(whole << -shift, 1) if shift < 0 else Fraction(whole, 1 << shift)
    return found if top > 0 else -found


def _root(value: Fraction, degree: int, up: bool) -> Fraction:
    """The root of a number >= 0, to about `BITS` bits, not below it (`up`) or not above it."""
    if value == 0 or degree == 1:
        return value
    shift = BITS + max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // degree + 1)
    below = _whole_root((value.numerator << degree * shift) // value.denominator, degree)
    return Fraction(below + up, 1 << shift)


def _whole_root(value: int, degree: int) -> int:
    """The largest whole number whose power is at most a whole number, by Newton's method from above."""
    if value < 2:
        return value
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`."""

    low: Fraction
    high: Fraction

    def __add__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        return Interval(_rounded(self.low + other.low, False), _rounded(self.high + other.high, True))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | Number) -> Interval:
        return self + -interval(other)

    def __mul__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_rounded(min(ends), False), _rounded(max(ends), True))

    def __truediv__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("an interval with 0 in it divides nothing")
        return self * Interval(_rounded(1 / other.high, False), _rounded(1 / other.low, True))

    def power(self, exponent: Fraction) -> Interval:
        """`x^(p/q)` of numbers > 0."""
        if self.low <= 0:
            raise ZeroDivisionError("powers are of numbers > 0")
        p, q = abs(exponent.numerator), exponent.denominator
        found = Interval(_root(self.low**p, q, False), _root(self.high**p, q, True))
        found = Interval(_rounded(found.low, False), _rounded(found.high, True))
        return found if exponent >= 0 else interval(1) / found

    def within(self, other: Interval) -> bool:
        """Is every number of this one strictly inside of another?"""
        return other.low < self.low and self.high < other.high

    def cut(self, other: Interval) -> Interval:
        """The intersection of both, which must not be empty."""
        return Interval(max(self.low, other.low), min(self.high, other.high))


def interval(value: Interval | Number) -> Interval:
    """A number as an interval."""
    return value if isinstance(value, Interval) else Interval(Fraction(value), Fraction(value))


Box = list[Interval]


def contracted(residual: Box, slopes: Callable[[Box], list[Box]], slope: Array, widths: Sequence[float]) -> Box | None:
    """A box around 0 with exactly one solution of F(w) = 0; `None` if that cannot be proved.

    `residual` is F(0), `slopes` encloses all F'(w) of a box, `slope` is F'(0), nearly; `widths` of boxes are tried in
    turn. The image of the box under Krawczyk's operator is strictly inside of the box, and contains the solution.

    Source: Krawczyk 1969; Moore, SIAM J. Numer. Anal. 14(4), 1977.
    """
    inverse = [[Fraction(value) for value in row] for row in np.linalg.inv(slope)]
    for width in widths:
        half = Fraction(width)
        box = [Interval(-half, half)] * len(residual)
        image = list(_image(inverse, residual, slopes(box), box))
        if all(one.within(whole) for one, whole in zip(image, box, strict=True)):
            return image
    return None


def _image(
    inverse: list[list[Fraction]], residual: list[Interval], slopes: list[list[Interval]], box: list[Interval]
) -> Iterator[Interval]:
    """`-Y F(0) + (I - Y F'(W)) W`, row by row; Y is any matrix, here an approximate inverse."""
    for i, row in enumerate(inverse):
        found = interval(0)
        for k, by in enumerate(row):
            found -= residual[k] * by
        for j, width in enumerate(box):
            entry = interval(int(i == j))
            for k, by in enumerate(row):
                if slopes[k][j].low or slopes[k][j].high:
                    entry -= slopes[k][j] * by
            found += entry * width
        yield found


def middles(table: list[list[Interval]]) -> Array:
    """The middles of a table of intervals, as doubles."""
    return np.array([[float(one.low + one.high) / 2 for one in row] for row in table])


def rank(table: list[list[Fraction]]) -> int:
    """The rank of a small matrix, by elimination in fractions."""
    rows, rank = [list(row) for row in table], 0
    for k in range(len(rows[0])):
        at = next((j for j in range(rank, len(rows)) if rows[j][k]), None)
        if at is not None:
            rows[rank], rows[at] = rows[at], rows[rank]
            for row in rows[rank + 1 :]:
                by = row[k] / rows[rank][k]
                row[:] = [a - by * b for a, b in zip(row, rows[rank], strict=True)]
            rank += 1
    return rank


@dataclass(frozen=True)
class Enclosure:
    """Tasks `x[n,i]` of a true answer are between these, (users, servers), in fractions."""

    low: Numbers
    high: Numbers


def enclosed(
    cluster: Cluster,
    criterion: Criterion,
    tasks: Array,
    prices: Array | None,
) -> Enclosure | None:
    """Bounds on an answer of an alpha-fair program or of the game, near computed tasks and prices.

    `None` where nothing can be proved: other criteria, degenerate ties, splits of tasks that are free, too many users.
    Data are the rational numbers that doubles are; alpha and shares per task the simple fractions that they stand for.
    """
    if prices is None or prices.ndim != 2 or criterion.scope == "per_server" or criterion.floor.any():
        return None
    alpha = Fraction(criterion.alpha).limit_denominator(_ALPHA) if np.isfinite(criterion.alpha) else Fraction(0)
    if float(alpha) != criterion.alpha or not 0 < alpha <= _ALPHA or np.isfinite(criterion.cap).any():
        return None
    try:
        equations = _Equations(cluster, criterion, alpha, tasks, prices)
        return None if equations.size > _SIZE else equations.solved()
    except (ZeroDivisionError, np.linalg.LinAlgError):
        return None


class _Equations:
    """`cost X^alpha = K` of pairs with tasks (`X = q` of a user at its limit), `use = c` of rows with a price.

    Unknowns are relative changes w of tasks and prices, pairs first.
    """

    def __init__(
        self,
        cluster: Cluster,
        criterion: Criterion,
        alpha: Fraction,
        tasks: Array,
        prices: Array,
    ) -> None:
        self.cluster, self.criterion, self.alpha = cluster, criterion, alpha
        self.demand, self.capacity = numbers(cluster.demand), numbers(cluster.capacity)
        idle = cluster.capacity - np.einsum("ni,nr->ir", tasks, cluster.demand)
        full = idle <= _ACTIVE * np.maximum(cluster.capacity, 1e-300)
        cost = prices * cluster.capacity
        largest = cost.max(axis=1, keepdims=True) if criterion.scope == "game" else cost.max()
        there = np.argwhere(tasks > _ACTIVE * np.maximum(cluster.gamma, 1e-300)).tolist()
        self.pairs: list[Place] = [(n, i) for n, i in there]
        priced = np.argwhere(full & (cost > _ACTIVE * largest)).tolist()
        self.rows, self.implied = self._independent(sorted(((i, r) for i, r in priced), key=lambda at: -cost[at]))
        self.total = tasks.sum(axis=1)
        self.full_users = {n for n, _ in self.pairs if self.total[n] >= cluster.max_tasks[n] * (1 - _ACTIVE)}
        self.constant = {(n, i): self._constant(n, i) for n, i in np.argwhere(cluster.usable & self._wanted).tolist()}
        self.start = [float(tasks[pair]) for pair in self.pairs] + self._prices(prices)

    def _independent(self, priced: list[Place]) -> tuple[list[Place], list[Place]]:
        """Rows that say different things, and those that are used up because others are."""
        rows: list[Place] = []
        implied: list[Place] = []
        for i, r in priced:
            here = [(j, s) for j, s in rows if i == j] + [(i, r)]
            users = [n for n, j in self.pairs if i == j]
            table = [[*self.demand[users, s], self.capacity[i, s]] for _, s in here]
            (rows if rank(table) == len(here) else implied).append((i, r))
        return sorted(rows), implied

    @property
    def size(self) -> int:
        return len(self.pairs) + len(self.rows)

    @property
    def _wanted(self) -> NDArray[np.bool_]:
        return np.asarray((self.cluster.max_tasks > 0)[:, None])

    def _constant(self, n: int, i: int) -> Interval:
        """`K = phi^alpha s^(1-alpha)`, s the share per task at the server."""
        if self.criterion.scope == "game":
            needs = [r for r in range(len(self.cluster.resources)) if self.demand[n, r] > 0]
            share = 1 / min(self.capacity[i, r] / self.demand[n, r] for r in needs)
        else:
            share = Fraction(self.criterion.share[n]).limit_denominator(_DENOMINATOR)
            if float(share) != self.criterion.share[n]:
                raise ZeroDivisionError("a share per task is no simple fraction")
        weight = interval(Fraction(self.criterion.weight[n]))
        return weight.power(self.alpha) * interval(share).power(1 - self.alpha)

    def _prices(self, prices: Array) -> list[float]:
        """Prices in the unit of the equations: of each server in the game, else of all."""
        scale: dict[int, list[float]] = {}
        for n, i in self.pairs:
            if n not in self.full_users:
                cost = sum(prices[i, r] * self.cluster.demand[n, r] for j, r in self.rows if i == j)
                own = i if self.criterion.scope == "game" else 0
                right = float(self.constant[n, i].low) * self.total[n] ** -float(self.alpha)
                scale.setdefault(own, []).append(right / cost if cost > 0 else np.nan)
        if any(np.isnan(each).any() for each in scale.values()):
            raise ZeroDivisionError("somebody pays nothing")
        game = self.criterion.scope == "game"
        return [prices[i, r] * float(np.median(scale.get(i if game else 0, [1.0]))) for i, r in self.rows]

    @cached_property
    def _unknown(self) -> list[Fraction]:
        return [Fraction(value) for value in self.start]

    def values(self, box: list[Interval]) -> list[Interval]:
        """Tasks of pairs and prices of rows, for all w in a box."""
        return [(w + 1) * value for w, value in zip(box, self._unknown, strict=True)]

    def _parts(self, values: list[Interval]) -> tuple[dict[int, Interval], dict[Place, Interval]]:
        """Users' tasks, and what a task costs at every server where it can run."""
        total: dict[int, Interval] = {}
        for (n, _), own in zip(self.pairs, values, strict=False):
            total[n] = total.get(n, interval(0)) + own
        cost = {pair: interval(0) for pair in self.constant}
        for (i, r), price in zip(self.rows, values[len(self.pairs) :], strict=True):
            for n, j in cost:
                if i == j:
                    cost[n, j] += price * self.demand[n, r]
        return total, cost

    def residuals(self, box: list[Interval]) -> list[Interval]:
        values = self.values(box)
        total, cost = self._parts(values)
        found = [
            total[n] / Fraction(self.cluster.max_tasks[n]) - 1
            if n in self.full_users
            else cost[n, i] * total[n].power(self.alpha) / self.constant[n, i] - 1
            for n, i in self.pairs
        ]
        return found + [self._use(i, r, values) / self.capacity[i, r] - 1 for i, r in self.rows]

    def _use(self, i: int, r: int, values: list[Interval]) -> Interval:
        used = interval(0)
        for (n, j), own in zip(self.pairs, values, strict=False):
            used += own * self.demand[n, r] if i == j else 0
        return used

    def slopes(self, box: list[Interval]) -> list[list[Interval]]:
        """Derivatives of the residuals by w."""
        values, none = self.values(box), interval(0)
        total, cost = self._parts(values)
        count, found = len(self.pairs), []
        for n, i in self.pairs:
            if n in self.full_users:
                own = interval(1) / Fraction(self.cluster.max_tasks[n])
                row = [own * self._unknown[k] if m == n else none for k, (m, _) in enumerate(self.pairs)]
                found.append(row + [none] * len(self.rows))
                continue
            power = total[n].power(self.alpha) / self.constant[n, i]
            steep = cost[n, i] * power / total[n] * self.alpha
            row = [steep * self._unknown[k] if m == n else none for k, (m, _) in enumerate(self.pairs)]
            for k, (j, r) in enumerate(self.rows, count):
                row.append(power * (self._unknown[k] * self.demand[n, r]) if i == j else none)
            found.append(row)
        for i, r in self.rows:
            part = [
                interval(self._unknown[k] * self.demand[n, r] / self.capacity[i, r]) if i == j else none
                for k, (n, j) in enumerate(self.pairs)
            ]
            found.append(part + [none] * len(self.rows))
        return found

    def solved(self) -> Enclosure | None:
        """The box, if Krawczyk's operator maps one into itself and the inequalities hold there."""
        point = [interval(0)] * self.size
        for _ in range(4):
            slope = middles(self.slopes(point))
            step = np.linalg.solve(slope, [float(one.low) for one in self.residuals(point)])
            self.start = [value * (1 - by) for value, by in zip(self.start, step, strict=True)]
            self.__dict__.pop("_unknown", None)
        if not np.isfinite(self.start).all() or min(self.start, default=1) <= 0:
            return None
        # The relative half-widths of boxes are tried in turn.
        image = contracted(self.residuals(point), self.slopes, middles(self.slopes(point)), (1e-11, 1e-9, 1e-7))
        return None if image is None else self._judged(image)

    def _judged(self, box: list[Interval]) -> Enclosure | None:
        values = self.values(box)
        total, cost = self._parts(values)
        if any(value.low <= 0 for value in values) or any(n not in total for n, _ in self.constant):
            return None
        for (n, i), constant in self.constant.items():
            marginal = constant / total[n].power(self.alpha)
            if n in self.full_users:
                good = self._content(n, i, marginal, cost)
            else:
                good = (n, i) in self.pairs or marginal.high < cost[n, i].low
            if not good:
                return None
        for i, r in np.ndindex(self.cluster.capacity.shape):
            if (i, r) not in (*self.rows, *self.implied) and self._use(i, r, values).high > self.capacity[i, r]:
                return None
        for n, most in enumerate(self.cluster.max_tasks):
            if n in total and n not in self.full_users and np.isfinite(most) and total[n].high > Fraction(most):
                return None
        return self._tasks(values)

    def _content(self, n: int, i: int, marginal: Interval, cost: dict[Place, Interval]) -> bool:
        """A user with all its tasks would buy more where it runs them, and elsewhere does not find them cheaper."""
        if (n, i) in self.pairs:
            return marginal.low >= cost[n, i].high
        here = [cost[pair] for pair in self.pairs if pair[0] == n]
        return self.criterion.scope == "game" or all(one.high <= cost[n, i].low for one in here)

    def _tasks(self, values: list[Interval]) -> Enclosure:
        low = np.full(self.cluster.shape[:2], Fraction(0), dtype=object)
        high = low.copy()
        for pair, value in zip(self.pairs, values, strict=False):
            low[pair], high[pair] = value.low, value.high
        for n in self.full_users:  # such a user has one pair, or its tasks would have no single solution
            if sum(m == n for m, _ in self.pairs) == 1:
                (at,) = [pair for pair in self.pairs if pair[0] == n]
                low[at] = high[at] = Fraction(self.cluster.max_tasks[n])
        return Enclosure(low, high)
