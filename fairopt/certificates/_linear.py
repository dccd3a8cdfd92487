"""Linear programs of certificates, which recompute the bounds from the dual solutions by arithmetic."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.libraries import sp
from ..model._arrays import Array, Index
from ..model.linear import minimise
from ..model.polytope import Polytope

#: Time limit in seconds of the linear programs of one certificate, since simplex methods can cycle.
SECONDS = 60.0


def maximise(
    value: Array, rows: list[Any], bounds: list[Array], seconds: float = SECONDS
) -> tuple[Array, list[Array]] | None:
    """Maximise `value @ y` over `y >= 0, rows[k] @ y <= bounds[k]`, and return y and one dual vector per block k.

    The result is None if the linear program was not solved within the time limit.
    """
    found = minimise(-value, sp.vstack(rows, format="csr"), np.concatenate(bounds), seconds=seconds)
    if found is None:
        return None
    return found.x, np.split(found.prices, np.cumsum([len(bound) for bound in bounds])[:-1])


class Rises(NamedTuple):
    """Solution of `rises`: fractions (pairs,), increases (hungry users,), and duals of rows, tasks and limits."""

    fractions: Array
    rises: Array
    prices: Array
    tasks: Array  # (users,)
    limits: Array  # (limited users,)


def rises(polytope: Polytope, unit: Array, least: Array, hungry: Index, seconds: float = SECONDS) -> Rises | None:
    """Maximise the sum of increases `r >= 0` of the users `hungry`, over feasible fractions z.

    The other constraints are `tasks_n z - unit_n r_n >= least_n`, where `tasks_n z` are the tasks of user n. `unit` and
    `least` are (users,), in tasks. The result is None if the program was not solved within the time limit.
    """
    keep = np.union1d(np.flatnonzero(least > 0), hungry)
    relative, pairs = sp.diags(1 / unit[keep]) @ polytope.tasks[keep], len(polytope.gamma)
    rise = sp.identity(len(unit), format="csr")[keep][:, hungry]
    rows = sp.bmat([[polytope.use, None], [-relative, rise], [polytope.use_of_limit, None]])
    # Without slack for the rounding of tasks the program could be infeasible.
    bounds = [np.ones(polytope.use.shape[0]), 1e-10 - least[keep] / unit[keep], np.ones(len(polytope.limited))]
    value = np.repeat([0.0, 1.0], [pairs, len(hungry)])
    solved = maximise(value, [rows], bounds, seconds)
    if solved is None:
        return None
    prices, marginal, limits = solved[1]
    tasks = np.zeros(len(unit))
    tasks[keep] = marginal
    return Rises(np.maximum(solved[0][:pairs], 0.0), np.maximum(solved[0][pairs:], 0.0), prices, tasks, limits)
