"""Factors of dense matrices with a diagonal of 1, in the precision that these have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._libraries import blas, lapack
from ..model._arrays import Array

TINY = 1e-300


def stack_solved(matrix: Array, rhs: Array) -> Array:
    """Solve a stack of linear systems (B, n, n); if one is singular, all are regularized."""
    try:
        return np.asarray(np.linalg.solve(matrix, rhs))
    except np.linalg.LinAlgError:
        damping = 1e-13 * np.abs(matrix).max(axis=(1, 2), keepdims=True) + TINY
        return np.asarray(np.linalg.solve(matrix + damping * np.eye(matrix.shape[1]), rhs))


def factored(matrix: Array, symmetric: bool) -> Callable[[Array], Array]:
    """Factor a matrix with unit diagonal; of a symmetric one, damped until definite, the lower triangle is read."""
    single, diagonal = matrix.dtype == np.float32, np.einsum("ii->i", matrix)
    damping = 1e-7 if single else 1e-14
    diagonal += damping
    if symmetric:
        potrf, potrs = lapack.get_lapack_funcs(("potrf", "potrs"), (matrix,))
        factor, failed = potrf(matrix, lower=1, clean=0)
        while failed and damping < 1:
            damping *= 100
            diagonal += damping
            factor, failed = potrf(matrix, lower=1, clean=0)
    else:
        getrf, getrs = lapack.get_lapack_funcs(("getrf", "getrs"), (matrix,))
        factor, order, _ = getrf(matrix, overwrite_a=1)

    def solve(given: Array) -> Array:
        if not symmetric:
            return np.asarray(getrs(factor, order, given)[0])
        if not single:
            return np.asarray(potrs(factor, given, lower=1)[0])
        half = blas.strsv(factor, given, lower=1)  # a fourth of the time of potrs
        return np.asarray(blas.strsv(factor, half, lower=1, trans=1))

    def scaled(given: Array) -> Array:
        size = max(float(np.abs(given).max()), TINY)
        return solve((given / size).astype(matrix.dtype)) * size

    return scaled
