"""Water filling over what users have already: exact but for rounding, by the pieces of a straight function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def highest(demand: Array, have: Array, weight: Array, part: float) -> float:
    """The largest M with `sum_i max(w_i M, have_i) D_ir <= part` for every r.

    Where j users are below M, `w_j` and `have_j` sorted by have/w, it is `M A_r + B_r` with A the sum of `w D` over
    these and B that of `have D` over the others.
    """
    ratio = have / weight
    order = np.argsort(ratio, kind="stable")
    rising = np.cumsum((weight[:, None] * demand)[order], axis=0)
    kept = (have[:, None] * demand)[order]
    kept = np.cumsum(kept[::-1], axis=0)[::-1] - kept  # of those above
    # Where the first j + 1 are below M, M is at most the next ratio: the first piece on which a resource runs out.
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(rising > 0, (part - kept) / rising, np.inf)
    ends = np.append(ratio[order][1:], np.inf)
    piece = (reach <= ends[:, None]).argmax(axis=0)
    return float(reach[piece, np.arange(demand.shape[1])].min())
