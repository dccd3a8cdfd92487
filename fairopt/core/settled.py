"""The active set of an answer at finite alpha: pairs with tasks, priced rows, limits that bind, to the last digits.

Tasks and log prices that are known to a tolerance leave open which of many small numbers are 0: unless they solve the
equations of the set that they show to rounding, their last digits are found (`last_digits`).
"""

from __future__ import annotations

import numpy as np

from ..certificates.backward import backward_error
from ..errors import SolverError
from ..model._arrays import Array
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from .first_order import Active, Prices
from .last_digits import Conditions, Point, refined

#: Tasks, prices and slacks up to this count as 0.
ZERO = 1e-7
#: Outside the set nothing is violated by more, and equations are not missed by more, in logarithms.
VIOLATED = 1e-10
#: Last digits that change a user's tasks by a larger part are those of another answer.
_ASTRAY = 1e-3


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
        shown = Conditions(polytope, criterion).started
        at = shown(x, log_rows)
        if at.missed > VIOLATED and (found := refined(polytope, criterion, x, log_rows, 1e-14)) is not None:
            other = shown(found.tasks, found.log_rows)
            if other.missed < at.missed and np.abs(other.total / at.total - 1).max() <= _ASTRAY:
                at, log_rows = other, found.log_rows
        if at.missed > 10 * VIOLATED:
            raise SolverError(
                "the answer is not near enough to an exact one to tell which tasks and prices are zero: solve it with "
                "a smaller tol, such as solve(cluster, tol=1e-9)"
            )
        return _active(polytope, criterion, at, log_rows, zero)


def _active(polytope: Polytope, criterion: Criterion, at: Point, log_rows: Array, zero: float | None) -> Active:
    """The set as it is, or with members above `zero` and weakly active conditions apart.

    Who is served in full where nothing has a price follows its limit alone.
    """
    # What costs exp(-50 max(alpha, 1)) of what it is worth is free, and so is what has the least price that there is.
    priced = log_rows > at.log_rows + min(300 - 50 * criterion.stiffness, -1.0)
    free = polytope.use.T @ priced.astype(float) == 0
    pairs, rows, limits = at.pairs, at.rows, at.limits
    weak = [np.zeros(len(each), dtype=bool) for each in (pairs, rows, limits)]
    if zero is not None:
        pairs, rows, limits = at.part > zero, at.weight > zero, limits & (at.excess > zero)
        weak = [
            ~pairs & (at.slack <= zero) & ~free,
            ~rows & (at.idle <= zero),
            ~limits & (at.room <= zero),
        ]
    users = np.arange(len(at.total))
    held = limits.copy()
    if zero is not None:
        held[at.user[free & pairs]] = False
    cheap = (pairs | weak[0]) & ~(free & (zero is not None))
    prices = Prices(np.where(rows, at.log_rows, -np.inf), at.cost, cheap)
    return Active(
        polytope,
        criterion,
        at.total,
        np.where(pairs, at.part, 0.0),
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
