"""The simplex method in integers: small linear programs without rounding.

A dictionary `den x_B + T x_N = b` keeps all entries subdeterminants of the integers it began with, so that every
division in a pivot is exact and no fraction is ever reduced (Edmonds 1967, Bareiss 1968).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

Row = list[int]


class TooMuch(Exception):
    """More arithmetic than was allowed."""


class Dictionary:
    """`rows y <= bounds, y >= 0` with all bounds >= 0, at the vertex y = 0.

    Rows are entries that are not zero, by column, and a bound, in fractions; each is brought to integers of its own.
    Variables are numbered: columns first, then one slack per row. `work` is how many words all entries computed may
    have.
    """

    def __init__(self, rows: Iterable[tuple[Mapping[int, Fraction], Fraction]], width: int, work: float) -> None:
        self.table: list[Row] = []  # the last entry of a row is its bound
        self.scale: dict[int, int] = {}  # of slacks
        for slack, (entries, bound) in enumerate(rows, width):
            scale = math.lcm(bound.denominator, *(value.denominator for value in entries.values()))
            self.table.append([int(value * scale) for value in (*(entries.get(k, 0) for k in range(width)), bound)])
            self.scale[slack] = scale
        self.den, self.unit, self.work = 1, 1, work  # bounds are in parts of `den * unit`
        self.free, self.basic = list(range(width)), list(self.scale)
        self.goal: Row = [0] * (width + 1)

    def maximise(self, *variables: int) -> None:
        """To a vertex where the sum of variables that are zero is largest: steepest entry first, then Bland's rule."""
        self.goal = [0] * len(self.goal)
        for variable in variables:
            self.goal[self.free.index(variable)] = -self.den
        still = 0
        while True:
            enter = [j for j, price in enumerate(self.goal[:-1]) if price < 0]
            if not enter:
                return
            if still > len(self.goal):
                j = min(enter, key=lambda j: self.free[j])
            else:
                j = min(enter, key=lambda j: self.goal[j])
            i = self._leaving(j)
            still = still + 1 if self.table[i][-1] == 0 else 0
            self.pivot(i, j)

    def _leaving(self, j: int) -> int:
        """The row that stops a column first; of several the variable of the smallest number."""
        best = -1
        for i, row in enumerate(self.table):
            if row[j] > 0:
                now = self.table[best]
                longer = row[-1] * now[j] - now[-1] * row[j] if best >= 0 else -1
                if longer < 0 or (longer == 0 and self.basic[i] < self.basic[best]):
                    best = i
        if best < 0:
            raise ValueError("nothing bounds this linear program")
        return best

    def values(self) -> dict[int, Fraction]:
        """The basic variables at this vertex; all others are zero."""
        whole = self.den * self.unit
        return {name: Fraction(row[-1], whole) for name, row in zip(self.basic, self.table, strict=True)}

    def prices(self) -> dict[int, Fraction]:
        """Costs of the variables that are zero; of slacks these are the prices of rows."""
        each = zip(self.free, self.goal[:-1], strict=True)
        return {name: Fraction(price * self.scale.get(name, 1), self.den) for name, price in each if price}

    def unique(self) -> bool:
        """True if this vertex is the only optimal solution.

        Variables with prices are zero at all of these, and are left out for good. If all others that are zero here stay
        zero, nothing moves.
        """
        priced = self.prices()
        kept = [j for j, name in enumerate(self.free) if name not in priced]
        self.free = [self.free[j] for j in kept]
        self.table = [[*(row[j] for j in kept), row[-1]] for row in self.table]
        self.goal = [0] * (len(kept) + 1)
        self.maximise(*self.free)
        return self.goal[-1] == 0

    def hold(self, variable: int, slack: int, rows: Sequence[int]) -> None:
        """Keep the maximised variable at its value: it moves to the bounds, and another stands in its column.

        `slack`, one that has a price, enters for it; the new variable has the entry 1 in the rows of some slacks.
        """
        value = self.values()[variable]
        j = self.free.index(slack)
        self.pivot(self.basic.index(variable), j)
        part, whole = (value * self.unit).as_integer_ratio()
        self.unit *= whole
        nonbasic = [(k, self.scale[name]) for k, name in enumerate(self.free) if name in rows]
        for i, row in enumerate(self.table):
            row[-1] = row[-1] * whole - row[j] * part
            own = self.scale[self.basic[i]] * self.den if self.basic[i] in rows else 0
            row[j] = sum(by * row[k] for k, by in nonbasic) + own

    def pivot(self, i: int, j: int) -> None:
        """Exchange the variables of row i and column j, whose entry is positive."""
        own, den = self.table[i], self.den
        at = own[j]
        self.work -= len(own) * len(self.table) * (1 + at.bit_length() // 64)
        if self.work < 0:
            raise TooMuch

        def less(row: Row) -> Row:
            by = row[j]
            if by == 0:
                return [at * a // den for a in row] if at != den else row
            row = [(at * a - by * b) // den for a, b in zip(row, own, strict=True)]
            row[j] = -by
            return row

        self.table = [row if k == i else less(row) for k, row in enumerate(self.table)]
        self.goal = less(self.goal)
        own[j] = den
        self.den = at
        self.basic[i], self.free[j] = self.free[j], self.basic[i]
