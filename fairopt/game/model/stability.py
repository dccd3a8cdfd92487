"""Do best responses that servers play in turn come back to an equilibrium? The spectral radius of a round.

Let J be the derivative of the equations on the active set, rows of capacities negative, in blocks of servers: D on the
diagonal, L below, U above. A server's response solves its own block, so that a round moves a small deviation by

    T' = -(D + L)^-1 U,        I - T' = (D + L)^-1 J.

Own blocks have positive determinants. So index -1 means det(I - T') < 0: T' has a real eigenvalue above 1, and the
equilibrium is unstable. Index +1 does not imply a radius below 1, though no other was seen (docs/equilibria.md).
Departures that move splits only, and nobody's tasks, do not count. Valid as long as the active set stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .active_set import ActiveSet
from .index_options import OPTIONS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StabilityOptions:
    """Which eigenvalues count."""

    #: Singular values of J below this part of the largest are splits or prices that are not unique.
    null: float = 1e-9
    #: Their eigenvalues of T' are this near to 1.
    one: float = 1e-5
    #: A radius below this is rounding.
    nothing: float = 1e-8


#: What is used unless a caller says otherwise.
STABILITY = StabilityOptions()


def spectral_radius(active: ActiveSet, z: Array, alpha: float | None = None) -> float:
    """The largest modulus of an eigenvalue of T', servers in their order; NaN where somebody is served in full."""
    if len(active.limits):
        return float("nan")
    value, row, column = active.entries(z, alpha)
    matrix = np.zeros((active.size, active.size))
    matrix[row, column] = value
    pairs = len(active.pairs)
    matrix *= active.scale(z, alpha)
    matrix[pairs:] *= -1
    resources = active.system.row.shape[1]
    server = np.concatenate([active.system.server[active.pairs], active.rows // resources])
    null = int((np.linalg.svd(matrix, compute_uv=False) < STABILITY.null * max(1.0, float(np.abs(matrix).max()))).sum())
    matrix += OPTIONS.regular * np.eye(active.size)
    lower = np.where(server[:, None] >= server[None, :], matrix, 0.0)
    try:
        values = np.linalg.eigvals(np.linalg.solve(lower, lower - matrix))
    except np.linalg.LinAlgError:
        return float("nan")
    values = values[np.argsort(np.abs(values - 1), kind="stable")]
    free = int((np.abs(values[:null] - 1) < STABILITY.one).sum())
    largest = float(np.abs(values[free:]).max(initial=0.0))
    return largest if largest > STABILITY.nothing else 0.0
