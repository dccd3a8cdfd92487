"""Linear programs solved by HiGHS, with optimal prices, for engines, certificates and inverse problems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.libraries import optimize
from ._arrays import Array

#: Primal and dual feasibility tolerance: the smallest tolerance that HiGHS accepts.
TOLERANCE = 1e-10


class Optimum(NamedTuple):
    """Optimum x (unknowns,), and prices (rows,) of inequalities, >= 0: decrease in cost per unit increase of `most`."""

    x: Array
    prices: Array


def minimise(
    cost: Array,
    rows: Any,
    most: Array,
    *,
    equal: Any = None,
    low: Array | float = 0.0,
    high: Array | float = np.inf,
    tolerance: float = TOLERANCE,
    seconds: float = np.inf,
    steps: int | None = None,
    method: str = "highs",
) -> Optimum | None:
    r"""Solve a linear program; None if it has no solution, or none is found within the limits.

    .. math:: \min\; cost \cdot x \quad \text{s.t.} \quad rows\, x \le most, \quad equal\, x = 0,
        \quad low \le x \le high

    Parameters
    ----------
    cost : (unknowns,)
    rows, equal : (rows, unknowns) and (equations, unknowns), dense or sparse
    most : (rows,)
    low, high : (unknowns,) or one number for all
    tolerance : primal feasibility tolerance
    seconds : time limit
    steps : largest number of iterations
    method : method of `scipy.optimize.linprog`
    """
    options = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": TOLERANCE,
        "time_limit": seconds,
    } | ({} if steps is None else {"maxiter": steps})
    bounds = np.stack(np.broadcast_arrays(low, high, cost)[:2], axis=1)
    to = None if equal is None else np.zeros(equal.shape[0])
    found = optimize.linprog(cost, rows, most, equal, to, bounds, method, options=options)
    if found.status != 0:
        return None
    return Optimum(found.x, np.maximum(-found.ineqlin.marginals, 0.0))
