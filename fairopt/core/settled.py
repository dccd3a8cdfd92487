"""The active set of an answer at finite alpha: pairs with tasks, priced rows, limits that bind, to the last digits.

Tasks and log prices that are known to a tolerance leave open which of many small numbers are 0: unless they solve the
equations of the set that they show to rounding, their last digits are found (`last_digits`).
"""

from __future__ import annotations

import numpy as np

from ..base.errors import SolverError
from ..certificates.backward import backward_error, log_price_per_task
from ..model._arrays import Array
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .first_order import Active, Prices
from .last_digits import refined

#: Tasks, prices and slacks up to this count as 0.
ZERO = 1e-7
#: Outside the set nothing is violated by more, and equations are not missed by more, in logarithms.
VIOLATED = 1e-10
#: Last digits that change a user's tasks by a larger part are those of another answer.
_ASTRAY = 1e-3
#: What is free costs `exp(-FREE max(alpha, 1))` of what it is worth.
FREE = 50.0


def settled(
    polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, zero: float | None = ZERO
) -> Active:
    """Active set at tasks (all users, servers) and log prices of whole capacities (rows,).

    What is at most `zero` is told apart from its members as weak; with None all of them are members.

    Raises
    ------
    SolverError
        The answer is not near enough to an exact one.
    """
    x = tasks[polytope.users[polytope.pair_user], polytope.pair_server]
    with np.errstate(all="ignore"):
        log_rows = backward_error(polytope, criterion, tasks, log_rows).every_row
        at = Shown(polytope, criterion, x, log_rows)
        if at.missed > VIOLATED and (found := refined(polytope, criterion, x, log_rows, 1e-14)) is not None:
            other = Shown(polytope, criterion, found.tasks, found.log_rows)
            at = other if other.missed < at.missed and np.abs(other.total / at.total - 1).max() <= _ASTRAY else at
        if at.missed > 10 * VIOLATED:
            raise SolverError(
                "the answer is not near enough to an exact one to tell which tasks and prices are zero: solve it with "
                "a smaller tol, such as solve(cluster, tol=1e-9)"
            )
        return at.active(zero)


class Shown:
    """Tasks and log prices, and the active set that they indicate."""

    def __init__(self, polytope: Polytope, criterion: Criterion, x: Array, log_rows: Array) -> None:
        self.polytope, self.criterion, self.log_rows = polytope, criterion, log_rows
        scale, user = criterion.stiffness, polytope.pair_user
        self.user = user
        self.total = np.add.reduceat(x, polytope.start[:-1])
        self.part = x / self.total[user]
        marginal = criterion.restrict(polytope.users).log_marginal_of(self.total, user, polytope.pair_server)
        # Where nothing has a price, users who are served in full pay next to nothing.
        least = marginal - FREE * scale
        self.cost = np.maximum(log_price_per_task(polytope, log_rows), least)
        self.free = self.cost <= least
        slack = (self.cost - marginal) / scale
        self.idle, self.room = 1 - polytope.use @ (x / polytope.gamma), 1 - self.total / polytope.limit
        lowest = np.minimum.reduceat(np.where(self.part > 1e-6, slack, np.inf), polytope.start[:-1])
        self.excess = np.where((self.room < 1e-6) & (lowest < 0), -lowest, 0.0)
        self.slack = slack + self.excess[user]
        uses, whole = polytope.use.tocoo(), np.maximum(self.cost, marginal) + np.log(polytope.gamma)
        #: (rows,): the largest part of a row in what a pair costs, or would be worth.
        self.weight = np.zeros(len(log_rows))
        paid = np.log(uses.data) + log_rows[uses.row] - whole[uses.col]
        np.maximum.at(self.weight, uses.row, np.exp(np.minimum(paid, 0.0)))
        most = np.maximum.reduceat(x, polytope.start[:-1])[user]
        self.pairs = (self.part > np.maximum(self.slack, 0.0)) | ((x >= most) & (x > 0))
        self.rows = self.weight > np.maximum(self.idle, 0.0)
        self.limits = self.excess > np.maximum(self.room, 0.0)

    @property
    def missed(self) -> float:
        """Largest residual of active conditions, or violation of inactive ones."""
        sets = (self.slack, self.pairs), (self.idle, self.rows), (self.room, self.limits)
        return max(float(np.where(on, np.abs(one), -one).max(initial=0.0)) for one, on in sets)

    def active(self, zero: float | None) -> Active:
        """The set as it is, or with members above `zero` and weakly active conditions apart.

        Who is served in full where nothing has a price follows its limit alone.
        """
        pairs, rows, limits = self.pairs, self.rows, self.limits
        weak = [np.zeros(len(each), dtype=bool) for each in (pairs, rows, limits)]
        if zero is not None:
            pairs, rows, limits = self.part > zero, self.weight > zero, limits & (self.excess > zero)
            weak = [
                ~pairs & (self.slack <= zero) & ~self.free,
                ~rows & (self.idle <= zero),
                ~limits & (self.room <= zero),
            ]
        users = np.arange(len(self.total))
        held = limits.copy()
        if zero is not None:
            held[self.user[self.free & pairs]] = False
        cheap = (pairs | weak[0]) & ~(self.free & (zero is not None))
        prices = Prices(np.where(rows, self.log_rows, -np.inf), self.cost, cheap)
        return Active(
            self.polytope,
            self.criterion,
            self.total,
            np.where(pairs, self.part, 0.0),
            pairs,
            weak[0],
            rows,
            weak[1],
            limits,
            weak[2],
            np.zeros(len(users), dtype=bool),
            users,
            held,
            (prices,),
        )
