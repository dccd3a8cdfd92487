"""Least squares with a sparse matrix that may be rectangular and of any rank: solutions, adjoints, left null space.

    J s = b  has a solution  if and only if  v' b = 0 for all v with v' J = 0,
    g' s  is the same for all solutions  if and only if  J' w = g  has one; then  g' s = w' b.

Small matrices are decomposed (SVD). Large ones are factorised once, as

    [ delta I   J       ]
    [ J'       -delta I ]    (symmetric quasi-definite: its LU exists for any J),

which solves `min |J s - b|^2 + delta^2 |s|^2`; iterated refinement takes delta out again where there is a solution.
Projections on the left null space are by two such solves, which leave `(delta / sigma)^4` of what is not in it.
Rows and columns are scaled to largest entries of 1 first.

Source: Vanderbei, "Symmetric quasi-definite matrices", SIAM J. Optim. 1995; Bjorck, "Numerical Methods for Least
Squares Problems" (1996), 2.6 (iterated regularisation).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp, sparse_linalg

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Options:
    """Sizes and tolerances; matrices are scaled to largest entries of 1."""

    #: Matrices with at most `dense` rows are decomposed.
    dense: int = 400
    #: Singular values below `rank` times the largest count as 0.
    rank: float = 1e-10
    #: delta, and how often a large solution is refined.
    delta: float = 1e-6
    refinements: int = 4
    #: Random vectors whose projections stand for the left null space of a large matrix.
    probes: int = 3


OPTIONS = Options()


class LeastSquares:
    """One matrix (equations, unknowns), decomposed or factorised once.

    `main` (equations,) are those that determine what is determined; of large matrices the others are not factorised,
    but looked at: may a vector v that they take part in have `v' b != 0`?
    """

    def __init__(self, matrix: sp.csr_matrix, main: Mask | None = None, options: Options = OPTIONS) -> None:
        self.options = options
        row = _largest(matrix, 1)
        self.row: Array = 1 / np.where(row > 0, row, 1.0)
        column = _largest(sp.diags(self.row) @ matrix, 0)
        self.column: Array = 1 / np.where(column > 0, column, 1.0)
        self.matrix: sp.csr_matrix = (sp.diags(self.row) @ matrix @ sp.diags(self.column)).tocsr()
        self.small = max(matrix.shape) <= options.dense
        everything = np.ones(matrix.shape[0], dtype=bool)
        self.main: Mask = everything if main is None or self.small else main
        self._core = self.matrix[np.flatnonzero(self.main)]

    def adjoint(self, given: Array) -> tuple[Array, Array]:
        """w (equations, k) with `J' w = given` (unknowns, k) as nearly as can be, and by what it is missed, (k,)."""
        scaled = given * self.column[:, None]
        w = self._adjoint(scaled)
        missed = np.abs(scaled - self.matrix.T @ w).max(axis=0, initial=0.0)
        size = np.abs(scaled).max(axis=0, initial=0.0)
        return w * self.row[:, None], np.divide(missed, size, out=np.zeros_like(missed), where=size > 0)

    def _adjoint(self, scaled: Array) -> Array:
        result = np.zeros((self.matrix.shape[0], scaled.shape[1]))
        if self.small:
            left, singular, right = self._decomposed
            return np.asarray(left @ ((right @ scaled) / singular[:, None]))
        w = np.zeros((self._core.shape[0], scaled.shape[1]))
        for _ in range(self.options.refinements):
            w += self._solved(np.zeros_like(w), scaled - self._core.T @ w)[0]
        result[self.main] = w
        return result

    def solve(self, given: Array) -> Array:
        """The least solution s (unknowns,) of `J s = given` (equations,) in the sense of least squares."""
        return np.asarray(self.column * self._solution((given * self.row)[:, None])[:, 0])

    def _solution(self, scaled: Array) -> Array:
        if self.small:
            left, singular, right = self._decomposed
            return np.asarray(right.T @ ((left.T @ scaled) / singular[:, None]))
        core, s = scaled[self.main], np.zeros((self.matrix.shape[1], scaled.shape[1]))
        for _ in range(self.options.refinements):
            s += self._solved(core - self._core @ s, np.zeros_like(s))[1]
        return s

    def residual(self, given: Array) -> Array:
        """What of `given` (equations, k) no solution reaches, in scaled equations."""
        scaled = given * self.row[:, None]
        return np.asarray(scaled - self.matrix @ self._solution(scaled))

    @cached_property
    def null(self) -> Array:
        """Vectors v (equations, k) with `v' J = 0`: a basis, or of large matrices some at random, which miss nothing
        but by chance."""
        if self.small:
            complete = np.linalg.svd(self.matrix.toarray(), full_matrices=True)[0]
            return np.asarray(complete[:, len(self._decomposed[1]) :] * self.row[:, None])
        probes = np.random.default_rng(0).standard_normal((self.matrix.shape[0], self.options.probes))
        core = np.where(self.main[:, None], probes, 0.0)
        core -= np.where(self.main[:, None], self.matrix @ self._solution(core), 0.0)
        others = np.where(self.main[:, None], 0.0, probes)
        others -= self._adjoint(self.matrix.T @ others)
        return np.asarray((core + others) * self.row[:, None])

    @cached_property
    def _decomposed(self) -> tuple[Array, Array, Array]:
        left, singular, right = np.linalg.svd(self.matrix.toarray(), full_matrices=False)
        rank = int((singular > self.options.rank * singular.max(initial=0.0)).sum())
        return left[:, :rank], singular[:rank], right[:rank]

    @cached_property
    def _factors(self) -> Any:
        rows, columns = self._core.shape
        delta = self.options.delta
        whole = sp.bmat([[delta * sp.eye(rows), self._core], [self._core.T, -delta * sp.eye(columns)]], format="csc")
        return sparse_linalg.splu(whole, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def _solved(self, upper: Array, lower: Array) -> tuple[Array, Array]:
        found = self._factors.solve(np.vstack([upper, lower]))
        return found[: len(upper)], found[len(upper) :]


def _largest(matrix: sp.spmatrix, axis: int) -> Array:
    """The largest entry of every row (axis 1) or column (axis 0), by size."""
    return np.asarray(abs(matrix).max(axis=axis).todense()).ravel()
