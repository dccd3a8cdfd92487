"""Linear programs of the judges, by HiGHS through scipy; their duals are witnesses that arithmetic then checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, sp

Array = NDArray[np.float64]
#: Seconds that the linear programs of one judgement may take: a simplex method can cycle.
SECONDS = 60.0


def highs() -> dict[str, float]:
    """Tolerances of HiGHS: what a row may be violated by, and a reduced cost."""
    return dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10)


def maximise(
    value: Array, rows: list[Any], bounds: list[Array], seconds: float = SECONDS
) -> tuple[Array, list[Array]] | None:
    """`max value @ y` over `y >= 0, rows[k] @ y <= bounds[k]`: the maximiser and one dual vector per block.

    `None` when the linear program was not solved in that time, so that the judge can say so.
    """
    whole, options = sp.vstack(rows, format="csr"), {**highs(), "time_limit": seconds}
    result = optimize.linprog(-value, A_ub=whole, b_ub=np.concatenate(bounds), method="highs", options=options)
    if result.status != 0:
        return None
    duals = np.maximum(-result.ineqlin.marginals, 0.0)
    return result.x, np.split(duals, np.cumsum([len(bound) for bound in bounds])[:-1])


def minimise(cost: Array, rows: Any, least: Array) -> Array | None:
    """`min cost @ y` over `y >= 0, rows @ y >= least`; `None` when the linear program was not solved."""
    result = optimize.linprog(cost, A_ub=-rows, b_ub=-least, method="highs", options={**highs(), "time_limit": SECONDS})
    return result.x if result.status == 0 else None
