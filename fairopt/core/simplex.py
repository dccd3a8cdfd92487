r"""Lexicographic maximisation over small polytopes by the simplex method, for a stack of problems of one shape.

Levels are sums over pairs, a row each. Every round raises a common bound t of the levels that rise,

.. math::
    \max t, \quad \omega_l t \le \sum_p L_{lp} z_p, \quad \sum_n D_{nkr} z_{nk} \le 1, \quad z \ge 0,

and levels whose row has a price then are done. Bases stay from round to round: the column of t is made anew from the
slacks of the levels that are left. All problems of a stack exchange a pair of variables at the same time, each where it
is in its own rounds. Dantzig's rule; Bland's where the bound stands still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .system import Stack

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Entries of a tableau below this are rounding, ratios closer than the second are the same; parts of the price of a
#: bound below the third are none.
_SMALL, _TIE, _PRICED = 1e-9, 1e-13, 1e-10
#: Steps in parts of rows + columns, in one round: most, and until Bland's rule is used if they do not raise the bound.
_MOST, _BEFORE_BLAND = 50, 1
#: Numbers of the tableaus that are worked on at a time: more do not stay in the cache.
_CACHE = 60_000


class Found(NamedTuple):
    """Tasks (B, N, K), prices of whole capacities of every round (B, rounds, K, R), and rounds (B,), -1: it failed."""

    tasks: Array
    prices: Array
    rounds: Index


def largest_sum(q: Stack, share: Array) -> Found:
    """The largest sum of shares, (N, B) per task, over capacities and limits. One of several optima, by order."""
    worth = q.gamma * np.where(q.unused > 0, 0.0, share)[:, None]
    unit = np.maximum(worth.sum(axis=1).max(axis=0), 1e-300)
    found = _in_parts(q, (worth / unit).transpose(2, 0, 1).reshape(len(unit), 1, -1), (unit > 1e-300)[:, None] * 1.0)
    return found._replace(prices=found.prices * unit[:, None, None, None])


def leximin(q: Stack, rate: Array) -> Found:
    """Lexicographic max-min of tasks over `rate` (N, B), under capacities and limits."""
    users, servers, count = q.gamma.shape
    reach = q.gamma.sum(axis=1)
    per_level = np.divide(rate, reach, out=np.zeros(reach.shape), where=reach > 0).T
    part = np.divide(q.gamma, reach[:, None], out=np.zeros(q.gamma.shape), where=q.usable)
    levels = np.zeros((count, users, users, servers))
    levels[:, np.arange(users), np.arange(users)] = part.transpose(2, 0, 1)
    return _in_parts(q, levels.reshape(count, users, -1), per_level)


def _in_parts(q: Stack, levels: Array, per_level: Array) -> Found:
    """As many problems at a time as stay in the cache."""
    resources, users, servers, count = q.use.shape
    rows = servers * resources + levels.shape[1] + users * (q.limited is not None)
    most = max(_CACHE // (rows * (users * servers + 2)), 1)
    found = Found(
        np.zeros((count, users, servers)),
        np.zeros((count, levels.shape[1], servers, resources)),
        np.zeros(count, dtype=np.intp),
    )
    for first in range(0, count, most):
        chosen = slice(first, first + most)
        some = q if most >= count else q.some(chosen)
        into = Found(found.tasks[chosen], found.prices[chosen], found.rounds[chosen])
        _Tableaus(some, levels[chosen], per_level[chosen], into).run()
    found.tasks[:] *= q.gamma.transpose(2, 0, 1)
    return found._replace(prices=found.prices[:, : max(int(found.rounds.max(initial=0)), 0)])


class _Tableaus:
    """`basic = table[..., -1] - table[..., :-1] @ free` of every problem that is not done.

    Variables by number: pairs, the bound, then the slacks of capacities, of limits and of levels. `place` has the
    column of a variable, or the complement of its row.
    """

    def __init__(self, q: Stack, levels: Array, per_level: Array, into: Found) -> None:
        resources, users, servers, count = q.use.shape
        pairs, capacities = users * servers, servers * resources
        of_limits = 0 if q.limited is None else users
        rows = capacities + of_limits + levels.shape[1]
        self.table = np.zeros((count, rows, pairs + 2))
        at = np.arange(servers)
        use = np.zeros((count, servers, resources, users, servers))
        use[:, at, :, :, at] = q.use.transpose(2, 3, 0, 1)
        self.table[:, :capacities, :pairs] = use.reshape(count, capacities, pairs)
        self.table[:, :capacities, -1] = 1.0
        if q.limited is not None:
            limits = np.zeros((count, users, users, servers))
            limits[:, np.arange(users), np.arange(users)] = q.share_of_limit.transpose(2, 0, 1)
            self.table[:, capacities : capacities + users, :pairs] = limits.reshape(count, users, pairs)
            self.table[:, capacities : capacities + users, -1] = 1.0
        self.table[:, rows - levels.shape[1] :, :pairs] = -levels
        slack = pairs + 1
        self.basic = np.tile(np.arange(slack, slack + rows), (count, 1))
        self.free = np.tile(np.arange(slack), (count, 1))
        self.place = np.tile(np.append(np.arange(slack), ~np.arange(rows)), (count, 1))
        self.of_capacities = slice(slack, slack + capacities)
        self.of_levels = slice(slack + rows - levels.shape[1], slack + rows)
        self.pairs, self.into = pairs, into
        self.problem = np.arange(count)
        self.per_level, self.rising = per_level, per_level > 0
        self.column = np.full(count, pairs)  # of the bound, while it is to be raised
        self.row = np.zeros(count, dtype=np.intp)  # of the bound, while it rises
        self.begins = np.ones(count, dtype=bool)
        self.round = np.zeros(count, dtype=np.intp)
        self.steps, self.still = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
        self.size = rows + slack

    def run(self) -> None:
        """Until all are done: fractions of pairs and prices are filled in."""
        self._keep(np.asarray(self.rising.any(axis=1)))
        every = np.arange(len(self.problem))
        self._bound(every)
        while len(self.problem):
            if len(every) != len(self.problem):
                every = np.arange(len(self.problem))
            enter = np.where(self.begins, self.column, self._entering(every))
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
                "steps", "still",
            ):  # fmt: skip
                setattr(self, name, getattr(self, name)[stay])

    def _entering(self, every: Index) -> Index:
        """The column that raises the bound most; by Bland's rule the first variable of those that raise it."""
        gain = self.table[every, self.row, :-1]
        enter = gain.argmin(axis=1)
        bland = self.still > _BEFORE_BLAND * self.size
        if bland.any():
            first = np.where(gain < -_SMALL, self.free, self.size).argmin(axis=1)
            enter = np.where(bland, first, enter)
        return np.asarray(enter)

    def _leaving(self, column: Array) -> tuple[Index, Mask]:
        """The row that stops a column first, of several the largest entry, by Bland's rule the first variable."""
        held = column > _SMALL
        ratio = np.divide(self.table[:, :, -1], column, out=np.full(column.shape, np.inf), where=held)
        least = ratio.min(axis=1)
        tied = ratio <= (least + _TIE)[:, None]
        leave = np.where(tied, column, -np.inf).argmax(axis=1)
        bland = self.still > _BEFORE_BLAND * self.size
        if bland.any():
            leave = np.where(bland, np.where(tied, self.basic, np.iinfo(np.intp).max).argmin(axis=1), leave)
        return leave, np.isinf(least)

    def _exchange(self, every: Index, leave: Index, enter: Index, column: Array, ends: Mask) -> None:
        """The variables of a row and a column; where a round ends the bound keeps its value as a free variable."""
        table, before = self.table, self.table[every, self.row, -1]
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
        stands = ~self.begins & ~ends & (table[every, self.row, -1] <= before)
        self.still = np.where(stands, self.still + 1, 0)
        self.steps = np.where(ends, 0, self.steps + 1)
        self.begins = ends

    def _bound(self, some: Index) -> None:
        """Make the bound's column of problems that begin a round: through the slacks of the levels that rise."""
        if not len(some):
            return
        weight = np.where(self.rising[some], self.per_level[some], 0.0)
        weight /= weight.max(axis=1)[:, None]
        place = self.place[some, self.of_levels]
        by_column = np.zeros((len(some), self.table.shape[2]))
        which, level = np.nonzero((place >= 0) & (weight > 0))
        by_column[which, place[which, level]] = weight[which, level]
        by_column[:, self.pairs + 1] = 0.0
        column = self.column[some]
        by_column[np.arange(len(some)), column] = 0.0
        whole = np.matmul(self.table[some], by_column[:, :, None])[:, :, 0]
        which, level = np.nonzero((place < 0) & (weight > 0))
        whole[which, ~place[which, level]] += weight[which, level]
        self.table[some, :, column] = whole

    def _ended(self, some: Index) -> Mask:
        """Write down the prices of rounds that end here; who is done. Levels with a price rise no more."""
        row, place = self.table[some, self.row[some]], self.place[some]
        price = np.where(place >= 0, np.take_along_axis(row, np.maximum(place, 0), axis=1), 0.0)
        problem, rising = self.problem[some], self.rising[some]
        into = self.into
        into.prices[problem, self.round[some]] = np.maximum(price[:, self.of_capacities], 0.0).reshape(
            len(some), *into.prices.shape[2:]
        )
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
            place = place[done, : self.pairs]
            value = np.take_along_axis(self.table[ready, :, -1], np.maximum(~place, 0), axis=1)
            into.tasks[problem] = np.where(place < 0, value, 0.0).reshape(len(ready), *into.tasks.shape[1:])
            into.rounds[problem] = np.where(fails[done], -1, self.round[ready])
        return np.asarray(done)
