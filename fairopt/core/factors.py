"""Cholesky and LU factors of dense matrices with unit diagonal, in their own precision, regularized if singular."""

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
#: e^-50 counts as zero beside 1.
LOG_NOTHING = 50.0
#: Sums of nonnegative numbers below this may have lost digits to underflow, and products with them are slow.
UNDERFLOW = 1e-200
#: Initial regularization of a unit diagonal in single and in double precision, about the rounding errors of each.
_DAMPING_SINGLE, _DAMPING = SINGLE_ROUNDING, SOLVE_ROUNDING
#: Factor by which this regularization is raised until a matrix is positive definite.
_RAISED = 100.0


def stack_solved(matrix: Array, rhs: Array) -> Array:
    """Solve a stack of linear systems (B, n, n) with (B, n, k); if one is singular, all are regularized."""
    try:
        return np.asarray(np.linalg.solve(matrix, rhs))
    except np.linalg.LinAlgError:
        damping = 10 * _DAMPING * np.abs(matrix).max(axis=(1, 2), keepdims=True) + TINY
        return np.asarray(np.linalg.solve(matrix + damping * np.eye(matrix.shape[1]), rhs))


def factored(matrix: Array, symmetric: bool) -> Callable[[Array], Array]:
    """Factor a matrix (n, n) with unit diagonal: its solver; of a symmetric one only the lower triangle is read."""
    if symmetric:
        factor = _cholesky(matrix)
        return lambda given: _solved(factor, given)
    if not len(matrix):
        return lambda given: given
    single = matrix.dtype == np.float32
    np.einsum("ii->i", matrix)[:] += _DAMPING_SINGLE if single else _DAMPING
    factors, order, _ = (lapack.sgetrf if single else lapack.dgetrf)(matrix, overwrite_a=1)
    solved = lapack.sgetrs if single else lapack.dgetrs

    def solve(given: Array) -> Array:
        size = max(float(np.abs(given).max()), TINY)
        return np.asarray(solved(factors, order, (given / size).astype(factors.dtype))[0] * size)

    return solve


def _cholesky(matrix: Array) -> Array:
    """Cholesky factor of the lower triangle, with a diagonal regularization raised until it is positive definite."""
    if not len(matrix):
        return matrix
    single = matrix.dtype == np.float32
    factored, damping = (lapack.spotrf, _DAMPING_SINGLE) if single else (lapack.dpotrf, _DAMPING)
    diagonal = np.einsum("ii->i", matrix)
    while True:
        diagonal += damping
        factor, info = factored(matrix, lower=1, clean=0, overwrite_a=0)
        if info == 0 or not damping < 1:
            return np.asarray(factor)
        damping *= _RAISED


def _solved(factor: Array, given: Array) -> Array:
    """Solve a linear system by the factor that `_cholesky` returned."""
    if factor.dtype != np.float32:
        return np.asarray(lapack.dpotrs(factor, given, lower=1)[0])
    size = max(float(np.abs(given).max()), TINY)
    half = blas.strsv(factor, given / size, lower=1)  # measured: four times as fast as potrs
    return np.asarray(blas.strsv(factor, half, lower=1, trans=1) * size)
