"""The matrix of a Newton step of `augmented`, factorised: small ones whole, large ones with pairs and users eliminated.

    alpha/A sum_(pairs of n) + slack/part    share/A      1 at limits          (parts over totals)
    use                                      -idle        0                    (log prices)
    1 at limits                              0            -room/excess         (excess)

Rows are scaled to a largest entry near 1. A multiple of the identity makes the matrix regular: splits and prices need
not be unique. Refinement by the matrix itself takes it out again where that can be done.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..._libraries import lapack
from ..linalg import structured
from .state import AugmentedResiduals, AugmentedState, Options
from .system import System

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]


class Matrix:
    """The matrix at one point; unknowns in the order of the formula."""

    def __init__(self, system: System, at: AugmentedState, here: AugmentedResiduals) -> None:
        self.system, self.options = system, system.options
        self.pairs, self.rows = len(system.pairs), len(system.rows)
        self.total = here.total[system.who]
        self.diagonal = at.slack / at.part * self.total
        self.idle, self.softness = at.idle, at.room / at.excess
        self.coupling = system.alpha / system.scale
        self.share = here.share / system.scale
        whole = (here.total * system.unit)[system.limits] / system.polytope.limit[system.limits]
        #: By user: the part of its limit that all of its tasks are.
        self.whole = np.zeros(len(system.unit))
        self.whole[system.limits] = whole
        self.use = np.where(system.column >= 0, system.per_part[system.pairs] * self.total[:, None], 0.0)
        self.scale = 1 / np.maximum(1.0, np.concatenate([self.diagonal, self.idle, self.softness]))

    def parts(self, given: Array) -> tuple[Array, Array, Array]:
        """Of pairs, rows and limits."""
        return given[: self.pairs], given[self.pairs : self.pairs + self.rows], given[self.pairs + self.rows :]

    def of_users(self, pairs: Array) -> Array:
        """Sums over the pairs of each user, (users,)."""
        return np.bincount(self.system.who, pairs, len(self.system.unit)).astype(float)

    def of_rows(self, pairs: Array) -> Array:
        """What pairs use of each row, (rows,)."""
        s = self.system
        return np.bincount(s.to, self.use[s.at_pair, s.resource] * pairs[s.at_pair], self.rows).astype(float)

    def cost(self, rows: Array) -> Array:
        """What rows add to the cost of each pair, (pairs,)."""
        s = self.system
        return np.bincount(s.at_pair, self.share[s.at_pair, s.resource] * rows[s.to], self.pairs).astype(float)

    def __matmul__(self, given: Array) -> Array:
        """The product with a vector."""
        s, (pairs, rows, limits) = self.system, self.parts(given)
        sums = self.of_users(pairs)
        of_limit = np.zeros(len(s.unit))
        of_limit[s.limits] = limits
        return np.concatenate(
            [
                self.diagonal * pairs + (self.coupling * sums + of_limit)[s.who] + self.cost(rows),
                self.of_rows(pairs) - self.idle * rows,
                (self.whole * sums)[s.limits] - self.softness * limits,
            ]
        )

    def refined(self, once: Solve, rhs: Array) -> Array:
        """The solution by factors that are nearly those of the matrix, refined."""
        return _refined(once, self.__matmul__, rhs, self.scale, self.options)


def _refined(once: Solve, product: Solve, rhs: Array, scale: Array | float, options: Options) -> Array:
    """Steps of refinement, while they help; residuals are in units of `scale`."""
    found = once(rhs)
    left, size = rhs - product(found), float(np.abs(rhs * scale).max(initial=0.0))
    for _ in range(options.refinements):
        residual = float(np.abs(left * scale).max(initial=0.0))
        if not residual > options.exact * size:
            break
        better = found + once(left)
        left = rhs - product(better)
        if not float(np.abs(left * scale).max(initial=0.0)) < options.closer * residual:
            break
        found = better
    return found


def factors(system: System, at: AugmentedState, here: AugmentedResiduals) -> Solve | None:
    """Solves with the matrix at a point; `None` where it is singular."""
    matrix = Matrix(system, at, here)
    if system.size <= system.options.dense:
        return _dense(matrix)
    once = _eliminated(matrix)
    return lambda rhs: matrix.refined(once, rhs)


def _dense(matrix: Matrix) -> Solve | None:
    """All of it, by LU."""
    s, p, r = matrix.system, matrix.pairs, matrix.rows
    table = np.zeros((s.size, s.size))
    pair, row, limit = np.arange(p), p + np.arange(r), np.arange(p + r, s.size)
    table[:p, :p] = matrix.coupling[s.who][:, None] * (s.who[:, None] == s.who[None, :])
    table[pair, pair] += matrix.diagonal
    table[s.at_pair, p + s.to] = matrix.share[s.at_pair, s.resource]
    table[p + s.to, s.at_pair] = matrix.use[s.at_pair, s.resource]
    table[row, row] = -matrix.idle
    own = s.limit_of[s.who]
    has = np.flatnonzero(own >= 0)
    table[has, p + r + own[has]] = 1.0
    table[p + r + own[has], has] = matrix.whole[s.who[has]]
    table[limit, limit] = -matrix.softness
    table *= matrix.scale[:, None]
    near, every = table.copy(), np.arange(s.size)
    near[every, every] += np.where(every < p, s.options.regular, -s.options.regular)
    # The transpose is in the order that LAPACK wants.
    lu, pivots, info = lapack.dgetrf(near.T, overwrite_a=True)
    if info:
        return None

    def once(rhs: Array) -> Array:
        return np.asarray(lapack.dgetrs(lu, pivots, rhs, trans=1)[0])

    return lambda rhs: _refined(once, table.__matmul__, rhs * matrix.scale, 1.0, s.options)


def _eliminated(matrix: Matrix) -> Solve:
    """Limits, pairs and users eliminated in turn: a matrix over prices is left."""
    s, regular = matrix.system, matrix.options.regular_of_many
    weight = 1 / (matrix.diagonal + regular)
    softness = matrix.softness + regular
    coupling = matrix.coupling.copy()
    coupling[s.limits] += matrix.whole[s.limits] / softness
    extra = 1 / np.maximum(coupling, 1e-200)
    here = np.flatnonzero(np.bincount(s.who, minlength=len(s.unit)) > 0)
    start = np.append(np.searchsorted(s.who, here), len(s.who))
    rows = s.polytope.row_server[s.rows], s.polytope.row_resource[s.rows]
    diagonal = np.ones(s.row_of.shape)
    diagonal[rows] = matrix.idle + regular
    share = np.where(s.column >= 0, matrix.share, 0.0)
    servers = s.polytope.pair_server[s.pairs]
    flat = rows[0] * diagonal.shape[1] + rows[1]
    made = structured.factor(start, servers, weight, matrix.use, share, extra[here], diagonal, rows=flat)
    whole = extra + matrix.of_users(weight)

    def bought(cost: Array) -> Array:
        """By what parts change where the equations of pairs are missed by so much."""
        mean = matrix.of_users(weight * cost) / whole
        return np.asarray(weight * (cost - mean[s.who]))

    def once(rhs: Array) -> Array:
        pairs, of_rows, limits = matrix.parts(rhs)
        full = np.zeros(len(s.unit))
        full[s.limits] = limits / softness
        pairs = pairs + full[s.who]
        log_prices = made.solve(matrix.of_rows(bought(pairs)) - of_rows)
        parts = bought(pairs - matrix.cost(log_prices))
        excess = matrix.whole[s.limits] / softness * matrix.of_users(parts)[s.limits] - full[s.limits]
        return np.concatenate([parts, log_prices, excess])

    return once
