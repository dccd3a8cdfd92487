"""What is wrong at tasks and prices near an answer, and how it changes to first order: rows of linear programs.

    s_p = (log cost - log worth)/A + xi,   w_r = 1 - use y     y s = 0, b w = 0, all >= 0 at an answer

y is the part of a user's tasks on a pair and s its slack, w what idles of a row and b its largest part in what a task
costs, xi what users at their limit would pay more, A = max(alpha, 1). 0 marks a place:

    s ~ s0 + (alpha/A) (X/X0 - 1) + shares (b/b0 - 1)/A + xi - xi0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp
from ...certificates.backward import backward_error, log_price_per_task
from ...model.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class PlaceOptions:
    """Which users are at their limit: those who want more by more than they lack of it."""

    #: What they want is said by pairs with more than this part of their tasks.
    used: float = 1e-3


#: What is used unless a caller says otherwise.
OPTIONS = PlaceOptions()


@dataclass(frozen=True)
class Place:
    """Tasks (pairs,) and log prices of whole capacities (rows,), with what is known there."""

    tasks: Array
    log_rows: Array
    total: Array  # (users,)
    part: Array  # (pairs,), y
    slack: Array  # (pairs,), s
    excess: Array  # (users,), xi
    share: Array  # (pairs, resources), parts in what pairs pay
    idle: Array  # (rows,), w
    weight: Array  # (rows,), b
    room: Array  # (users,), what they lack of their limits, over their totals
    error: float  # the largest of min(y, |s|), min(b, |w|) and min(xi, room)


@dataclass(frozen=True)
class Linear:
    """How conditions change with unknowns: parts of `pairs`, b of all rows, xi of users that are `full`."""

    pairs: Index
    full: Index
    slack: sp.csr_matrix  # (pairs, unknowns)
    use: sp.csr_matrix  # (rows, unknowns)
    total: sp.csr_matrix  # (users, unknowns), of X/X0


class Conditions:
    """The conditions of one problem."""

    def __init__(self, problem: Problem, log_marginal: Array, options: PlaceOptions = OPTIONS) -> None:
        polytope = self.polytope = problem.polytope
        self.criterion, self.log_marginal, self.options = problem.criterion, log_marginal, options
        self.alpha = problem.criterion.alpha
        self.scale = max(self.alpha, 1.0)
        row_of = np.full(polytope.cluster.capacity.shape, -1)
        row_of[polytope.row_server, polytope.row_resource] = np.arange(len(polytope.row_server))
        of = np.where(polytope.pair_use > 0, row_of[polytope.pair_server], -1)
        #: Which pair uses which row, by number of the entry.
        self.pair, self.resource = np.nonzero(of >= 0)
        self.row = of[self.pair, self.resource]

    @np.errstate(divide="ignore", invalid="ignore")
    def place(self, tasks: Array, log_rows: Array) -> Place:
        """What is known at tasks and prices; an infinite error where a user has no tasks."""
        polytope, first, user = self.polytope, self.polytope.start[:-1], self.polytope.pair_user
        total = np.add.reduceat(tasks, first)
        part = tasks / total[user]
        cost = log_price_per_task(polytope, log_rows)
        slack = (cost - self.log_marginal + self.alpha * np.log(total)[user]) / self.scale
        room = np.maximum(polytope.limit / total - 1, 0.0)
        least = np.minimum.reduceat(np.where(part > self.options.used, slack, np.inf), first)
        excess = np.where(np.isfinite(least) & (-least > room), -least, 0.0)
        slack = slack + excess[user]
        share = np.zeros(polytope.pair_use.shape)
        entry = self.pair, self.resource
        use = polytope.pair_use[entry]
        share[entry] = np.exp(np.log(use) + log_rows[self.row] - (cost + np.log(polytope.gamma))[self.pair])
        weight, used = np.zeros(len(log_rows)), np.zeros(len(log_rows))
        np.maximum.at(weight, self.row, share[entry])
        np.add.at(used, self.row, use * (tasks / polytope.gamma)[self.pair])
        idle = 1 - used
        error = max(
            float(np.where(slack < 0, -slack, np.minimum(part, slack)).max(initial=0.0)),
            float(np.where(idle < 0, -idle, np.minimum(weight, idle)).max(initial=0.0)),
            float(np.minimum(excess, room).max(initial=0.0)),
        )
        error = error if np.isfinite(slack).all() else np.inf
        return Place(tasks, log_rows, total, part, slack, excess, share, idle, weight, room, error)

    def fitted(self, tasks: Array, log_rows: Array) -> Place:
        """The place at prices in the scale that fits best, as the judge finds it (in the game: of each server)."""
        found = backward_error(self.polytope, self.criterion, self._feasible(tasks), log_rows)
        return self.place(tasks, found.every_row)

    def judged(self, at: Place) -> float:
        """The backward error of a place, its tasks made feasible."""
        return backward_error(self.polytope, self.criterion, self._feasible(at.tasks), at.log_rows).error

    def _feasible(self, tasks: Array) -> Array:
        return self.polytope.allocation(self.polytope.inside(tasks / self.polytope.gamma))

    def linear(self, at: Place, pairs: Index) -> Linear:
        """How conditions change at a place with the unknowns of some pairs."""
        polytope = self.polytope
        count, users, rows = len(pairs), len(at.total), len(at.log_rows)
        full = np.flatnonzero(at.excess > 0)
        number = np.full(len(at.tasks), -1)
        number[pairs] = np.arange(count)
        some = number[self.pair] >= 0
        column, row, entry = number[self.pair[some]], self.row[some], (self.pair[some], self.resource[some])
        per_part = polytope.pair_use[entry] * (at.total[polytope.pair_user] / polytope.gamma)[entry[0]]
        use = sp.csr_matrix((per_part, (row, column)), shape=(rows, count))
        relative = at.share[entry] / np.where(at.weight[row] > 0, at.weight[row], 1.0)
        share = sp.csr_matrix((relative, (column, row)), shape=(count, rows))
        whose = sp.csr_matrix((np.ones(count), (np.arange(count), polytope.pair_user[pairs])), shape=(count, users))
        return Linear(
            pairs,
            full,
            slack=sp.hstack(
                [(whose @ whose.T) * (self.alpha / self.scale), share / self.scale, whose[:, full]], format="csr"
            ),
            use=sp.hstack([use, sp.csr_matrix((rows, rows + len(full)))], format="csr"),
            total=sp.hstack([whose.T, sp.csr_matrix((users, rows + len(full)))], format="csr"),
        )

    def longest(self, at: Place, step: float) -> tuple[Array, Array]:
        """By how much totals (users,) may fall and rise: `step`, but to limits, and who is at one does not fall."""
        return np.where(at.excess > 0, 0.0, step), np.minimum(at.room, step)

    def moved(self, at: Place, linear: Linear, change: Array, least: float) -> Place:
        """The place after a change of the unknowns; a price falls to the part `least` of itself at most."""
        count, rows = len(linear.pairs), len(at.log_rows)
        tasks = np.zeros(len(at.tasks))
        part = np.maximum(at.part[linear.pairs] + change[:count], 0.0)
        tasks[linear.pairs] = part * at.total[self.polytope.pair_user[linear.pairs]]
        ratio = 1 + change[count : count + rows] / np.where(at.weight > 0, at.weight, 1.0)
        return self.place(tasks, at.log_rows + np.log(np.maximum(ratio, least)))
