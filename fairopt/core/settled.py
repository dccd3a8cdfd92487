"""The active set of an answer at finite alpha: pairs with tasks, priced rows, limits that bind, to the last digits.

Tasks and log prices that are known to a tolerance leave open which of many small numbers are 0. Newton's method on the
equations of a guessed set finds tasks and prices to rounding; who would have fewer than no tasks or a negative price
leaves the set, what is violated comes in, until nothing is (a primal-dual active-set method, started next to its end).

Source: Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim.
2002.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..certificates.backward import backward_error, log_price_per_task
from ..errors import SolverError
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .first_order import Active, Equations, Factors, Prices, crowded

Array = NDArray[np.float64]

#: Tasks, prices and slacks up to this count as 0.
ZERO = 1e-7
#: Outside the set nothing is violated by more, and equations are not missed by more, in logarithms.
VIOLATED = 1e-10
#: What is free costs `exp(-FREE max(alpha, 1))` of what it is worth.
FREE = 50.0


def settled(
    polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, zero: float | None = ZERO
) -> Active:
    """The active set near tasks (all users, servers) and log prices of whole capacities (rows,).

    What is at most `zero` is told apart from its members as weak; with None all of them are members.

    Raises
    ------
    SolverError
        The answer is not near enough to an exact one.
    """
    with np.errstate(all="ignore"):
        at = _Point(polytope, criterion, tasks, log_rows)
        at.settle()
        return at.active(zero)


class _Point:
    """Tasks, log prices and excess on their way, and the set."""

    def __init__(self, polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array) -> None:
        self.polytope, self.criterion = polytope, criterion
        self.own, self.scale = criterion.restrict(polytope.users), criterion.stiffness
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.uses = polytope.use.tocoo()
        self.x = tasks[polytope.users[self.user], self.server].copy()
        self.log_rows = backward_error(polytope, criterion, tasks, log_rows).every_row.copy()
        self.excess = np.zeros(len(polytope.users))
        self._look()
        near = self.room < 1e-6
        least = np.minimum.reduceat(np.where(self.part > 1e-6, self.slack, np.inf), polytope.start[:-1])
        self.excess = np.where(near & (least < 0), -least, 0.0)
        weight = self._weight()
        self.pairs = self.part > np.maximum(self.slack + self.excess[self.user], 0.0)
        self.rows = weight > np.maximum(self.idle, ZERO)
        self.limits = near & (self.excess > self.room)
        self._prune()

    def _prune(self) -> None:
        """What is outside of the set is 0; nobody loses all pairs: the one with most tasks stays."""
        none = np.bincount(self.user, self.pairs, len(self.excess)) == 0
        if none.any():
            best = self.x >= np.maximum.reduceat(self.x, self.polytope.start[:-1])[self.user]
            back = np.flatnonzero(best & none[self.user])
            self.pairs[back] = True
            self.x[back] = np.maximum(self.x[back], 1e-9 * self.total[self.user[back]])
        self.x = np.where(self.pairs, self.x, 0.0)
        self.log_rows = np.where(self.rows, self.log_rows, -np.inf)
        self.excess = np.where(self.limits, self.excess, 0.0)
        self._look()

    def _look(self) -> None:
        polytope = self.polytope
        self.total = np.add.reduceat(self.x, polytope.start[:-1])
        self.part = self.x / self.total[self.user]
        marginal = self.own.log_marginal(self.total)
        self.marginal = marginal[self.user, self.server] if marginal.ndim == 2 else marginal[self.user]
        # Where nothing has a price, users who are served in full pay next to nothing.
        least = self.marginal - FREE * self.scale
        self.cost = np.maximum(log_price_per_task(polytope, self.log_rows), least)
        self.free = self.cost <= least
        self.slack = (self.cost - self.marginal) / self.scale + self.excess[self.user]
        self.idle = 1 - polytope.use @ (self.x / polytope.gamma)
        self.room = 1 - self.total / polytope.limit

    def _weight(self) -> Array:
        """(rows,): the largest part of a row in what a pair costs, or would be worth."""
        whole = np.maximum(self.cost, self.marginal) + np.log(self.polytope.gamma)
        paid = np.log(self.uses.data) + self.log_rows[self.uses.row] - whole[self.uses.col]
        result = np.zeros(len(self.log_rows))
        np.maximum.at(result, self.uses.row, np.exp(np.minimum(paid, 0.0)))
        return result

    def settle(self) -> None:
        """Newton steps and changes of the set, until nothing is wrong.

        Where many pairs tie the equations are singular, and a step from an answer that is good to ten digits may lead
        away: it is then taken back.
        """
        for _ in range(40):
            missed = self._missed()
            if missed <= 10 * VIOLATED and not self._come_in():
                if missed <= VIOLATED * (1.0 if crowded(self.polytope, int(self.pairs.sum())) else 0.1):
                    return
                before = dict(vars(self))
                self._step()
                if self._missed() >= missed:
                    vars(self).update(before)
                    return
            else:
                self._step()
        if self._missed() > 10 * VIOLATED or self._come_in():
            raise SolverError(
                "the answer is not near enough to an exact one to tell which tasks and prices are zero: solve it with "
                "a smaller tol, such as solve(cluster, tol=1e-9)"
            )

    def _missed(self) -> float:
        wrong = self.slack[self.pairs], self.idle[self.rows], self.room[self.limits]
        return max(float(np.abs(each).max(initial=0.0)) for each in wrong)

    def _step(self) -> None:
        equations = Equations(self.active(None))
        pairs, p = equations.standing, len(equations.standing)
        wrong = self.idle[equations.rows], -np.log1p(-self.room[equations.limits])
        given = np.concatenate([-self.slack[equations.cheap[0]], *wrong])
        damped = 1e-6 if len(given) <= 300 else 0.0  # factors of large matrices take several times as long
        step = Factors(equations.matrix, equations.main, damped).solve(given)
        if not np.abs(step).max(initial=0.0) <= 1e5 * np.abs(given).max(initial=0.0):  # singular, but for rounding
            step = Factors(equations.matrix, equations.main, 1e-6).solve(given)
        grown = np.bincount(self.user[pairs], step[:p], len(self.total))
        t = min(1.0, 0.5 / max(float(np.abs(grown).max(initial=0.0)), 1e-300))
        self.x, self.log_rows, self.excess = self.x.copy(), self.log_rows.copy(), self.excess.copy()
        self.pairs, self.rows, self.limits = self.pairs.copy(), self.rows.copy(), self.limits.copy()
        self.x[pairs] += t * step[:p] * self.total[self.user[pairs]]
        self.pairs[pairs[self.x[pairs] <= 0]] = False
        rows, change = equations.rows, step[p : p + len(equations.rows)]
        self.log_rows[rows] += np.clip(t * change, -1.0, 3.0)
        self.rows[rows[change <= -1.0]] = False
        self.excess[self.limits] += t * step[p + len(rows) :]
        self.limits &= self.excess >= 0
        self._prune()

    def _come_in(self) -> bool:
        """Take in what is violated; was anything? A row begins with a thousandth of what its users pay."""
        pairs = ~self.pairs & (self.slack < -VIOLATED)
        rows = ~self.rows & (self.idle < -VIOLATED)
        limits = ~self.limits & (self.room < -VIOLATED)
        if rows.any():
            bought = (self.cost + np.log(self.polytope.gamma))[self.uses.col] - np.log(self.uses.data)
            least = np.full(len(rows), np.inf)
            np.minimum.at(least, self.uses.row, np.where(self.pairs[self.uses.col], bought, np.inf))
            rows &= np.isfinite(least)
            self.log_rows = np.where(rows, least + np.log(1e-3), self.log_rows)
        self.pairs, self.rows, self.limits = self.pairs | pairs, self.rows | rows, self.limits | limits
        if rows.any():
            self._look()
        return bool(pairs.any() or rows.any() or limits.any())

    def active(self, zero: float | None) -> Active:
        """The set as it is; or with members that are more than `zero`, and those that are weak.

        Who is served in full where nothing has a price follows its limit alone.
        """
        pairs, rows, limits = self.pairs, self.rows, self.limits
        weak = [np.zeros(len(each), dtype=bool) for each in (pairs, rows, limits)]
        if zero is not None:
            pairs, rows, limits = self.part > zero, self._weight() > zero, limits & (self.excess > zero)
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
