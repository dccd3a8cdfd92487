"""Linear programs of the judges, by HiGHS through scipy; their duals are witnesses that arithmetic then checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, sp

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearOptions:
    """How linear programs of judges are solved."""

    #: Seconds that the linear programs of one judgement may take: a simplex method can cycle.
    seconds: float = 60.0
    #: What a row may be violated by, and a reduced cost.
    feasibility: float = 1e-10


#: What is used unless a caller says otherwise.
OPTIONS = LinearOptions()


def highs(options: LinearOptions = OPTIONS) -> dict[str, float]:
    """What HiGHS is told."""
    return dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), options.feasibility)


def maximise(
    value: Array, rows: list[Any], bounds: list[Array], seconds: float = OPTIONS.seconds
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
    result = optimize.linprog(
        cost, A_ub=-rows, b_ub=-least, method="highs", options={**highs(), "time_limit": OPTIONS.seconds}
    )
    return result.x if result.status == 0 else None
