"""Compiled: small dense linear systems; a call of LAPACK costs more than a dozen unknowns do."""

from __future__ import annotations

from ..._loops import compiled


@compiled
def factored(matrix, order):  # type: ignore[no-untyped-def]
    """Gaussian elimination with partial pivoting, in place, rows by `order`; the least part of a pivot in the largest.

    0 for a singular matrix.
    """
    size, low, high = len(matrix), 1e300, 0.0
    for i in range(size):
        order[i] = i
    for j in range(size):
        largest, at = 0.0, -1
        for i in range(j, size):
            if abs(matrix[i, j]) > largest:
                largest, at = abs(matrix[i, j]), i
        low, high = min(low, largest), max(high, largest)
        if at < 0 or largest < 1e-300:
            return 0.0
        if at != j:
            order[j], order[at] = order[at], order[j]
            for k in range(size):
                matrix[j, k], matrix[at, k] = matrix[at, k], matrix[j, k]
        for i in range(j + 1, size):
            if matrix[i, j] != 0:
                matrix[i, j] /= matrix[j, j]
                by = matrix[i, j]
                for k in range(j + 1, size):
                    matrix[i, k] -= by * matrix[j, k]
    return low / high if size else 1.0


@compiled
def solved(matrix, order, rhs, result):  # type: ignore[no-untyped-def]
    """Fill `result` (n,) with the solution for a right-hand side, by the factors of `factored`."""
    size = len(matrix)
    for i in range(size):
        result[i] = rhs[order[i]]
        for k in range(i):
            result[i] -= matrix[i, k] * result[k]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            result[i] -= matrix[i, k] * result[k]
        result[i] /= matrix[i, i]
