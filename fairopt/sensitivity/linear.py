"""Linear equations with a sparse matrix of any shape and rank: solutions, adjoints, left null space.

    J s = b  has a solution  if and only if  v' b = 0 for all v with v' J = 0,
    g' s  is the same for all solutions  if and only if  J' w = g  has one; then  g' s = w' b.

Small matrices are decomposed (SVD). Large ones are factorised once, by LU with pivoting: a square J after random
multiples of `epsilon` on its diagonal, another one as

    [ epsilon I   J           ]
    [ J'         -epsilon I   ]

which is regular for any J. Refinement takes epsilon out again where there is a solution. A vector of the left null
space is what inverse iteration ends with, if there is one: it grows by 1/epsilon a step.
Rows and columns are scaled to largest entries of 1 first.

Source: Bjorck, "Numerical Methods for Least Squares Problems" (1996), 2.5; Golub, Van Loan, "Matrix Computations"
(2013), 7.6 (inverse iteration).
"""

from __future__ import annotations

from collections.abc import Callable
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
    dense: int = 300
    #: Singular values below `rank` times the largest count as 0.
    rank: float = 1e-10
    #: What makes a large matrix regular, and how often a solution is refined.
    epsilon: float = 1e-11
    refinements: int = 2
    #: Singular values below this count little in damped solutions.
    damping: float = 1e-6
    #: Random vectors that stand for the left null space of a large matrix, the steps of inverse iteration that lead
    #: there, and how near `v' J` must be to 0.
    probes: int = 3
    iterations: int = 2
    null: float = 1e-9
    #: What of an equation does not follow from others by less than this does.
    free: float = 1e-7


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
        if self.small:
            left, singular, right = self._decomposed
            return np.asarray(left @ ((right @ scaled) / singular[:, None]))
        result = np.zeros((self.matrix.shape[0], scaled.shape[1]))
        result[self.main] = self._refined(self._core.T, lambda given: self._once(given, True), scaled)
        return result

    def solve(self, given: Array) -> Array:
        """The least solution s (unknowns,) of `J s = given` (equations,) in the sense of least squares."""
        return np.asarray(self.column * self._solution((given * self.row)[:, None])[:, 0])

    def damped(self, given: Array) -> Array:
        """s (unknowns,) with the least `|J s - given|^2 + damping^2 |s|^2`: what J hardly sees does not move."""
        rows, damping = self.matrix.shape[0], self.options.damping
        factors = sparse_linalg.splu(_regular(self.matrix, damping))
        return np.asarray(self.column * factors.solve(_padded(given * self.row, self.matrix.shape[1]))[rows:])

    def _solution(self, scaled: Array) -> Array:
        if self.small:
            left, singular, right = self._decomposed
            return np.asarray(right.T @ ((left.T @ scaled) / singular[:, None]))
        return self._refined(self._core, lambda given: self._once(given, False), scaled[self.main])

    def _refined(self, matrix: sp.csr_matrix, once: Callable[[Array], Array], given: Array) -> Array:
        found = once(given)
        for _ in range(self.options.refinements):
            found = found + once(given - matrix @ found)
        return found

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
        rng, count = np.random.default_rng(0), self.options.probes
        found = np.zeros((self.matrix.shape[0], 2 * count))
        core = rng.standard_normal((self._core.shape[0], count))
        for _ in range(self.options.iterations):
            core = self._once(core, True) if self._square else self._lower(core)
            core /= np.abs(core).max(axis=0)
        free = np.abs(self._core.T @ core).max(axis=0) <= self.options.null
        found[self.main, :count] = np.where(free, core, 0.0)
        if not self.main.all():
            others = np.where(self.main[:, None], 0.0, rng.standard_normal((self.matrix.shape[0], count)))
            others -= self._adjoint(self.matrix.T @ others)
            others /= np.abs(others).max(axis=0)
            if np.abs(self.matrix.T @ others).max(initial=0.0) > self.options.free and self.main.mean() > 0.5:
                return self._whole.null  # some of the others do not follow from these
            found[:, count:] = others
        return np.asarray(found * self.row[:, None])

    @cached_property
    def _whole(self) -> LeastSquares:
        """The same, with all equations factorised."""
        scale = sp.diags(1 / self.row), sp.diags(1 / self.column)
        return LeastSquares((scale[0] @ self.matrix @ scale[1]).tocsr(), options=self.options)

    @cached_property
    def _decomposed(self) -> tuple[Array, Array, Array]:
        left, singular, right = np.linalg.svd(self.matrix.toarray(), full_matrices=False)
        rank = int((singular > self.options.rank * singular.max(initial=0.0)).sum())
        return left[:, :rank], singular[:rank], right[:rank]

    @property
    def _square(self) -> bool:
        return bool(self._core.shape[0] == self._core.shape[1])

    @cached_property
    def _factors(self) -> Any:
        epsilon = self.options.epsilon
        if not self._square:
            return sparse_linalg.splu(_regular(self._core, epsilon))
        shift = np.random.default_rng(0).standard_normal(self._core.shape[0])
        return sparse_linalg.splu((self._core + epsilon * sp.diags(shift)).tocsc())

    def _once(self, given: Array, transposed: bool) -> Array:
        """A solution of `J s = given`, or of `J' w = given`, nearly."""
        rows, columns = self._core.shape
        if self._square:
            return np.asarray(self._factors.solve(given, trans="T" if transposed else "N"))
        found = self._factors.solve(
            np.concatenate([np.zeros((rows, given.shape[1])), given]) if transposed else _padded(given, columns)
        )
        return np.asarray(found[:rows] if transposed else found[rows:])

    def _lower(self, given: Array) -> Array:
        """What of `given` (equations, k) is in the left null space, times 1/epsilon; of the rest little."""
        rows, columns = self._core.shape
        return np.asarray(self._factors.solve(_padded(given, columns))[:rows])


def _regular(matrix: sp.csr_matrix, epsilon: float) -> sp.csc_matrix:
    """`[epsilon I, J; J', -epsilon I]`."""
    rows, columns = matrix.shape
    return sp.bmat([[epsilon * sp.eye(rows), matrix], [matrix.T, -epsilon * sp.eye(columns)]], format="csc")


def _padded(given: Array, count: int) -> Array:
    """The given rows, and `count` rows of zeros below."""
    return np.concatenate([given, np.zeros((count, *given.shape[1:]))])


def _largest(matrix: sp.spmatrix, axis: int) -> Array:
    """The largest entry of every row (axis 1) or column (axis 0), by size."""
    return np.asarray(abs(matrix).max(axis=axis).todense()).ravel()
