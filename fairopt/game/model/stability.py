"""Local stability of an equilibrium under cyclic best responses: the spectral radius of a round.

Let J be the derivative of the equations on the active set, rows of capacities negative, in blocks of servers: D on the
diagonal, L below, U above. A server's response solves its own block, so that a round moves a small deviation by

    T' = -(D + L)^-1 U,        I - T' = (D + L)^-1 J.

Own blocks have positive determinants. So index -1 means det(I - T') < 0: T' has a real eigenvalue above 1, and the
equilibrium is unstable. Index +1 does not imply a radius below 1 (an example: docs/algorithms/best-responses.md).
Departures that move splits only, and nobody's tasks, do not count. Valid as long as the active set stays what it is.
"""

from __future__ import annotations

import numpy as np

from .index import REGULAR, Active

#: Singular values of J below this part of the largest are splits or prices that are not unique;
_NULL = 1e-9
#: their eigenvalues of T' are this near to 1.
_ONE = 1e-5
#: A radius below this is rounding.
_NOTHING = 1e-8


def spectral_radius(active: Active) -> float:
    """Spectral radius of T', servers in their order; NaN where a user is at its limit."""
    if (active.host < 0).any():
        return float("nan")
    matrix, server = active.jacobian(), np.concatenate([active.server, active.host])
    null = int((np.linalg.svd(matrix, compute_uv=False) < _NULL * max(1.0, float(np.abs(matrix).max()))).sum())
    matrix += REGULAR * np.eye(len(matrix))
    lower = np.where(server[:, None] >= server[None, :], matrix, 0.0)
    try:
        values = np.linalg.eigvals(np.linalg.solve(lower, lower - matrix))
    except np.linalg.LinAlgError:
        return float("nan")
    values = values[np.argsort(np.abs(values - 1), kind="stable")]
    free = int((np.abs(values[:null] - 1) < _ONE).sum())
    largest = float(np.abs(values[free:]).max(initial=0.0))
    return largest if largest > _NOTHING else 0.0
