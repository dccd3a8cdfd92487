"""Compiled: small dense linear systems; a call of LAPACK costs more than a dozen unknowns do."""

from __future__ import annotations

from .._loops import compiled


@compiled
def solved(matrix, rhs):  # type: ignore[no-untyped-def]
    """Gaussian elimination with partial pivoting, in place: `rhs` (n,) becomes the solution. False: singular."""
    size = len(matrix)
    for j in range(size):
        largest, at = 0.0, -1
        for i in range(j, size):
            if abs(matrix[i, j]) > largest:
                largest, at = abs(matrix[i, j]), i
        if at < 0 or largest < 1e-300:
            return False
        if at != j:
            for k in range(j, size):
                matrix[j, k], matrix[at, k] = matrix[at, k], matrix[j, k]
            rhs[j], rhs[at] = rhs[at], rhs[j]
        for i in range(j + 1, size):
            by = matrix[i, j] / matrix[j, j]
            if by != 0:
                for k in range(j + 1, size):
                    matrix[i, k] -= by * matrix[j, k]
                rhs[i] -= by * rhs[j]
    for j in range(size - 1, -1, -1):
        for k in range(j + 1, size):
            rhs[j] -= matrix[j, k] * rhs[k]
        rhs[j] /= matrix[j, j]
    return True
