"""A linear program whose unknowns are small: HiGHS, in units in which they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import optimize, sp

Array = NDArray[np.float64]
#: A matrix and a right-hand side.
Rows = tuple[sp.spmatrix, Array]


@dataclass(frozen=True)
class ProgramOptions:
    """What HiGHS is asked for."""

    #: By how much rows may be missed in units of the unknowns: `rounding / unit`, but not less than HiGHS knows.
    rounding: float = 1e-13
    least: float = 1e-10
    most: float = 1e-4
    #: By how much reduced costs may be missed.
    dual: float = 1e-9
    #: Most iterations: where it cycles at the edge of rounding it would go on for minutes.
    iterations: int = 5_000


#: What is used unless a caller says otherwise.
OPTIONS = ProgramOptions()


def solved(
    cost: Array,
    at_most: Rows,
    equal: Rows | None,
    low: Array,
    high: Array,
    unit: float,
    options: ProgramOptions = OPTIONS,
) -> Array | None:
    """A vertex of least cost, or `None`. Columns that a matrix lacks are 0 in it."""

    def whole(rows: Rows) -> Rows:
        matrix, right = rows
        matrix = sp.csr_matrix(matrix)
        return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), (matrix.shape[0], len(cost))), right / unit

    upper, left = whole(at_most), whole(equal) if equal is not None else (None, None)
    feasible = min(max(options.rounding / unit, options.least), options.most)
    found = optimize.linprog(
        cost,
        A_ub=upper[0],
        b_ub=upper[1],
        A_eq=left[0],
        b_eq=left[1],
        bounds=np.stack([low, high], axis=1) / unit,
        method="highs",
        options={
            "primal_feasibility_tolerance": feasible,
            "dual_feasibility_tolerance": options.dual,
            "maxiter": options.iterations,
        },
    )
    return None if found.x is None else np.asarray(found.x) * unit
