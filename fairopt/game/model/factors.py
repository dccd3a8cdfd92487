"""LU factors of a dense matrix, which know the sign of its determinant."""

from __future__ import annotations

import numpy as np

from ..._libraries import lapack
from ...model._arrays import Array


class Factors:
    """LU factors of a matrix: solutions, and the sign of its determinant; not `regular` where a pivot is 0."""

    def __init__(self, matrix: Array) -> None:
        self.lu, self.pivots, singular = lapack.dgetrf(matrix)
        self.regular = not singular and bool(np.isfinite(self.lu).all())

    def solved(self, rhs: Array) -> Array:
        """Solve for one right-hand side, or several as columns."""
        return np.asarray(lapack.dgetrs(self.lu, self.pivots, rhs)[0])

    @property
    def sign(self) -> int:
        """Sign of the determinant."""
        swaps = int(np.count_nonzero(self.pivots != np.arange(len(self.pivots))))
        return int((-1) ** swaps * np.prod(np.sign(self.lu.diagonal())))
