"""Tasks placed anew, at the prices and totals of a candidate: a linear program.

    minimise  sum s_ni y_ni + sum b_ir w_ir + loss sum l_n
    over      sum_n X_n d_nr y_ni + w_ir = c_ir,   sum_i y_ni + l_n = 1,   y, w, l >= 0

y are parts of a user's tasks, s by how much a pair is dearer than it is worth, b the part of a row in what its users
pay, and l what would be lost. Where what some users pay is next to nothing beside what others pay for the same server,
the slacks of these others are the same in doubles wherever they run: Newton steps cannot tell where they leave room,
though prices and totals are right. A vertex of this program needs no slacks that small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import _clock
from ..._libraries import optimize, sp
from ...certificates.backward import log_price_per_task
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from ..base import Run, Solution
from .refine import in_units_of_worth

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlacementOptions:
    """Which pairs may have tasks, and what a user's total is worth."""

    #: Pairs with a larger slack, relative in tasks, get nothing.
    near: float = 1e-2
    #: What all of a user's tasks cost if they are lost.
    loss: float = 10.0


#: What is used unless a caller says otherwise.
OPTIONS = PlacementOptions()


def of_solution(problem: Problem, solution: Solution, options: PlacementOptions = OPTIONS) -> Solution | None:
    """The candidate with its tasks placed anew, or `None` where that is not for this method."""
    polytope, criterion = problem.polytope, problem.criterion
    log_prices = solution.log_prices
    finite = type(criterion) is Criterion and 0 < criterion.alpha < np.inf and not criterion.floor.any()
    # Where task counts bind the game has a continuum of equilibria, and this would lead to another.
    many = criterion.scope == "game" and bool(np.isfinite(polytope.limit).any())
    if log_prices is None or not finite or many or not len(polytope.users):
        return None
    begun = _clock.now()
    tasks, log_rows, log_marginal, alpha = in_units_of_worth(problem, solution, log_prices)
    total = np.add.reduceat(tasks, polytope.start[:-1])
    if not (total > 0).all():
        return None
    marginal = log_marginal - (alpha * np.log(total))[polytope.pair_user]
    slack = (log_price_per_task(polytope, log_rows) - marginal) / max(criterion.alpha, 1.0)
    pairs = np.flatnonzero(slack < options.near)
    users, rows = len(polytope.users), len(log_rows)
    per_part = total[polytope.pair_user[pairs]] / polytope.gamma[pairs]
    left = sp.bmat(
        [
            [polytope.use[:, pairs] @ sp.diags(per_part), sp.identity(rows), None],
            [sp.csr_matrix((np.ones(len(pairs)), (polytope.pair_user[pairs], np.arange(len(pairs)))),
                           shape=(users, len(pairs))), None, sp.identity(users)],
        ],
        format="csr",
    )  # fmt: skip
    cost = [np.maximum(slack[pairs], 0.0), _part_of_rows(polytope, log_rows), np.full(users, options.loss)]
    answer = optimize.linprog(
        np.concatenate(cost), A_eq=left, b_eq=np.ones(rows + users), bounds=(0, None), method="highs"
    )
    if answer.x is None:
        return None
    fractions = np.zeros(len(tasks))
    fractions[pairs] = np.maximum(answer.x[: len(pairs)], 0.0) * per_part
    run = Run("HiGHS", str(answer.message), 0.0, _clock.now() - begun, float(answer.fun))
    placed = polytope.allocation(polytope.inside(fractions))
    return replace(solution, tasks=placed, runs=(*solution.runs, run))


def _part_of_rows(polytope: Polytope, log_rows: Array) -> Array:
    """(rows,): the largest part of a row in what a task of some pair costs."""
    price, cost = polytope.by_server(log_rows, unused=-np.inf), log_price_per_task(polytope, log_rows)
    largest = np.full(price.shape, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for r in range(price.shape[1]):
            part = np.log(polytope.pair_use[:, r] / polytope.gamma) + price[polytope.pair_server, r] - cost
            np.maximum.at(largest[:, r], polytope.pair_server, np.where(np.isnan(part), -np.inf, part))
    return np.asarray(np.exp(largest[polytope.row_server, polytope.row_resource]))
