"""Cholesky and LU factors of dense matrices with unit diagonal, in single or double precision, with regularization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.libraries import blas, lapack
from ..model._arrays import Array
from .accuracy import SINGLE_ROUNDING, SOLVE_ROUNDING

#: Lower bound of denominators and of arguments of logarithms.
TINY = 1e-300
#: Largest exponent: products of e^600 or e^-600 with other quantities of a problem do not leave the range of doubles.
LOG_RANGE = 600.0
#: Numbers below e^-50 count as zero in sums with 1.
LOG_NOTHING = 50.0
#: Sums of nonnegative numbers below this value may have lost digits to underflow, and products with them are slow.
UNDERFLOW = 1e-200
#: Initial regularization of a unit diagonal in single and in double precision, about the respective rounding errors.
_DAMPING_SINGLE, _DAMPING = SINGLE_ROUNDING, SOLVE_ROUNDING
#: Factor by which the regularization is increased until a matrix is positive definite.
_RAISED = 100.0


def stack_solved(matrix: Array, rhs: Array) -> Array:
    """Solve linear systems (B, n, n) with right-hand sides (B, n, k); if a matrix is singular, all are regularized."""
    try:
        return np.asarray(np.linalg.solve(matrix, rhs))
    except np.linalg.LinAlgError:
        damping = 10 * _DAMPING * np.abs(matrix).max(axis=(1, 2), keepdims=True) + TINY
        return np.asarray(np.linalg.solve(matrix + damping * np.eye(matrix.shape[1]), rhs))


def factored(matrix: Array, symmetric: bool) -> Callable[[Array], Array]:
    """Factor a matrix (n, n) with unit diagonal, and return a solver; if `symmetric`, only its lower triangle is read.

    The solver maps right-hand sides (n,) or (n, k) to solutions. The matrix is regularized: its diagonal is increased
    in place, and an unsymmetric matrix may be overwritten by its factors.
    """
    if symmetric:
        factor = _cholesky(matrix)
        return lambda given: _solved(factor, given)
    if not len(matrix):
        return lambda given: given
    single = matrix.dtype == np.float32
    getrf, getrs = (lapack.sgetrf, lapack.sgetrs) if single else (lapack.dgetrf, lapack.dgetrs)
    diagonal = np.einsum("ii->i", matrix)  # a view
    diagonal += _DAMPING_SINGLE if single else _DAMPING
    factors, order, _ = getrf(matrix, overwrite_a=1)

    def solve(given: Array) -> Array:
        size = max(float(np.abs(given).max()), TINY)
        return np.asarray(getrs(factors, order, (given / size).astype(factors.dtype))[0] * size)

    return solve


def _cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor L, (n, n), with L L' = matrix + d I; the diagonal of `matrix` (n, n) is increased in place.

    The sum d of the increases of the diagonal, each `_RAISED` times the last, begins with about a rounding error, and
    grows until the matrix is positive definite. After an increase by 1 or more the factor is returned in any case, as
    far as it was computed. Only the lower triangles of the matrix and of the factor have a meaning.
    """
    if not len(matrix):
        return matrix
    single = matrix.dtype == np.float32
    potrf, damping = (lapack.spotrf, _DAMPING_SINGLE) if single else (lapack.dpotrf, _DAMPING)
    diagonal = np.einsum("ii->i", matrix)  # a view
    while True:
        diagonal += damping
        factor, minor = potrf(matrix, lower=1, clean=0, overwrite_a=0)
        positive_definite = minor == 0  # else the order of the first leading minor that is not positive
        if positive_definite or damping >= 1:
            return np.asarray(factor)
        damping *= _RAISED


def _solved(factor: Array, given: Array) -> Array:
    """Solve a linear system by the factor (n, n) of `_cholesky`, for right-hand sides (n,), or (n, k) in doubles."""
    if factor.dtype != np.float32:
        return np.asarray(lapack.dpotrs(factor, given, lower=1)[0])
    size = max(float(np.abs(given).max()), TINY)
    half = blas.strsv(factor, given / size, lower=1)  # measured: four times as fast as potrs
    return np.asarray(blas.strsv(factor, half, lower=1, trans=1) * size)
