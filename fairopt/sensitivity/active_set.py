"""The active set of an answer at finite alpha: pairs with tasks, priced rows, limits that bind, to the last digits.

Tasks and log prices that are known to a tolerance leave open which of many small numbers are 0. Newton's method on the
equations of a guessed set finds tasks and prices to rounding; who would have fewer than no tasks or a negative price
leaves the set, what is violated comes in, until nothing is (a primal-dual active-set method, started next to its end).

Source: Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim.
2002.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..certificates.backward import backward_error, log_price_per_task
from ..certificates.derivative import derivative
from ..errors import SolverError
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .conditions import crowded, representative
from .linear import LeastSquares

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Options:
    """How the active set is found. Tasks are relative to their user's, slacks and prices to what is paid."""

    #: Equations hold with `residual <= solved`; outside the set nothing is violated by more than `violated`.
    solved: float = 1e-11
    violated: float = 1e-10
    #: Most Newton steps, and the residual that is enough after them.
    steps: int = 40
    sufficient: float = 1e-9
    #: Totals change by at most this part in a step.
    longest: float = 0.5
    #: Tasks, prices and slacks up to this count as 0.
    zero: float = 1e-7
    #: A step over `far` times as long as the residual comes from equations that are singular, but for rounding.
    far: float = 1e5
    #: What is free costs `exp(-free max(alpha, 1))` of what it is worth.
    free: float = 50.0
    #: A row that comes in begins with this part of what its users pay.
    comes_in: float = 1e-3


OPTIONS = Options()

#: What a step changes.
_STATE = ("x", "log_rows", "excess", "pairs", "rows", "full")


@dataclass(frozen=True)
class ActiveSet:
    """Tasks and prices, and which of them are not 0; weak ones are 0, and nothing holds them there.

    Attributes
    ----------
    tasks : (pairs,); log_rows : (rows,), -inf for no price; cost : (pairs,), log price of a task
    pairs, weak_pairs : (pairs,), with tasks; without, though no dearer than others
    rows, weak_rows : (rows,), with a price; without, though used up
    full, weak_full : (users,), whose limit binds; who just reach it
    free : (pairs,), which cost nothing, of users who are served in full
    """

    tasks: Array
    log_rows: Array
    cost: Array
    pairs: Mask
    weak_pairs: Mask
    rows: Mask
    weak_rows: Mask
    full: Mask
    weak_full: Mask
    free: Mask


def active_set(
    polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, options: Options = OPTIONS
) -> ActiveSet:
    """The active set near tasks (all users, servers) and log prices of whole capacities (rows,).

    Raises
    ------
    SolverError
        The answer is not near enough to an exact one.
    """
    with np.errstate(all="ignore"):
        search = _Search(polytope, criterion, tasks, log_rows, options)
        search.run()
        return search.found()


class _Search:
    """Tasks, prices and excess on their way, and the set."""

    def __init__(
        self, polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, options: Options
    ) -> None:
        self.polytope, self.options = polytope, options
        self.own, self.scale = criterion.restrict(polytope.users), criterion.stiffness
        self.user, self.server = polytope.pair_user, polytope.pair_server
        near = backward_error(polytope, criterion, tasks, log_rows)
        self.x = tasks[polytope.users[self.user], self.server].copy()
        self.log_rows = near.every_row.copy()
        self.excess = np.zeros(len(polytope.users))
        self._look()
        slack = self.slack
        at_limit = self.room < 1e-6
        least = np.minimum.reduceat(np.where(self.part > 1e-6, slack, np.inf), polytope.start[:-1])
        self.excess = np.where(at_limit & (least < 0), -least, 0.0)
        slack = slack + self.excess[self.user]
        weight = self._weight()
        self.pairs: Mask = self.part > np.maximum(slack, 0.0)
        self.rows: Mask = (weight > self.idle) & (weight > options.zero)
        self.full: Mask = at_limit & (self.excess > self.room)
        self._everybody(np.zeros(0, dtype=np.intp))
        self._prune()

    def _prune(self) -> None:
        """What is outside of the set is 0."""
        self.x = np.where(self.pairs, self.x, 0.0)
        self.log_rows = np.where(self.rows, self.log_rows, -np.inf)
        self.excess = np.where(self.full, self.excess, 0.0)
        self._look()

    def _look(self) -> None:
        polytope = self.polytope
        self.total = np.add.reduceat(self.x, polytope.start[:-1])
        self.part = self.x / self.total[self.user]
        marginal = self.own.log_marginal(self.total)
        self.marginal = marginal[self.user, self.server] if marginal.ndim == 2 else marginal[self.user]
        # Where nothing has a price, users who are served in full pay next to nothing.
        cost = log_price_per_task(polytope, self.log_rows)
        self.cost = np.maximum(cost, self.marginal - self.options.free * self.scale)
        self.slack = (self.cost - self.marginal) / self.scale + self.excess[self.user]
        self.idle = 1 - polytope.use @ (self.x / polytope.gamma)
        self.room = 1 - self.total / polytope.limit

    def _weight(self) -> Array:
        """(rows,): the largest part of a row in what a pair costs, or would be worth."""
        polytope = self.polytope
        entries = polytope.use.tocoo()
        whole = np.maximum(self.cost, self.marginal) + np.log(polytope.gamma)
        paid = np.log(entries.data) + self.log_rows[entries.row] - whole[entries.col]
        result = np.zeros(len(self.log_rows))
        np.maximum.at(result, entries.row, np.exp(np.minimum(paid, 0.0)))
        return result

    def run(self) -> None:
        """Newton steps and changes of the set, until nothing is wrong.

        Where many pairs tie the equations are singular, and a step from an answer that is good to ten digits may lead
        away: it is then taken back.
        """
        options = self.options
        for _ in range(options.steps):
            before = self._missed()
            if before <= options.sufficient and not self._come_in():
                many = crowded(self.polytope, int(self.pairs.sum()))
                if before <= (options.violated if many else options.solved):
                    return
                kept = {name: getattr(self, name).copy() for name in _STATE}
                self._step(self._residual())
                if self._missed() >= before:
                    vars(self).update(kept)
                    self._look()
                    return
            else:
                self._step(self._residual())
        if self._missed() > options.sufficient or self._come_in():
            raise SolverError(
                "the answer is not near enough to an exact one to tell which tasks and prices are zero: solve it with "
                "a smaller tol, such as solve(cluster, tol=1e-9)"
            )

    def _missed(self) -> float:
        return float(np.abs(self._residual()).max(initial=0.0))

    def _residual(self) -> Array:
        return np.concatenate([self.slack[self.pairs], -self.idle[self.rows], np.log1p(-self.room[self.full])])

    def _step(self, residual: Array) -> None:
        pairs, rows, full = (np.flatnonzero(each) for each in (self.pairs, self.rows, self.full))
        some = representative(self.polytope, pairs, self.part[pairs])
        residual = residual[np.concatenate([some, np.ones(len(rows) + len(full), dtype=bool)])]
        pairs = pairs[some]
        polytope, p, r = self.polytope, len(pairs), len(rows)
        elasticity = self.own.elasticity(self.total) / self.scale
        args = pairs, rows, full, self.total, elasticity, self.scale, self.cost, self.log_rows
        matrix = derivative(polytope, *args)
        equations, free = LeastSquares(matrix), len(self.total) + r + len(full)
        # With more pairs than levels of users and prices some equations follow from others, and splits are free.
        step = equations.solve(-residual) if p <= free or equations.small else equations.damped(-residual)
        if np.abs(step).max(initial=0.0) > self.options.far * np.abs(residual).max(initial=0.0):
            step = equations.damped(-residual)
        grown = np.bincount(self.user[pairs], step[:p], len(self.total))
        t = min(1.0, self.options.longest / max(float(np.abs(grown).max(initial=0.0)), 1e-300))
        self.x[pairs] += t * step[:p] * self.total[self.user[pairs]]
        self.pairs[pairs[self.x[pairs] <= 0]] = False
        self._everybody(pairs)
        change = t * step[p : p + r]
        self.log_rows[rows] += np.clip(change, -1.0, 3.0)
        self.rows[rows[step[p : p + r] <= -1.0]] = False
        self.excess[full] += t * step[p + r :]
        self.full[full[self.excess[full] < 0]] = False
        self._prune()

    def _everybody(self, pairs: NDArray[np.intp]) -> None:
        """Nobody loses all pairs: of those that moved, or of all, the one with most tasks stays."""
        for n in np.flatnonzero(np.bincount(self.user, self.pairs, len(self.total)) == 0):
            mine = pairs[self.user[pairs] == n]
            mine = mine if len(mine) else np.flatnonzero(self.user == n)
            keep = mine[int(np.argmax(self.x[mine]))]
            self.pairs[keep], self.x[keep] = True, max(float(self.x[keep]), 1e-9 * float(self.total[n]))

    def _come_in(self) -> bool:
        """Take in what is violated; was anything?"""
        options, polytope = self.options, self.polytope
        pairs = ~self.pairs & (self.slack < -options.violated)
        rows = ~self.rows & (self.idle < -options.violated)
        full = ~self.full & (self.room < -options.violated)
        if rows.any():
            entries = polytope.use.tocoo()
            bought = (self.cost + np.log(polytope.gamma))[entries.col] - np.log(entries.data)
            least = np.full(len(rows), np.inf)
            np.minimum.at(least, entries.row, np.where(self.pairs[entries.col], bought, np.inf))
            rows &= np.isfinite(least)
            self.log_rows[rows] = least[rows] + np.log(options.comes_in)
        self.pairs |= pairs
        self.rows |= rows
        self.full |= full
        if rows.any():
            self._look()
        return bool(pairs.any() or rows.any() or full.any())

    def found(self) -> ActiveSet:
        """The set, its members strict or weak."""
        zero = self.options.zero
        weight = self._weight()
        pairs, rows, full = self.part > zero, weight > zero, self.full & (self.excess > zero)
        free = self.cost <= self.marginal - self.options.free * self.scale
        return ActiveSet(
            np.where(pairs, self.x, 0.0),
            np.where(rows, self.log_rows, -np.inf),
            self.cost,
            pairs,
            ~pairs & (self.slack <= zero) & ~free,
            rows,
            ~rows & (self.idle <= zero),
            full,
            ~full & (self.room <= zero),
            free,
        )
