r"""Lexicographic maximisation over small polytopes by the simplex method, for a stack of problems of one shape.

Every round raises a common bound t of the levels that rise,

.. math::
    \max t, \quad \omega_l t \le \sum_p L_{lp} z_p, \quad \sum_p A_{kp} z_p \le 1, \quad z \ge 0,

and levels whose row has a price then are done. Bases stay from round to round: the column of t is made anew from the
slacks of the levels that are left. All problems of a stack exchange a pair of variables at the same time, each where it
is in its own rounds. Dantzig's rule; of tied rows the one of the largest entry leaves. A problem that goes round in a
circle, of which none is known, fails after many steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model._arrays import Array, Index, Mask

#: Entries of a tableau below this are rounding, ratios closer than the second are the same; parts of the price of a
#: bound below the third are none.
_SMALL, _TIE, _PRICED = 1e-9, 1e-13, 1e-10
#: Most steps in one round, in parts of rows + columns.
_MOST = 50
#: Numbers of the tableaus that are worked on at a time: more do not stay in the cache.
_CACHE = 60_000


class Found(NamedTuple):
    """Columns (B, columns), prices of every round (B, rounds, rows), and rounds (B,), -1: it failed."""

    columns: Array
    prices: Array
    rounds: Index


def lexicographic(rows: Array, levels: Array, per_level: Array) -> Found:
    """Maximize levels over `per_level` (B, levels) lexicographically, subject to `rows @ columns <= 1`.

    Parameters
    ----------
    rows : (B, rows, columns)
    levels : (B, levels, columns)
    """
    (count, height, columns), several = rows.shape, levels.shape[1]
    most = max(_CACHE // ((height + several) * (columns + 2)), 1)  # at a time
    found = Found(np.zeros((count, columns)), np.zeros((count, several, height)), np.zeros(count, dtype=np.intp))
    for first in range(0, count, most):
        some = slice(first, first + most)
        into = Found(found.columns[some], found.prices[some], found.rounds[some])
        _Tableaus(rows[some], levels[some], per_level[some], into).run()
    return found._replace(prices=found.prices[:, : max(int(found.rounds.max(initial=0)), 0)])


class _Tableaus:
    """`basic = table[..., -1] - table[..., :-1] @ free` of every problem that is not done.

    Variables by number: columns, the bound, then the slacks of rows and of levels. `place` has the column of a
    variable, or the complement of its row.
    """

    def __init__(self, rows: Array, levels: Array, per_level: Array, into: Found) -> None:
        (count, height, columns), every = rows.shape, rows.shape[1] + levels.shape[1]
        self.table = np.zeros((count, every, columns + 2))
        self.table[:, :height, :columns], self.table[:, :height, -1] = rows, 1.0
        self.table[:, height:, :columns] = -levels
        slack = columns + 1
        self.basic = np.tile(np.arange(slack, slack + every), (count, 1))
        self.free = np.tile(np.arange(slack), (count, 1))
        self.place = np.tile(np.append(np.arange(slack), ~np.arange(every)), (count, 1))
        self.of_rows, self.of_levels = slice(slack, slack + height), slice(slack + height, slack + every)
        self.columns, self.into = columns, into
        self.problem = np.arange(count)
        self.per_level, self.rising = per_level, per_level > 0
        self.column = np.full(count, columns)  # of the bound, while it is to be raised
        self.row = np.zeros(count, dtype=np.intp)  # of the bound, while it rises
        self.begins = np.ones(count, dtype=bool)
        self.round = np.zeros(count, dtype=np.intp)
        self.steps = np.zeros(count, dtype=np.intp)
        self.size = every + slack

    def run(self) -> None:
        """Pivot until all problems are done; columns and prices are filled in."""
        self._keep(np.asarray(self.rising.any(axis=1)))
        every = np.arange(len(self.problem))
        self._bound(every)
        while len(self.problem):
            if len(every) != len(self.problem):
                every = np.arange(len(self.problem))
            enter = np.where(self.begins, self.column, self.table[every, self.row, :-1].argmin(axis=1))
            ends = ~self.begins & (self.table[every, self.row, enter] >= -_SMALL)
            done = np.zeros(len(every), dtype=bool)
            if ends.any():
                done[ends] = self._ended(np.flatnonzero(ends))
                enter = np.where(ends, self.column, enter)
            column = self.table[every, :, enter]
            leave, failed = self._leaving(column)
            leave = np.where(ends, self.row, leave)
            failed = (failed & ~ends) | (self.steps > _MOST * self.size)
            if failed.any():
                self.into.rounds[self.problem[failed]] = -1
                done |= failed
            if done.any():
                stay = ~done
                enter, leave, ends, column = enter[stay], leave[stay], ends[stay], column[stay]
                self._keep(stay)
                every = np.arange(len(self.problem))
            self._exchange(every, leave, enter, column, ends)
            if ends.any():
                self._bound(np.flatnonzero(ends))

    def _keep(self, stay: Mask) -> None:
        if not stay.all():
            for name in (
                "table", "basic", "free", "place", "problem", "per_level", "rising", "column", "row", "begins", "round",
                "steps",
            ):  # fmt: skip
                setattr(self, name, getattr(self, name)[stay])

    def _leaving(self, column: Array) -> tuple[Index, Mask]:
        """Ratio test: the leaving row, that of the largest entry among ties, and where a column is unbounded."""
        held = column > _SMALL
        ratio = np.divide(self.table[:, :, -1], column, out=np.full(column.shape, np.inf), where=held)
        least = ratio.min(axis=1)
        tied = ratio <= (least + _TIE)[:, None]
        leave = np.where(tied, column, -np.inf).argmax(axis=1)
        return leave, np.isinf(least)

    def _exchange(self, every: Index, leave: Index, enter: Index, column: Array, ends: Mask) -> None:
        """Exchange basic and free variables; where a round ends the bound keeps its value as a free variable."""
        table = self.table
        pivot = column[every, leave]
        row = table[every, leave] / pivot[:, None]
        row[ends, -1] = 0.0
        table -= column[:, :, None] * row[:, None]
        table[every, :, enter] = -column / pivot[:, None]
        row[every, enter] = 1 / pivot
        table[every, leave] = row
        np.maximum(table[:, :, -1], 0.0, out=table[:, :, -1])
        comes, goes = self.free[every, enter], self.basic[every, leave]
        self.free[every, enter], self.basic[every, leave] = goes, comes
        self.place[every, goes], self.place[every, comes] = enter, ~leave
        self.row = np.where(self.begins, leave, self.row)
        self.steps = np.where(ends, 0, self.steps + 1)
        self.begins = ends

    def _bound(self, some: Index) -> None:
        """Build the column of the bound, from the slacks of rising levels, where a round begins."""
        if not len(some):
            return
        weight = np.where(self.rising[some], self.per_level[some], 0.0)
        weight /= weight.max(axis=1)[:, None]
        place = self.place[some, self.of_levels]
        by_column = np.zeros((len(some), self.table.shape[2]))
        which, level = np.nonzero((place >= 0) & (weight > 0))
        by_column[which, place[which, level]] = weight[which, level]
        by_column[:, self.columns + 1] = 0.0
        column = self.column[some]
        by_column[np.arange(len(some)), column] = 0.0
        whole = np.matmul(self.table[some], by_column[:, :, None])[:, :, 0]
        which, level = np.nonzero((place < 0) & (weight > 0))
        whole[which, ~place[which, level]] += weight[which, level]
        self.table[some, :, column] = whole

    def _ended(self, some: Index) -> Mask:
        """Record prices of rounds that end and stop levels with a price; the problems that are done."""
        row, place = self.table[some, self.row[some]], self.place[some]
        price = np.where(place >= 0, np.take_along_axis(row, np.maximum(place, 0), axis=1), 0.0)
        problem, rising = self.problem[some], self.rising[some]
        into = self.into
        into.prices[problem, self.round[some]] = np.maximum(price[:, self.of_rows], 0.0)
        weight = np.where(rising, self.per_level[some], 0.0)
        part = weight / weight.max(axis=1)[:, None] * price[:, self.of_levels]
        stops = part > _PRICED
        self.rising[some] = rising & ~stops
        self.round[some] += 1
        self.column[some] = place[np.arange(len(some)), part.argmax(axis=1) + self.of_levels.start]
        fails = ~stops.any(axis=1)
        done = ~(rising & ~stops).any(axis=1) | fails
        if done.any():
            ready, problem = some[done], problem[done]
            place = place[done, : self.columns]
            value = np.take_along_axis(self.table[ready, :, -1], np.maximum(~place, 0), axis=1)
            into.columns[problem] = np.where(place < 0, value, 0.0)
            into.rounds[problem] = np.where(fails[done], -1, self.round[ready])
        return np.asarray(done)
