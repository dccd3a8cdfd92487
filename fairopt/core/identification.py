"""Active set of a solution at finite alpha: pairs with tasks, rows with a price, and binding limits.

Tasks and log prices that are accurate to a tolerance do not show which small numbers are zero. An active set is
accepted if its equations hold, and inactive constraints are satisfied, up to `VIOLATED`; otherwise the solution is
first refined (`refinement`).
"""

from __future__ import annotations

import numpy as np

from ..base.errors import SolverError
from ..certificates.backward import backward_error, log_price_per_task
from ..model._arrays import Array
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .accuracy import REFINED, SINGLE_ROUNDING, SOLVE_ROUNDING, VISIBLE
from .factors import LOG_NOTHING
from .first_order import Active, Prices
from .refinement import refined

#: Tasks, prices and slacks up to this value, as fractions, count as zero.
ZERO = SINGLE_ROUNDING
#: Residual of active conditions, and violation of inactive constraints, above which a solution is refined.
VIOLATED = REFINED
#: Error at which refinement ends, about the rounding error.
_REFINED = SOLVE_ROUNDING
#: A pair counts as having tasks if it has more than this part of its user's tasks; a limit may bind if a smaller
#: fraction of it is unused.
_IN_USE = VISIBLE
#: Relative change of a user's tasks above which the refined solution counts as a different solution, and is rejected.
_MOST_CHANGE = 1e-3
#: Costs are bounded from below by the marginal utility times :math:`e^{-FREE\,A}`, with the criterion's `stiffness` A.
FREE = LOG_NOTHING


def identified(
    polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, zero: float | None = ZERO
) -> Active:
    """Active set at tasks (all users, servers) and log prices of whole capacities (rows,), which are refined if needed.

    Parameters
    ----------
    zero : parts of tasks, prices and slacks up to this value count as zero; a condition is weakly active if both of its
        factors are zero. With None no condition is weakly active: the larger of its two factors decides.

    Raises
    ------
    SolverError
        If the solution is too inaccurate to identify the active set.
    """
    x = polytope.work(tasks)
    with np.errstate(all="ignore"):
        log_rows = backward_error(polytope, criterion, tasks, log_rows).every_row
        shown = Indicated(polytope, criterion, x, log_rows)
        if shown.residual > VIOLATED and (found := refined(polytope, criterion, x, log_rows, _REFINED)) is not None:
            other = Indicated(polytope, criterion, found.tasks, found.log_rows)
            shown = (
                other
                if other.residual < shown.residual and np.abs(other.total / shown.total - 1).max() <= _MOST_CHANGE
                else shown
            )
        if shown.residual > 10 * VIOLATED:
            raise SolverError("the solution is too inaccurate to tell which tasks and prices are zero (its active set)")
        return shown.active(zero)


class Indicated:
    """Active set indicated by tasks x (pairs,) and log prices of whole capacities (rows,)."""

    def __init__(self, polytope: Polytope, criterion: Criterion, x: Array, log_rows: Array) -> None:
        self.polytope, self.criterion, self.log_rows = polytope, criterion, log_rows
        scale, user = criterion.stiffness, polytope.pair_user
        self.user = user
        self.total = np.add.reduceat(x, polytope.start[:-1])
        self.part = x / self.total[user]
        marginal = criterion.restrict(polytope.users).log_marginal_of(self.total, user, polytope.pair_server)
        # A pair whose resources have no price gets a negligible cost, so that its logarithm is finite.
        least = marginal - FREE * scale
        self.cost = np.maximum(log_price_per_task(polytope, log_rows), least)
        self.free = self.cost <= least
        slack = (self.cost - marginal) / scale
        self.idle, self.room = 1 - polytope.use @ (x / polytope.gamma), 1 - self.total / polytope.limit
        lowest = np.minimum.reduceat(np.where(self.part > _IN_USE, slack, np.inf), polytope.start[:-1])
        self.excess = np.where((self.room < _IN_USE) & (lowest < 0), -lowest, 0.0)
        self.slack = slack + self.excess[user]
        uses, whole = polytope.use.tocoo(), np.maximum(self.cost, marginal) + np.log(polytope.gamma)
        #: Largest share of a row in the cost of a pair, or in the marginal utility if this exceeds the cost, (rows,).
        self.weight = np.zeros(len(log_rows))
        paid = np.log(uses.data) + log_rows[uses.row] - whole[uses.col]
        np.maximum.at(self.weight, uses.row, np.exp(np.minimum(paid, 0.0)))
        most = np.maximum.reduceat(x, polytope.start[:-1])[user]
        self.pairs = (self.part > np.maximum(self.slack, 0.0)) | ((x >= most) & (x > 0))
        self.rows = self.weight > np.maximum(self.idle, 0.0)
        self.limits = self.excess > np.maximum(self.room, 0.0)

    @property
    def residual(self) -> float:
        """Largest residual of an active condition, or violation of an inactive constraint."""
        sets = (self.slack, self.pairs), (self.idle, self.rows), (self.room, self.limits)
        return max(float(np.where(on, np.abs(one), -one).max(initial=0.0)) for one, on in sets)

    def active(self, zero: float | None) -> Active:
        """Active set, with weakly active conditions if `zero` is given.

        Where a user at its limit has tasks on a server without prices, the limit alone determines its tasks.
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
        at_limit = limits.copy()
        if zero is not None:
            at_limit[self.user[self.free & pairs]] = False
        equal_cost = (pairs | weak[0]) & ~(self.free & (zero is not None))
        prices = Prices(np.where(rows, self.log_rows, -np.inf), self.cost, equal_cost)
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
            at_limit,
            (prices,),
        )
