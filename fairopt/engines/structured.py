"""The linear algebra of structured Newton methods: users are eliminated one by one, prices remain.

Every interior point of this package meets a matrix over (server, resource) rows of the form

    S = diag + sum_n [ sum_i w_i a_i b_i^T  -  (sum_i w_i a_i) (sum_i w_i b_i)^T / (h_n + sum_i w_i) ],

pairs i of user n, `a_i` and `b_i` supported on the resources of one server. Its diagonal blocks are formed without a
subtraction: where a user is split over servers the two terms agree to many digits. The rest is one product of
matrices, in single precision while that is enough, or, once few pairs matter, a sum over those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: A flop of the sum over pairs costs about so many of a matrix product.
_LOOP_COST = 45.0
#: Added to the diagonal, relatively: where prices are not unique, rounding must not choose them.
_DAMPING = 1e-13


@dataclass(frozen=True)
class Factors:
    """`S` factorised."""

    factors: tuple[Array, NDArray[np.int32]]
    scale: Array

    def solve(self, rhs: Array) -> Array:
        """`S^-1 rhs`, (rows,)."""
        return np.asarray(lapack.dgetrs(*self.factors, rhs * self.scale, trans=1)[0])


def factor(
    start: Index,
    server: Index,
    weight: Array,
    left: Array,
    right: Array,
    extra: Array,
    diagonal: Array,
    least: float = 0.0,
    single: bool = False,
) -> Factors:
    """Form and factorise S.

    Parameters
    ----------
    start : (users + 1,), where each user's pairs start in the arrays over pairs
    server, weight : (pairs,), the server of a pair and `w`
    left, right : (pairs, resources), `a` and `b`
    extra : (users,), `h_n > 0`
    diagonal : (servers, resources), added to the diagonal; positive on rows that no pair uses
    least : off the diagonal, pairs with a weight below this part of their user's `h` may be left out
    single : single precision is enough off the diagonal
    """
    from . import _eliminate

    servers, resources = diagonal.shape
    users, size = len(start) - 1, servers * resources
    own = np.zeros((servers, resources, resources))
    _eliminate.blocks(start, server, weight, left, right, extra, own)
    looped = _eliminate.counted(start, weight, extra, least) * resources**2
    if looped * _LOOP_COST < float(users) * size**2:
        matrix = np.zeros((size, size))
        _eliminate.couple(start, server, weight, left, right, extra, least, matrix)
    else:
        kind = np.float32 if single else np.float64
        whole = extra + np.add.reduceat(weight, start[:-1])
        lefts, rights = np.zeros((users, size), kind), np.zeros((users, size), kind)
        _eliminate.spread(start, server, weight, left, -1 / whole, lefts)
        _eliminate.spread(start, server, weight, right, np.ones(users), rights)
        matrix = np.asarray(lefts.T @ rights, dtype=float)
    diagonals = matrix.reshape(servers, resources, servers, resources)
    each = np.arange(servers)
    diagonals[each, :, each, :] = own
    matrix[np.arange(size), np.arange(size)] *= 1 + _DAMPING
    matrix[np.arange(size), np.arange(size)] += diagonal.ravel()
    scale = 1 / np.maximum(np.abs(matrix.diagonal()), np.finfo(float).tiny)
    matrix *= scale[:, None]
    # The transpose is in the order that LAPACK wants. A zero pivot gives infinite steps, which the caller notices.
    return Factors(lapack.dgetrf(matrix.T, overwrite_a=True)[:2], scale)
