r"""Lexicographic maximisation over small polytopes by the primal simplex method, vectorised over a stack of problems.

Every round maximises a common lower bound t of the levels :math:`(L z)_l / \omega_l` that are not frozen,

.. math::
    \max t, \quad \omega_l t \le \sum_p L_{lp} z_p, \quad \sum_p A_{kp} z_p \le 1, \quad z \ge 0,

and freezes the levels whose constraint has a price. The basis is kept from round to round: only the column of t is
recomputed from the slacks of the remaining levels. All problems of a stack pivot at the same time, each in its own
round. Pricing is Dantzig's rule, and ties of the ratio test are broken by the largest pivot; after many degenerate
steps both choices follow Bland's rule, under which no basis recurs. `highest` solves programs of a single round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model._arrays import Array, Index, Mask
from .accuracy import NEGLIGIBLE, NEWTON_ROUNDING, REFINED

#: Tolerances for zero entries of a tableau scaled to 1 (`_ZERO_ENTRY`), tied ratios (`_TIED_RATIO`), and zero prices of
#: levels (`_ZERO_PRICE`).
_ZERO_ENTRY, _TIED_RATIO, _ZERO_PRICE = NEGLIGIBLE, NEWTON_ROUNDING, REFINED
#: Largest number of steps in a round, in multiples of the number of variables. Bland's rule applies after as many
#: successive degenerate steps as there are variables.
_MOST_STEPS = 50
#: Largest number of tableau entries of a chunk of problems, so that its arrays fit into the processor's cache.
_CACHE_ENTRIES = 60_000


class Found(NamedTuple):
    """Columns z (B, columns), prices of rows in each round (B, rounds, rows), and numbers of rounds (B,).

    The number of rounds is -1 for a failure.
    """

    columns: Array
    prices: Array
    rounds: Index


def lexicographic(rows: Array, levels: Array, per_level: Array) -> Found:
    r"""Maximize lexicographically the sorted levels of B problems of one shape over nonnegative columns z.

    .. math:: \text{lex}\max_z \min_l \frac{(L z)_l}{\omega_l}, \qquad A z \le 1, \quad z \ge 0

    Parameters
    ----------
    rows : (B, rows, columns), A
    levels : (B, levels, columns), L
    per_level : (B, levels), omega; levels with omega = 0 are left out
    """
    (count, height, columns), several = rows.shape, levels.shape[1]
    most = max(_CACHE_ENTRIES // ((height + several) * (columns + 2)), 1)  # problems in a chunk
    found = Found(np.zeros((count, columns)), np.zeros((count, several, height)), np.zeros(count, dtype=np.intp))
    for first in range(0, count, most):
        some = slice(first, first + most)
        into = Found(found.columns[some], found.prices[some], found.rounds[some])
        _Lexicographic(rows[some], levels[some], per_level[some], into).run()
    return found._replace(prices=found.prices[:, : max(int(found.rounds.max(initial=0)), 0)])


def highest(rows: Array, level: Array, enough: float = np.inf) -> tuple[Array, Array]:
    """Solve a batch of linear programs: `max t` subject to `rows @ y + level t <= (0, .., 0, 1)` and `y >= 0`.

    Returns t (programs,) and y (programs, unknowns). t is -1 where the method fails. Iterations end once t exceeds
    `enough`, so that greater values may be suboptimal.
    """
    programs, count, size = rows.shape
    best, point = np.full(programs, -1.0), np.zeros((programs, size))
    table = np.concatenate([rows, level[..., None], np.zeros((programs, count, 1))], axis=2)
    table[:, -1, -1] = 1.0
    at = _Tableaus(table)
    while len(at.problem):
        enter, ends = at.entering()
        t = at.table[at.every, at.row, -1]
        ends |= ~at.starting & (t > enough)
        if ends.any():
            best[at.problem[ends]], point[at.problem[ends]] = t[ends], at.values(ends)
            at.keep(~ends)
            enter = enter[~ends]
        column, leave, failed = at.leaving(enter)
        if failed.any():
            at.keep(~failed)
            enter, leave, column = enter[~failed], leave[~failed], column[~failed]
        at.pivot(leave, enter, column, np.zeros(len(enter), dtype=bool))
    return best, point


class _Tableaus:
    """Tableaus (dictionaries) `basic = table[..., -1] - table[..., :-1] @ free` of the unfinished problems.

    The indices of variables are those of columns, then of the bound t, then of slacks. `place` has the column of a free
    variable, or the bitwise complement of the row of a basic variable. t enters first (`starting`), and is basic until
    its round ends.
    """

    def __init__(self, table: Array) -> None:
        count, every, width = table.shape
        self.table, self.columns, self.size = table, width - 2, every + width - 1
        slack = self.columns + 1
        self.basic = np.tile(np.arange(slack, slack + every), (count, 1))
        self.free = np.tile(np.arange(slack), (count, 1))
        self.place = np.tile(np.append(np.arange(slack), ~np.arange(every)), (count, 1))
        self.problem = np.arange(count)
        self.column = np.full(count, self.columns)  # column of the common bound t, while it enters
        self.row = np.zeros(count, dtype=np.intp)  # row of t, while it is basic
        self.starting = np.ones(count, dtype=bool)
        self.steps, self.degenerate = np.zeros((2, count), dtype=np.intp)

    @property
    def every(self) -> Index:
        """Positions of the unfinished problems in the arrays."""
        return np.arange(len(self.problem))

    def values(self, some: Mask | Index) -> Array:
        """Values (some, columns) of the variables of columns in the problems `some`; 0 for free variables."""
        place = self.place[some, : self.columns]
        value = np.take_along_axis(self.table[some, :, -1], np.maximum(~place, 0), axis=1)
        return np.where(place < 0, value, 0.0)

    def keep(self, stay: Mask) -> None:
        """Drop the problems outside a mask (problems,)."""
        if not stay.all():
            for name, value in vars(self).items():
                if isinstance(value, np.ndarray):
                    setattr(self, name, value[stay])

    def entering(self) -> tuple[Index, Mask]:
        """Entering columns, the column of t where a round starts, and a mask of rounds in which t is maximal."""
        cost, bland = self.table[self.every, self.row, :-1], self.degenerate > self.size
        enter = np.where(self.starting, self.column, cost.argmin(axis=1))
        if bland.any():
            first = np.where(cost[bland] < -_ZERO_ENTRY, self.free[bland], self.size).argmin(axis=1)
            enter[bland] = np.where(self.starting[bland], self.column[bland], first)
        return enter, ~self.starting & (cost[self.every, enter] >= -_ZERO_ENTRY)

    def leaving(self, enter: Index) -> tuple[Array, Index, Mask]:
        """Entries (problems, rows) of the entering columns, leaving rows by the ratio test, and a mask of failures."""
        column = self.table[self.every, :, enter]
        bounding = column > _ZERO_ENTRY
        ratio = np.divide(self.table[:, :, -1], column, out=np.full(column.shape, np.inf), where=bounding)
        least = ratio.min(axis=1)
        tied = ratio <= (least + _TIED_RATIO)[:, None]
        leave = np.where(tied, column, -np.inf).argmax(axis=1)
        bland = self.degenerate > self.size
        if bland.any():
            leave[bland] = np.where(tied[bland], self.basic[bland], 2 * self.size).argmin(axis=1)
        self.degenerate = np.where((least > 0) | self.starting, 0, self.degenerate + 1)
        return column, leave, np.isinf(least) | (self.steps > _MOST_STEPS * self.size)

    def pivot(self, leave: Index, enter: Index, column: Array, ends: Mask) -> None:
        """Exchange the basic variables of rows `leave` and the free variables of columns `enter`, in all tableaus.

        Where a round ends, t leaves the basis, and stays at its value in later rounds.

        Parameters
        ----------
        leave, enter : (problems,)
        column : (problems, rows), entries of the entering columns
        ends : (problems,), mask of problems whose round ends
        """
        table, every = self.table, self.every
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
        self.row = np.where(self.starting, leave, self.row)
        self.steps = np.where(ends, 0, self.steps + 1)
        self.starting = ends


class _Lexicographic(_Tableaus):
    """Tableaus of `lexicographic`, with slacks of rows, then of levels; each problem is in its own round."""

    def __init__(self, rows: Array, levels: Array, per_level: Array, into: Found) -> None:
        count, height, columns = rows.shape
        table = np.zeros((count, height + levels.shape[1], columns + 2))
        table[:, :height, :columns], table[:, :height, -1] = rows, 1.0
        table[:, height:, :columns] = -levels
        super().__init__(table)
        slack = columns + 1
        self.of_rows, self.of_levels = slice(slack, slack + height), slice(slack + height, self.size)
        self.per_level, self.rising, self.into = per_level, per_level > 0, into
        self.round = np.zeros(count, dtype=np.intp)

    def run(self) -> None:
        """Pivot until all problems are finished, and write columns, prices and numbers of rounds to `into`."""
        self.keep(np.asarray(self.rising.any(axis=1)))
        self._bound_column(self.every)
        while len(self.problem):
            enter, ends = self.entering()
            done = np.zeros(len(enter), dtype=bool)
            if ends.any():
                done[ends] = self._finish_round(np.flatnonzero(ends))
                enter = np.where(ends, self.column, enter)
            column, leave, failed = self.leaving(enter)
            leave, failed = np.where(ends, self.row, leave), failed & ~ends
            if failed.any():
                self.into.rounds[self.problem[failed]] = -1
                done |= failed
            if done.any():
                stay = ~done
                enter, leave, ends, column = enter[stay], leave[stay], ends[stay], column[stay]
                self.keep(stay)
            self.pivot(leave, enter, column, ends)
            if ends.any():
                self._bound_column(np.flatnonzero(ends))

    def _bound_column(self, some: Index) -> None:
        """Compute the column of the common bound t in the tableaus of the problems `some`, whose round begins.

        t has the coefficients omega, scaled to a largest coefficient of 1, in the constraints of the levels that are
        not frozen. In the current basis its column is the same combination of the columns of the slacks of these
        constraints: columns of free slacks are read from the tableau, columns of basic slacks are unit vectors.
        """
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

    def _finish_round(self, some: Index) -> Mask:
        """Record prices of the problems `some` whose round ends, and freeze levels with a price.

        A round ends when the common bound t cannot increase. Prices are the entries of the row of t at the slacks. The
        slack of the frozen level of largest price enters the basis in place of t (`column`). Returns the mask (some,)
        of finished problems, in which all levels are frozen, or no level has a price (a failure).
        """
        row, place = self.table[some, self.row[some]], self.place[some]
        price = np.where(place >= 0, np.take_along_axis(row, np.maximum(place, 0), axis=1), 0.0)
        problem, rising = self.problem[some], self.rising[some]
        into = self.into
        into.prices[problem, self.round[some]] = np.maximum(price[:, self.of_rows], 0.0)
        weight = np.where(rising, self.per_level[some], 0.0)
        part = weight / weight.max(axis=1)[:, None] * price[:, self.of_levels]
        stops = part > _ZERO_PRICE
        self.rising[some] = rising & ~stops
        self.round[some] += 1
        self.column[some] = place[np.arange(len(some)), part.argmax(axis=1) + self.of_levels.start]
        fails = ~stops.any(axis=1)
        done = ~(rising & ~stops).any(axis=1) | fails
        if done.any():
            ready, problem = some[done], problem[done]
            into.columns[problem] = self.values(ready)
            into.rounds[problem] = np.where(fails[done], -1, self.round[ready])
        return np.asarray(done)
