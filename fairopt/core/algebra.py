r"""Normal equations of interior-point methods over pairs (user, server), by Schur complements in either order.

With the weights :math:`\omega = y/z` of pairs, Newton's equations for changes of the prices lambda of rows, the prices
p of users and the level t are

.. math::
    M\,d\lambda - B\,dp = b, \qquad -B^T d\lambda + E\,dp - \tau\,dt = e, \qquad \tau\cdot dp = f,

    M_i = \sum_n \omega_{ni} a_{ni} a_{ni}^T + W_i, \quad B_{ni} = \omega_{ni} a_{ni}, \quad
    E_n = \sum_i \omega_{ni} + h_n,

with the use :math:`a_{nir} = d_{nr} / c_{ir}` of a whole capacity by a unit of n, the diagonals W of rows and h of
users, and tau (in max-min 1 for users whose level is t, else 0). As a is a product of two factors, sums over pairs are
products of thin matrices. Eliminating users leaves a Schur complement over rows, eliminating servers a complement over
users; the cheaper of the two is factored. These factors precondition conjugate gradients on the complement over rows,
which is applied as an operator: singular equations and rounding errors add an iteration or two.

In the game marginal utilities differ between servers: costs are divided by marginal utilities (`value`), in M and in
the second equation. Matrices are then not symmetric, and factored by LU instead of Cholesky.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.libraries import blas, sp
from ..model._arrays import Array, Index, Mask
from .accuracy import SUM_ROUNDING
from .factors import TINY, factored
from .sparse import DENSE_FLOPS, Factors, Order, ordered

#: Cost of a multiplication in sparse lists, relative to a flop of a product of dense matrices (measured).
_LIST_COST = 200.0
#: Dimension above which factors that are only used as a preconditioner are in single precision.
_SINGLE_FROM = 250
#: Least pivot relative to its diagonal entry, about the rounding error of a sum.
_LEAST_PIVOT = SUM_ROUNDING
#: Density of pairs in users x servers from which sums over pairs are products of dense matrices.
_DENSE = 0.25
#: Largest number of steps of conjugate gradients, which suffice unless factors are useless as a preconditioner.
_ITERATIONS = 12


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs sorted by user, and the pairs of each user by server.

    Attributes
    ----------
    user, server : (pairs,)
    demand : (users, resources), per unit of the user
    inverse : (servers, resources), 1/capacity
    value : (pairs,), marginal utility of a unit on that server, by which costs are divided; None for 1
    per : (pairs,), factor of the demand of a unit on that server, where rates of work differ; None for 1
    """

    user: Index
    server: Index
    demand: Array
    inverse: Array
    value: Array | None = None
    per: Array | None = None

    @cached_property
    def start(self) -> Index:
        """(users + 1,), index of each user's first pair."""
        return np.searchsorted(self.user, np.arange(len(self.demand) + 1))

    @cached_property
    def full(self) -> bool:
        """True if every user is eligible on every server."""
        return len(self.user) == len(self.demand) * len(self.inverse)

    @cached_property
    def dense(self) -> bool:
        """True if sums over pairs are computed as products of dense matrices."""
        return len(self.user) >= _DENSE * len(self.demand) * len(self.inverse)

    @cached_property
    def _place(self) -> Index:
        """(pairs,), position in the flattened table (users, servers)."""
        return np.asarray(self.user * len(self.inverse) + self.server)

    def table(self, values: Array, fill: float = 0.0) -> Array:
        """Values of pairs as a table (users, servers), with `fill` where a user is not eligible."""
        shape = len(self.demand), len(self.inverse)
        if self.full:
            return values.reshape(shape)
        table = np.full(shape, fill)
        table.reshape(-1)[self._place] = values
        return table

    def _listed(self, table: Array) -> Array:
        """Values of pairs (pairs,) from a table (users, servers)."""
        return table.reshape(-1) if self.full else table.reshape(-1).take(self._place)

    @cached_property
    def takes(self) -> Array:
        """(pairs, resources), fraction of each capacity of the server that a unit uses."""
        takes = self.demand[self.user] * self.inverse[self.server]
        return np.asarray(takes if self.per is None else takes * self.per[:, None])

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """Sparse matrix (pairs, rows) of the fractions of capacities that a unit uses."""
        size = self.inverse.shape[1]
        columns = (self.server[:, None] * size + np.arange(size)).ravel()
        starts = np.arange(0, len(columns) + 1, size)
        return sp.csr_matrix((self.takes.ravel(), columns, starts), shape=(len(self.user), self.inverse.size))

    @cached_property
    def _transposed(self) -> sp.cscmatrix:
        """Transpose of `matrix`, (rows, pairs)."""
        return self.matrix.T

    @cached_property
    def present(self) -> Mask:
        """(servers, resources), True for rows that some pair uses."""
        return np.asarray(self.use(np.ones(len(self.user))) > 0)

    def of_user(self, values: Array) -> Array:
        """Values of users repeated on their pairs, (pairs,)."""
        return np.repeat(values, len(self.inverse)) if self.full else values.take(self.user)

    def sums(self, amount: Array) -> Array:
        """Sum over each user's pairs, (users,)."""
        if self.full:
            return np.asarray(amount.reshape(-1, len(self.inverse)).sum(axis=1))
        return np.asarray(np.add.reduceat(amount, self.start[:-1]))

    def least(self, values: Array) -> Array:
        """Minimum over each user's pairs, (users,)."""
        if self.full:
            return np.asarray(values.reshape(-1, len(self.inverse)).min(axis=1))
        return np.asarray(np.minimum.reduceat(values, self.start[:-1]))

    def with_value(self, value: Array | None) -> Pairs:
        """Copy with other marginal utilities `value` (pairs,), on which the shared cached arrays do not depend."""
        other = copy(self)
        object.__setattr__(other, "value", value)
        return other

    def demanding(self, amount: Array) -> Array:
        """Amounts (pairs,) times `per`: the multiples of the user's demand that the amounts use."""
        return amount if self.per is None else amount * self.per

    def over_value(self, amount: Array) -> Array:
        """Amounts (pairs,) divided by `value`."""
        return amount if self.value is None else amount / self.value

    def cost(self, prices: Array) -> Array:
        """Cost of a unit over its value at prices (servers, resources) of whole capacities, (pairs,)."""
        if self.dense:
            return self.demanding(self.over_value(self._listed(self.demand @ (prices * self.inverse).T)))
        return self.over_value(np.asarray(self.matrix @ prices.ravel()))

    def use(self, amount: Array) -> Array:
        """Utilization by amounts (pairs,), (servers, resources)."""
        if self.dense:
            return np.asarray((self.table(self.demanding(amount)).T @ self.demand) * self.inverse)
        return np.asarray(self._transposed @ amount).reshape(self.inverse.shape)

    def slack(self, prices: Array, user_price: Array) -> Array:
        """Reduced cost, `cost(prices) - of_user(user_price)`, (pairs,)."""
        if self.dense and self.value is None and self.per is None:
            per_server = np.hstack([prices * self.inverse, np.ones((len(prices), 1))])
            return self._listed(np.hstack([self.demand, -user_price[:, None]]) @ per_server.T)
        return self.cost(prices) - self.of_user(user_price)

    def weighed_cost(self, weight: Array, prices: Array) -> Array:
        """`sums(weight * cost(prices))`, (users,)."""
        if self.dense:
            weight = self.table(self.demanding(self.over_value(weight)))
            return np.asarray(((weight @ (prices * self.inverse)) * self.demand).sum(axis=1))
        return self.sums(weight * self.cost(prices))

    def weighed_use(self, weight: Array, amount: Array) -> Array:
        """`use(weight * of_user(amount))`, (servers, resources)."""
        if self.dense:
            return np.asarray((self.table(self.demanding(weight)).T @ (self.demand * amount[:, None])) * self.inverse)
        return self.use(weight * self.of_user(amount))

    def squares(self, weight: Array) -> Array:
        r"""Blocks of M, :math:`\sum_n \omega_{ni} a_{ni} a_{ni}^T / value_{ni}`, (resources, resources, servers)."""
        weight = self.over_value(weight)
        size = self.inverse.shape[1]
        result = np.empty((size, size, len(self.inverse)))
        if self.dense:
            weight = np.ascontiguousarray(self.table(self.demanding(self.demanding(weight))).T)
            for r in range(size):
                result[r] = (
                    self.inverse * self.inverse[:, r, None] * (weight @ (self.demand * self.demand[:, r, None]))
                ).T
            return result
        for r in range(size):
            one = weight * self.takes[:, r]
            for s in range(r + 1):
                result[r, s] = result[s, r] = np.bincount(self.server, one * self.takes[:, s], len(self.inverse))
        return result

    @cached_property
    def order(self) -> str:
        """Side that is eliminated first, "users" or "servers", by the least estimated number of flops.

        The name is followed by " listed" if the Schur complement is sparse.
        """
        users, (servers, size) = float(len(self.demand)), self.inverse.shape
        rows, of_user, of_server = float(servers * size), np.diff(self.start), np.bincount(self.server).astype(float)
        cost = {"users": users * rows**2 + rows**3 / 3, "servers": users**2 * rows + users**3 / 3}
        if min(cost.values()) > DENSE_FLOPS:
            cost |= {
                "users listed": _LIST_COST * size**2 * float(of_user @ (of_user - 1)) / 2 + rows**3 / 3,
                "servers listed": _LIST_COST * size * float(of_server @ (of_server - 1)) / 2 + users**3 / 3,
            }
        return min(cost, key=cost.__getitem__)

    @cached_property
    def lists(self) -> Order:
        """Fill-reducing order of the sparse Schur complement."""
        users, (servers, size) = len(self.demand), self.inverse.shape
        if self.order == "users listed":
            return ordered(self.user, self.server, servers, size)
        return ordered(self.server, self.user, users)


class Equations:
    """Normal equations at one iterate, factored.

    Parameters
    ----------
    weight : (pairs,), omega
    idle : (servers, resources), W; infinite for rows that are left out
    user_diagonal : (users,), h
    rising : (users,), tau
    rough : allow factors of large matrices in single precision; `solve` with `tol` refines their solutions
    """

    def __init__(
        self, pairs: Pairs, weight: Array, idle: Array, user_diagonal: Array, rising: Array, rough: bool = False
    ) -> None:
        self.pairs, self.weight, self.rising, self.rough = pairs, weight, rising, rough
        self.row = np.isfinite(idle)
        self.idle = np.where(self.row, idle, 0.0)
        self.user_diagonal, self.whole = user_diagonal, pairs.sums(weight) + user_diagonal
        self.per_level = max(float((rising * rising / self.whole).sum()), TINY)
        self.border = np.zeros(idle.shape)
        if rising.any():
            self.border = self._masked(pairs.weighed_use(weight, rising / self.whole))
        if pairs.order.startswith("users"):
            # `rest` is the sum of the weights of a user's other pairs, without cancellation for its largest pair.
            all_of = pairs.of_user(self.whole)
            rest = all_of - weight
            large = np.flatnonzero(rest < 0.5 * all_of)
            if len(large):
                small = weight.copy()
                small[large] = 0.0
                rest[large] = (pairs.sums(small) + user_diagonal)[pairs.user[large]]
            self.own = pairs.squares(weight * (rest / all_of))
        self.factors = (_UsersFirst if pairs.order.startswith("users") else _ServersFirst)(self)

    def _masked(self, rows: Array) -> Array:
        """Values of rows, with zeros where rows are left out, (servers, resources)."""
        return np.where(self.row, rows, 0.0)

    def inverse(self, rows: Array) -> Array:
        """Apply the inverse of the Schur complement over rows by its factors, (servers, resources)."""
        return self._masked(self.factors.solve(rows))

    def _apply(self, prices: Array) -> Array:
        """Apply the Schur complement over rows to prices (servers, resources)."""
        pairs = self.pairs
        user_price = pairs.weighed_cost(self.weight, prices) / self.whole
        dt = float((self.border * prices).sum()) / self.per_level
        load = pairs.use(self.weight * pairs.slack(prices, user_price))
        return self._masked(load + self.idle * prices + self.border * dt)

    def solve(self, b: Array, e: Array, f: float, tol: float | None = None) -> tuple[Array, Array, float]:
        """Solve for `(dlam, dp, dt)`; with `tol`, try to reduce the residuals of rows to `tol` by refinement."""
        pairs = self.pairs
        free = e / self.whole
        rest = (f - float((self.rising * free).sum())) / self.per_level
        rhs = self._masked(b + pairs.weighed_use(self.weight, free) + self.border * rest)
        dlam = self.inverse(rhs)
        if tol is not None:
            dlam = self._refined(dlam, rhs, tol)
        dt = rest - float((self.border * dlam).sum()) / self.per_level
        dp = (pairs.weighed_cost(self.weight, dlam) + self.rising * dt) / self.whole + free
        return dlam, dp, dt

    def _refined(self, x: Array, rhs: Array, tol: float) -> Array:
        """Refine x by preconditioned conjugate gradients; return the iterate of least residual (max norm).

        At most `_ITERATIONS` iterates are computed, until the residual is at most `tol`. With values of pairs the Schur
        complement over rows is not symmetric, and iterative refinement replaces conjugate gradients.
        """
        left = rhs - self._apply(x)
        best, least, before, along = x, np.inf, 1.0, np.zeros(x.shape)
        for number in range(_ITERATIONS):
            size = float(np.abs(left).max()) / tol
            if size < least:
                best, least = x, size
            if size <= 1 or not np.isfinite(size):
                break
            step = self.inverse(left)
            if self.pairs.value is not None:  # iterative refinement, since the complement is not symmetric
                x, left = x + step, left - self._apply(step)
                continue
            now = float((step * left).sum())
            along = step + now / before * along if number else step
            image = self._apply(along)
            length = now / max(float((along * image).sum()), TINY)
            x, left = x + length * along, left - length * image
            before = max(now, TINY)
        return best


def _in_precision(at: Equations, table: Array, rows: int) -> tuple[Array, Callable[..., Array]]:
    """Cast a table to the precision of the factors; return it and the BLAS routine of its rank-k update."""
    if at.rough and rows > _SINGLE_FROM:
        return table.astype(np.float32), blas.ssyrk
    return table, blas.dsyrk


def _from_lists(
    at: Equations, takes: Array, others: tuple[Index, Index, Array] | None, along: Array
) -> Callable[[Array], Array]:
    """Solver of the sparse matrix `I + along along' - sum(takes takes' / value)`, with sums over pairs of a group.

    Parameters
    ----------
    takes : (members, k), scaled use by each member of a group
    others : additional off-diagonal entries, as in `sparse.Factors`
    along : (unknowns,), vector of the rank-one term
    """
    pairs, order = at.pairs, at.pairs.lists
    left, rough = takes[order.member], at.rough and len(along) > _SINGLE_FROM
    right = left
    if pairs.value is not None:
        bought = left / np.repeat(pairs.value, len(takes) // len(pairs.value))[order.member, None]
        left, right = (left, bought) if pairs.order == "users listed" else (bought, left)
    return Factors(order, left, right, others, along if pairs.value is None else None, rough).solve


class _UsersFirst:
    """Elimination of users: factored Schur complement over rows, ordered by resource."""

    def __init__(self, at: Equations) -> None:
        border = at.border.T / np.sqrt(at.per_level)
        (self._lists if at.pairs.order == "users listed" else self._tables)(at, border)

    def _lists(self, at: Equations, border: Array) -> None:
        r"""Factor the sparse Schur complement S, scaled to a unit diagonal, with rows ordered by server first.

        .. math:: S_{ii} = W_i + \sum_n \omega_{ni} \Big(1 - \frac{\omega_{ni}}{\Omega_n}\Big) a_{ni} a_{ni}^T, \qquad
            S_{ij} = -\sum_n \frac{\omega_{ni} \omega_{nj}}{\Omega_n} a_{ni} a_{nj}^T

        plus the outer product of `border` (resources, servers); :math:`\Omega_n` is `Equations.whole`. In the game the
        second factor of every product is divided by the value of its pair.
        """
        pairs, own = at.pairs, at.own
        self.diagonal = np.maximum(np.einsum("rrk->rk", own) + at.idle.T, TINY)
        scale = np.where(at.row.T, 1 / np.sqrt(self.diagonal), 0.0)
        size, k = scale.shape
        self.rows = np.arange(scale.size).reshape(size, k).T.ravel()
        self.scale = scale.ravel()[self.rows]
        weight = at.weight / np.sqrt(at.whole)[pairs.user]
        takes = pairs.takes * scale.T[pairs.server] * weight[:, None]
        i, j = np.nonzero(np.tri(size, k=-1) if pairs.value is None else ~np.eye(size, dtype=bool))
        first, second = (np.arange(k) * size + each[:, None] for each in (i, j))
        others = first.ravel(), second.ravel(), (own[i, j] * scale[i] * scale[j]).ravel()
        self.factor = _from_lists(at, takes.reshape(-1, 1), others, border.ravel()[self.rows] * self.scale)

    def _tables(self, at: Equations, border: Array) -> None:
        """Factor the dense complement over rows with a positive diagonal; arguments as in `_lists`."""
        pairs, own = at.pairs, at.own
        diagonal = np.einsum("rrk->rk", own) + border**2
        self.diagonal = np.maximum(diagonal + at.idle.T, TINY)
        active = at.row.T & (diagonal > 0)
        scale = np.where(active, 1 / np.sqrt(self.diagonal), 0.0)
        self.rows = np.flatnonzero(active)
        self.scale, count = scale.ravel()[self.rows], len(self.rows)
        matrix = self._dense_complement(at, scale, active)
        place = np.full(active.shape, -1)
        place.ravel()[self.rows] = np.arange(count)
        # Diagonal blocks of servers are the blocks of `own`, which are computed without cancellation.
        for r in range(len(place)):
            for s in range(r + 1 if pairs.value is None else len(place)):
                both = np.flatnonzero(active[r] & active[s])
                matrix[place[r, both], place[s, both]] = own[r, s, both] * scale[r, both] * scale[s, both]
        if count and at.rising.any():
            rank_one = blas.ssyr if matrix.dtype == np.float32 else blas.dsyr
            matrix = rank_one(1.0, (border * scale).ravel()[self.rows], lower=1, a=matrix, overwrite_a=1)
        np.einsum("ii->i", matrix)[:] = 1.0
        self.factor = factored(matrix, pairs.value is None)

    def _dense_complement(self, at: Equations, scale: Array, active: Mask) -> Array:
        r"""Off-diagonal part of the scaled Schur complement over active rows, dense, (rows, rows), ordered by resource.

        With the weights :math:`\omega_{ni}` of pairs and :math:`E_n = \sum_i \omega_{ni} + h_n`, its elements are

        .. math:: -\sum_n \frac{\omega_{ni} a_{nir}\, \omega_{nj} a_{njs}}{E_n}\, scale_{ir}\, scale_{js},

        the product of two thin matrices (users, rows); only the lower triangle is computed if they are equal.

        Parameters
        ----------
        scale : (resources, servers), inverse roots of the diagonal, 0 for inactive rows
        active : (resources, servers)
        """
        pairs, k, root = at.pairs, active.shape[1], 1 / np.sqrt(at.whole)

        def wide(weight: Array) -> tuple[Array, Callable[..., Array]]:
            """Matrix (users, rows) of scaled weights times use, and the BLAS routine of its precision."""
            table, syrk = _in_precision(at, pairs.table(pairs.demanding(weight)) * root[:, None], len(self.rows))
            demand = pairs.demand.astype(table.dtype)
            result, first = np.empty((len(root), len(self.rows)), dtype=table.dtype), 0
            for r in range(len(scale)):
                on = np.flatnonzero(active[r])
                part = result[:, first : first + len(on)]
                factor = (pairs.inverse[:, r] * scale[r])[on].astype(table.dtype)
                np.multiply(table if len(on) == k else table[:, on], factor, out=part)
                part *= demand[:, r, None]
                first += len(on)
            return result, syrk

        left, syrk = wide(at.weight)
        if not left.size:
            return np.zeros((len(self.rows), len(self.rows)), dtype=left.dtype, order="F")
        if pairs.value is None:
            return np.asarray(syrk(-1.0, left.T, lower=1))
        return np.asarray(-(wide(pairs.over_value(at.weight))[0].T @ left).T)

    def solve(self, rows: Array) -> Array:
        """Apply the inverse of the Schur complement over rows, (servers, resources)."""
        result = rows.T / self.diagonal
        if len(self.rows):
            flat = result.reshape(-1)
            given = np.ascontiguousarray(rows.T).reshape(-1)[self.rows] * self.scale
            flat[self.rows] = self.factor(given) * self.scale
        return np.asarray(result.T)


class _ServersFirst:
    """Elimination of servers, vectorised: factored Schur complement over users."""

    def __init__(self, at: Equations) -> None:
        pairs, order = at.pairs, at.pairs.order
        self.unscaled, self.weight, self.bought = pairs.with_value(None), at.weight, pairs.over_value(at.weight)
        row, size = at.row.T, at.row.shape[1]
        squares = pairs.squares(at.weight) * (row[:, None] & row)  # rows that are left out are decoupled
        diagonal = np.einsum("rrk->rk", squares)
        diagonal += at.idle.T + ~row
        lower, self.root = np.zeros((2, *squares.shape))  # Cholesky factor of every server's block, and its inverse
        for r in range(size):
            self.root[r, r] = 1.0
            for s in range(r + 1):
                left = squares[r, s] - np.einsum("qk,qk->k", lower[r, :s], lower[s, :s])
                if s == r:
                    lower[r, r] = np.sqrt(np.maximum(left, _LEAST_PIVOT * np.maximum(squares[r, r], TINY)))
                else:
                    lower[r, s] = left / lower[s, s]
                    self.root[r] -= lower[r, s] * self.root[s]
            self.root[r] /= lower[r, r]
        # A rank-one term makes the complement regular in the direction of the level, in which it is singular.
        self.rising, root = at.rising, 1 / np.sqrt(at.whole)
        along = self.rising * root
        along /= max(float(np.linalg.norm(along)), TINY)
        self._lists(at, root, along) if order == "servers listed" else self._tables(at, root, along)
        self.of_rising = self._users(self.rising)
        self.length = max(float(self.rising @ self.of_rising), TINY)

    def _lists(self, at: Equations, root: Array, along: Array) -> None:
        """Factor the sparse Schur complement over users, scaled to a unit diagonal.

        Parameters
        ----------
        root : (users,), inverse roots of E
        along : (users,), unit vector of the level direction, which the rank-one term makes regular
        """
        pairs = at.pairs
        taken = (at.row * pairs.inverse)[pairs.server] * pairs.demand[pairs.user] * pairs.of_user(root)[:, None]
        taken = taken if pairs.per is None else taken * pairs.per[:, None]
        half = np.einsum("qsp,ps->pq", self.root[:, :, pairs.server], taken)
        half *= self.weight[:, None]
        left = 1 - pairs.sums(pairs.over_value((half**2).sum(axis=1)))
        even = 1 / np.sqrt(np.maximum(left, _LEAST_PIVOT))
        self.scale = root * even
        half *= pairs.of_user(even)[:, None]
        self.factor = _from_lists(at, half, None, along * even)

    def _tables(self, at: Equations, root: Array, along: Array) -> None:
        """Factor the dense Schur complement over users, scaled to a unit diagonal; arguments as in `_lists`."""
        pairs, n, inverse = at.pairs, len(along), at.row.T * at.pairs.inverse.T
        table, syrk = _in_precision(at, pairs.table(pairs.demanding(self.weight)) * root[:, None], n)
        kind = table.dtype
        matrix, demand = np.zeros((n, n), order="F", dtype=kind), pairs.demand.astype(kind)
        bought = None
        if pairs.value is not None:
            bought = _in_precision(at, pairs.table(pairs.demanding(self.bought)) * root[:, None], n)[0]
        for one in self.root:
            wide = demand @ (one * inverse).astype(kind)
            if bought is None:
                wide *= table
                matrix = syrk(-1.0, wide.T, trans=1, beta=1.0, c=matrix, lower=1, overwrite_c=1)
            else:
                matrix -= (wide * bought) @ (wide * table).T
        diagonal = np.einsum("ii->i", matrix)
        diagonal += 1.0
        matrix += np.outer(along, along)
        even = 1 / np.sqrt(np.maximum(diagonal, _LEAST_PIVOT))
        self.scale = root * even
        matrix *= even
        matrix *= even[:, None]
        self.factor = factored(matrix, pairs.value is None)

    def _users(self, values: Array) -> Array:
        """Apply the inverse of the Schur complement over users, (users,)."""
        return np.asarray(self.factor(values * self.scale) * self.scale)

    def _servers(self, rows: Array) -> Array:
        """Apply the inverse of M, block by server, (servers, resources)."""
        half = np.einsum("qsk,sk->qk", self.root, np.ascontiguousarray(rows.T))
        return np.asarray(np.einsum("qrk,qk->rk", self.root, half).T)

    def solve(self, rows: Array) -> Array:
        """Apply the inverse of the Schur complement over rows, (servers, resources)."""
        direct = self._servers(rows)
        user_price = self._users(self.unscaled.weighed_cost(self.bought, direct))
        user_price -= self.of_rising * (float(self.rising @ user_price) / self.length)
        return np.asarray(direct + self._servers(self.unscaled.weighed_use(self.weight, user_price)))
