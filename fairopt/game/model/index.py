"""The index of an equilibrium, from the derivative of its equations on the active set.

    index = sign det [[F_x, F_v, F_xi], [-use, 0, 0], [-1/q, 0, 0]]

+1 at alpha = 1, and the sum over all equilibria is +1 (docs/equilibria.md). Where splits or prices are not unique
though X is (servers that are alike, two rows that are used up together), the matrix is singular; a small multiple of
the identity, which is what a small convex cost of departing from this split or these prices adds, makes it regular
without a change of the index of X. Where X itself moves along the kernel the index is 0: equilibria are a continuum
there, or two are about to meet (a fold).

Source: Facchinei and Pang, "Finite-Dimensional Variational Inequalities and Complementarity Problems" (2003), section
2.6 (degree of regular solutions).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._libraries import lapack, sp, sparse_linalg
from .active_set import ActiveSet
from .index_options import OPTIONS, IndexOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def index(active: ActiveSet, z: Array, alpha: float | None = None, options: IndexOptions = OPTIONS) -> int:
    """+1 or -1 at a solution z of the equations; 0 where tasks of users are not locally unique."""
    matrix, scale = active.jacobian(z, alpha), active.scale(z, alpha)
    pairs = len(active.pairs)
    sign = np.where(np.arange(active.size) < pairs, 1.0, -1.0)
    first = np.flatnonzero(np.diff(active.user, prepend=-1))
    rhs = np.eye(active.size)
    if active.size > options.all:
        rhs = np.where(np.random.default_rng(0).random((active.size, options.probes)) < 0.5, -1.0, 1.0)
    with np.errstate(all="ignore"):
        if isinstance(matrix, np.ndarray):
            found, change = _dense(sign[:, None] * matrix * scale + options.regular * np.eye(active.size), rhs)
        else:
            signed = sp.diags(sign) @ matrix @ sp.diags(scale) + options.regular * sp.identity(active.size)
            found, change = _sparse(signed.tocsc(), rhs)
        moved = float(np.abs(np.add.reduceat(change[:pairs], first, axis=0)).max(initial=0.0))
    return found if moved < options.singular else 0


def _dense(matrix: Array, rhs: Array) -> tuple[int, Array]:
    """The sign of the determinant, and solutions."""
    factors, pivots, singular = lapack.dgetrf(matrix)
    if singular:
        return 0, np.full(rhs.shape, np.inf)
    swaps = int(np.count_nonzero(pivots != np.arange(len(pivots))))
    sign = (-1) ** swaps * int(np.prod(np.sign(factors.diagonal())))
    return sign, np.asarray(lapack.dgetrs(factors, pivots, rhs)[0])


def _sparse(matrix: sp.csc_matrix, rhs: Array) -> tuple[int, Array]:
    """The sign of the determinant, and solutions."""
    try:
        factors = sparse_linalg.splu(matrix)
    except (RuntimeError, MemoryError):
        return 0, np.full(rhs.shape, np.inf)
    sign = int(np.prod(np.sign(factors.U.diagonal()))) * _parity(factors.perm_r) * _parity(factors.perm_c)
    return sign, np.asarray(factors.solve(rhs))


def _parity(order: Index) -> int:
    """The sign of a permutation: even cycles are odd."""
    seen, sign = np.zeros(len(order), dtype=bool), 1
    for first in range(len(order)):
        at, length = first, 0
        while not seen[at]:
            seen[at] = True
            at, length = int(order[at]), length + 1
        sign *= -1 if length and length % 2 == 0 else 1
    return sign
