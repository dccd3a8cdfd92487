"""Linear equations in doubles, or in decimals of any length."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]


def solve(matrix: Matrix, right: Matrix) -> Matrix | None:
    """`matrix y = right`, `None` where a pivot is exactly 0. Rows are scaled, pivots the largest of their column.

    Decimals: Gaussian elimination that skips zeros, (n, n) and (n,).
    """
    size = abs(matrix).max(axis=1) if len(matrix) else right
    if any(size == 0):
        return None
    if matrix.dtype != object:
        try:
            return np.asarray(np.linalg.solve(matrix / size[:, None], right / size))
        except np.linalg.LinAlgError:
            return None
    table = np.column_stack([matrix / size[:, None], right / size])
    count = len(right)
    for k in range(count):
        below = k + np.flatnonzero(table[k:, k] != 0)
        if not len(below):
            return None
        best = below[int(np.argmax(abs(table[below, k])))]
        if best != k:
            table[[k, best]] = table[[best, k]]
            below = k + np.flatnonzero(table[k:, k] != 0)
        columns = k + 1 + np.flatnonzero(table[k, k + 1 :] != 0)
        others = below[below > k]
        if len(others) and len(columns):
            factor = table[others, k] / table[k, k]
            table[np.ix_(others, columns)] -= factor[:, None] * table[k, columns][None, :]
    found = np.full(count, Decimal(0), dtype=object)
    for k in range(count - 1, -1, -1):
        later = k + 1 + np.flatnonzero(table[k, k + 1 : count] != 0)
        found[k] = (table[k, count] - sum(table[k, later] * found[later], Decimal(0))) / table[k, k]
    return found
