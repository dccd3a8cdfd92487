"""The linear algebra of structured Newton methods: users are eliminated and prices remain, or the other way round.

The interior point of welfare meets a matrix over (server, resource) rows of the form

    S = diag + sum_n [ sum_i w_i a_i a_i^T  -  (sum_i w_i a_i) (sum_i w_i a_i)^T / (h_n + sum_i w_i) ],

pairs i of user n, `a_i` supported on the resources of one server. Its diagonal blocks are formed without a
subtraction: where a user is split over servers the two terms agree to many digits. The rest is one product of
matrices, in single precision while that is enough, for users with many pairs that matter, and a sum over pairs of
pairs for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import blas, lapack
from . import _eliminate

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class FactorOptions:
    """How S is formed and factorised."""

    #: A flop of the sum over pairs costs about `loop_cost` flops of a matrix product, twice that in single precision.
    loop_cost: float = 25.0
    #: S is factorised with the diagonal `(1 + damping) diag S`: where prices are not unique, rounding must not choose
    #: them. In turn, until it is definite; and before these in single precision.
    dampings: tuple[float, ...] = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5)
    single_dampings: tuple[float, ...] = (1e-7, 1e-6)
    #: Most refinements where servers are eliminated.
    refinements: int = 5


#: What is used unless a caller says otherwise.
OPTIONS = FactorOptions()


class ServersFirst:
    """S where servers are eliminated, and a matrix over users remains: `S = G - P E^-1 P^T`, G in blocks by server.

        S^-1 = G^-1 + G^-1 P C^-1 P^T G^-1,    C = E - P^T G^-1 P,    P_n = sum_i w_i a_i,    E_n = h_n + sum_i w_i

    Few users on many servers are N^2 K M operations in place of (K M)^3. Differences cancel here that `factor` avoids,
    so solutions are refined on S as it is applied.
    """

    def __init__(
        self,
        start: Index,
        server: Index,
        weight: Array,
        vectors: Array,
        extra: Array,
        diagonal: Array,
    ) -> None:
        shape, users = diagonal.shape, len(start) - 1
        user = np.repeat(np.arange(users), np.diff(start))
        blocks, r = np.empty((*shape, shape[1])), np.arange(shape[1])
        for at in r:
            for of in r:
                blocks[:, at, of] = np.bincount(server, weight * vectors[:, at] * vectors[:, of], shape[0])
        blocks[:, r, r] += np.maximum(diagonal, np.finfo(float).tiny)
        scale = 1 / np.sqrt(np.abs(blocks[:, r, r]))
        blocks *= scale[:, :, None] * scale[:, None, :]
        blocks[:, r, r] += OPTIONS.dampings[0]
        spread = np.zeros((*shape, users))
        spread[server, :, user] = weight[:, None] * vectors
        spread *= scale[:, :, None]
        self.rights = spread.reshape(-1, users)
        try:
            self.blocks = np.linalg.inv(blocks)
        except np.linalg.LinAlgError:  # steps are no numbers then, which the caller notices
            self.blocks = np.full(blocks.shape, np.nan)
        self.lefts = (self.blocks @ spread).reshape(-1, users)
        whole = np.asarray(extra + np.add.reduceat(weight, start[:-1]))
        self.size = 1 / np.sqrt(whole)
        rest = np.eye(users) - self.size[:, None] * (self.rights.T @ self.lefts) * self.size
        self.users = lapack.dgetrf(rest)[:2]
        self.scale = scale
        self.given = start, server, weight, vectors, extra
        self.diagonal = diagonal

    def _once(self, rhs: Array) -> Array:
        first = (self.blocks @ (rhs * self.scale)[:, :, None]).reshape(-1)
        users = self.size * lapack.dgetrs(*self.users, self.size * (self.rights.T @ first))[0]
        return np.asarray((first + self.lefts @ users).reshape(rhs.shape) * self.scale)

    def solve(self, rhs: Array) -> Array:
        """`S^-1 rhs`, (rows,)."""
        rhs = rhs.reshape(self.diagonal.shape)
        step, size, before = self._once(rhs), float(np.abs(rhs * self.scale).max()), np.inf
        best = step
        for _ in range(OPTIONS.refinements):
            applied = self.diagonal * step
            _eliminate.apply(*self.given, step, applied)
            left = rhs - applied
            now = float(np.abs(left * self.scale).max())
            if not now < before:
                break
            best, before = step, now
            if now <= 1e-12 * size:  # as exact as LU factors are
                break
            step = step + self._once(left)
        return best.ravel()


def few_users(users: int, size: int) -> bool:
    """Are servers the ones to eliminate first? Less exact near singular equations: if it is far cheaper."""
    return size > 200 and 20 * users**2 * (size + users / 3) < size**3 / 3


@dataclass(frozen=True)
class Factors:
    """`S` factorised; `damping`: what had to be added to its diagonal, relatively."""

    upper: NDArray[np.floating]
    scale: Array
    damping: float

    def solve(self, rhs: Array) -> Array:
        """`S^-1 rhs`, (rows,)."""
        potrs = lapack.spotrs if self.upper.dtype == np.float32 else lapack.dpotrs
        scaled = (rhs * self.scale).astype(self.upper.dtype, copy=False)
        return np.asarray(potrs(self.upper, scaled, lower=0)[0] * self.scale)


def factor(
    start: Index,
    server: Index,
    weight: Array,
    vectors: Array,
    extra: Array,
    diagonal: Array,
    least: Array | float = 0.0,
    single: bool = False,
    options: FactorOptions = OPTIONS,
) -> Factors | ServersFirst:
    """Form and factorise S; where users are few, by way of the matrix over users.

    Parameters
    ----------
    start : (users + 1,), where each user's pairs start in the arrays over pairs, sorted by server
    server, weight : (pairs,), the server of a pair and `w`
    vectors : (pairs, resources), `a`
    extra : (users,), `h_n > 0`
    diagonal : (servers, resources), added to the diagonal; positive on rows that no pair uses
    least : for all or (users,), off the diagonal pairs of a lower weight may be left out
    single : try single precision

    Where rounding makes S indefinite, more is added to its diagonal: the caller refines.
    """
    servers, resources = diagonal.shape
    if few_users(len(start) - 1, servers * resources):
        return ServersFirst(start, server, weight, vectors, extra, diagonal)
    least = np.full(len(start) - 1, least)
    own, r = np.zeros((servers, resources, resources)), np.arange(resources)
    _eliminate.blocks(start, server, weight, vectors, extra, own)
    own[:, r, r] += diagonal
    scale = 1 / np.sqrt(np.maximum(own[:, r, r], np.finfo(float).tiny))
    own *= scale[:, :, None] * scale[:, None, :]
    tries = [(True, damping) for damping in options.single_dampings if single]
    tries += [(False, damping) for damping in options.dampings]
    for single, damping in tries:
        matrix = _coupled(start, server, weight, vectors, extra, own.shape, least, single, options)
        _eliminate.scaled(matrix, scale.ravel())
        matrix.reshape(servers, resources, servers, resources)[np.arange(servers), :, np.arange(servers), :] = own
        # `matrix.T` is in the order that LAPACK wants, its upper triangle is what was filled.
        upper = matrix.T
        upper[np.arange(len(upper)), np.arange(len(upper))] = 1 + damping
        potrf = lapack.spotrf if single else lapack.dpotrf
        upper, info = potrf(upper, lower=0, overwrite_a=True, clean=False)
        if info == 0:
            break
    return Factors(upper, scale.ravel(), damping)


def _coupled(
    start: Index,
    server: Index,
    weight: Array,
    vectors: Array,
    extra: Array,
    shape: tuple[int, ...],
    least: Array,
    single: bool,
    options: FactorOptions,
) -> NDArray[np.floating]:
    """The lower triangle of S off its diagonal blocks; elsewhere anything."""
    servers, resources, _ = shape
    users, size = len(start) - 1, servers * resources
    kind = np.float32 if single else float
    many = _many(start, weight, least, size, resources, single, options) if servers > 1 else np.zeros(0, dtype=np.intp)
    if len(many):
        spread = np.zeros((len(many), size), kind)
        whole = extra + np.add.reduceat(weight, start[:-1])
        _eliminate.spread(many, start, server, weight, vectors, 1 / np.sqrt(whole), spread)
        syrk = blas.ssyrk if single else blas.dsyrk
        # The upper triangle in the order of LAPACK is the lower one in ours.
        matrix = np.asarray(syrk(-1.0, spread.T, lower=0).T)
    else:
        matrix = np.zeros((size, size), kind)
    if len(many) < users:
        _eliminate.couple(start, server, weight, vectors, extra, _without(least, many), matrix)
    return matrix


def _many(
    start: Index, weight: Array, least: Array, size: int, resources: int, single: bool, options: FactorOptions
) -> Index:
    """Users for whom a product of matrices is cheaper than a sum over pairs of their pairs, as these are many."""
    looped = _eliminate.counted(start, weight, least) * resources
    return np.flatnonzero(looped**2 * options.loop_cost * (1 + single) >= float(size) ** 2)


def _without(least: Array, users: Index) -> Array:
    """The least weight of a pair, by user, infinite for `users`: none of their pairs reaches it."""
    least = np.array(least)
    least[users] = np.inf
    return least
