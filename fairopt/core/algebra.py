r"""Normal equations of interior-point methods over pairs (user, server), by Schur complements in either order.

Let y be the amounts of pairs, z their slacks (excess costs), and :math:`\omega = y/z` their weights. Newton's equations
for changes of the prices lambda of rows (a resource of a server each), the prices p of users and the level t are

.. math::
    M\,d\lambda - B\,dp = b, \qquad -B^T d\lambda + E\,dp - \tau\,dt = e, \qquad \tau\cdot dp = f,

    M_i = \sum_n \omega_{ni} a_{ni} a_{ni}^T + W_i, \quad B_{ni} = \omega_{ni} a_{ni}, \quad
    E_n = \sum_i \omega_{ni} + h_n,

where :math:`a_{nir} = d_{nr} / c_{ir}` is the fraction of a capacity that a unit of n uses, the diagonal W of rows is
the ratio of slack to price, h is the diagonal of users that the caller provides (in max-min the ratio of slack to
price, in welfare programs the inverse curvature), and tau is in max-min 1 for users whose level is t, else 0. As a is a
product of two factors, sums over pairs are products of thin matrices. Eliminating users leaves a Schur complement over
rows, eliminating servers a complement over users; the cheaper of the two is factored. These factors precondition
conjugate gradients on the complement over rows, which is applied as an operator: singular equations and rounding errors
add an iteration or two.

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
    r"""Normal equations at one iterate, factored.

    Parameters
    ----------
    weight : (pairs,), omega
    idle : (servers, resources), W; infinite for rows that are left out
    user_diagonal : (users,), h
    rising : (users,), tau
    rough : allow factors of large matrices in single precision; `solve` with `tol` refines their solutions

    Attributes
    ----------
    row : (servers, resources), False for rows that are left out
    whole : (users,), the diagonal E
    border, per_level : (servers, resources), :math:`B E^{-1} \tau`, and the number :math:`\tau^T E^{-1} \tau`;
        eliminating t adds :math:`border\,border^T / per\_level` to the complement over rows
    own : (resources, resources, servers), diagonal blocks of :math:`M - B E^{-1} B^T`, without W; only where users are
        eliminated first
    factors : factors of the complement that is cheaper
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
        residual = rhs - self._apply(x)
        best, least, last_product, direction = x, np.inf, 1.0, np.zeros(x.shape)
        for number in range(_ITERATIONS):
            size = float(np.abs(residual).max()) / tol
            if size < least:
                best, least = x, size
            if size <= 1 or not np.isfinite(size):
                break
            step = self.inverse(residual)
            if self.pairs.value is not None:  # iterative refinement, since the complement is not symmetric
                x, residual = x + step, residual - self._apply(step)
                continue
            product = float((step * residual).sum())
            direction = step + product / last_product * direction if number else step
            image = self._apply(direction)
            length = product / max(float((direction * image).sum()), TINY)
            x, residual = x + length * direction, residual - length * image
            last_product = max(product, TINY)
        return best


def _in_precision(at: Equations, table: Array, rows: int) -> tuple[Array, Callable[..., Array]]:
    """Cast a table to the precision of the factors; return it and the BLAS routine of its rank-k update."""
    if at.rough and rows > _SINGLE_FROM:
        return table.astype(np.float32), blas.ssyrk
    return table, blas.dsyrk


def _sparse_solver(
    at: Equations, use: Array, others: tuple[Index, Index, Array] | None, rank_one: Array
) -> Callable[[Array], Array]:
    """Solver of the sparse matrix `I + rank_one rank_one' - sum(use use' / value)`, summed over the pairs of a group.

    Parameters
    ----------
    use : (members, k), scaled use by each member of a group
    others : additional off-diagonal entries, as in `sparse.Factors`
    rank_one : (unknowns,); ignored where pairs have values
    """
    pairs, order = at.pairs, at.pairs.lists
    left, single = use[order.member], at.rough and len(rank_one) > _SINGLE_FROM
    right = left
    if pairs.value is not None:
        per_value = left / np.repeat(pairs.value, len(use) // len(pairs.value))[order.member, None]
        left, right = (left, per_value) if pairs.order == "users listed" else (per_value, left)
    return Factors(order, left, right, others, rank_one if pairs.value is None else None, single).solve


class _UsersFirst:
    r"""Elimination of users: the Schur complement over rows, scaled to a unit diagonal, and factored.

    Its blocks (resources, resources) of servers i and j are, with :math:`B`, :math:`E` and W of the module,

    .. math:: S_{ii} = W_i + \sum_n \omega_{ni} \Big(1 - \frac{\omega_{ni}}{E_n}\Big) a_{ni} a_{ni}^T, \qquad
        S_{ij} = -\sum_n \frac{\omega_{ni} \omega_{nj}}{E_n} a_{ni} a_{nj}^T

    plus the outer product of the vector `border`. In the game the second factor of every product is divided by the
    value of its pair.

    Attributes
    ----------
    diagonal : (resources, servers), diagonal of S, at least `TINY`
    rows : (unknowns,), indices of the unknowns of S in flattened arrays (resources, servers)
    scale : (unknowns,), inverse roots of the diagonal, by which rows and columns of S are multiplied
    solve_scaled : solver of the scaled matrix
    """

    def __init__(self, at: Equations) -> None:
        border = at.border.T / np.sqrt(at.per_level)
        (self._factor_sparse if at.pairs.order == "users listed" else self._factor_dense)(at, border)

    def _factor_sparse(self, at: Equations, border: Array) -> None:
        """Factor S as a sparse matrix, whose unknowns are ordered by server first; `border` is (resources, servers)."""
        pairs, own = at.pairs, at.own
        self.diagonal = np.maximum(np.einsum("rrk->rk", own) + at.idle.T, TINY)
        scale = np.where(at.row.T, 1 / np.sqrt(self.diagonal), 0.0)
        resources, servers = scale.shape
        self.rows = np.arange(scale.size).reshape(resources, servers).T.ravel()
        self.scale = scale.ravel()[self.rows]
        weight_over_root = at.weight / np.sqrt(at.whole)[pairs.user]
        scaled_use = pairs.takes * scale.T[pairs.server] * weight_over_root[:, None]
        # Entries of S between two resources r and s of the same server: only r > s if S is symmetric.
        r, s = np.nonzero(np.tri(resources, k=-1) if pairs.value is None else ~np.eye(resources, dtype=bool))
        row, column = (np.arange(servers) * resources + resource[:, None] for resource in (r, s))
        of_servers = row.ravel(), column.ravel(), (own[r, s] * scale[r] * scale[s]).ravel()
        rank_one = border.ravel()[self.rows] * self.scale
        self.solve_scaled = _sparse_solver(at, scaled_use.reshape(-1, 1), of_servers, rank_one)

    def _factor_dense(self, at: Equations, border: Array) -> None:
        """Factor S as a dense matrix over rows with a positive diagonal; `border` is (resources, servers)."""
        pairs, own = at.pairs, at.own
        diagonal = np.einsum("rrk->rk", own) + border**2
        self.diagonal = np.maximum(diagonal + at.idle.T, TINY)
        active = at.row.T & (diagonal > 0)
        scale = np.where(active, 1 / np.sqrt(self.diagonal), 0.0)
        self.rows = np.flatnonzero(active)
        self.scale = scale.ravel()[self.rows]
        matrix = self._dense_complement(at, scale, active)
        place = np.full(active.shape, -1)  # of each active row among the unknowns
        place.ravel()[self.rows] = np.arange(len(self.rows))
        # Diagonal blocks of servers are the blocks of `own`, which are computed without cancellation.
        for r in range(len(place)):
            for s in range(r + 1 if pairs.value is None else len(place)):
                both = np.flatnonzero(active[r] & active[s])
                matrix[place[r, both], place[s, both]] = own[r, s, both] * scale[r, both] * scale[s, both]
        if len(self.rows) and at.rising.any():
            add_rank_one = blas.ssyr if matrix.dtype == np.float32 else blas.dsyr
            matrix = add_rank_one(1.0, (border * scale).ravel()[self.rows], lower=1, a=matrix, overwrite_a=1)
        np.einsum("ii->i", matrix)[:] = 1.0
        self.solve_scaled = factored(matrix, pairs.value is None)

    def _dense_complement(self, at: Equations, scale: Array, active: Mask) -> Array:
        r"""Scaled blocks S_ij of the complement between active rows, dense, (unknowns, unknowns), by resource first.

        Blocks of a server with itself have the same form, :math:`-\sum_n \omega_{ni}^2 a_{ni} a_{ni}^T / E_n`, and are
        to be replaced. The matrix is a product of two thin matrices (users, unknowns), with the elements

        .. math:: \frac{\omega_{ni} a_{nir}}{\sqrt{E_n}}\, scale_{ir};

        only its lower triangle is computed if they are equal.

        Parameters
        ----------
        scale : (resources, servers), inverse roots of the diagonal, 0 for inactive rows
        active : (resources, servers)
        """
        pairs, servers, per_root = at.pairs, active.shape[1], 1 / np.sqrt(at.whole)

        def scaled_use(weight: Array) -> tuple[Array, Callable[..., Array]]:
            """Thin matrix (users, unknowns) for weights of pairs, and the BLAS routine of its precision."""
            table, syrk = _in_precision(at, pairs.table(pairs.demanding(weight)) * per_root[:, None], len(self.rows))
            demand = pairs.demand.astype(table.dtype)
            result, first = np.empty((len(per_root), len(self.rows)), dtype=table.dtype), 0
            for r in range(len(scale)):
                on = np.flatnonzero(active[r])  # servers with an active row of this resource
                columns = result[:, first : first + len(on)]
                per_demand = (pairs.inverse[:, r] * scale[r])[on].astype(table.dtype)
                np.multiply(table if len(on) == servers else table[:, on], per_demand, out=columns)
                columns *= demand[:, r, None]
                first += len(on)
            return result, syrk

        use, syrk = scaled_use(at.weight)
        if not use.size:
            return np.zeros((len(self.rows), len(self.rows)), dtype=use.dtype, order="F")
        if pairs.value is None:
            return np.asarray(syrk(-1.0, use.T, lower=1))
        return np.asarray(-(scaled_use(pairs.over_value(at.weight))[0].T @ use).T)

    def solve(self, rows: Array) -> Array:
        """Apply the inverse of the Schur complement over rows, (servers, resources)."""
        result = rows.T / self.diagonal
        if len(self.rows):
            flat = result.reshape(-1)
            given = np.ascontiguousarray(rows.T).reshape(-1)[self.rows] * self.scale
            flat[self.rows] = self.solve_scaled(given) * self.scale
        return np.asarray(result.T)


def _inverse_cholesky(blocks: Array) -> Array:
    """Inverses of the lower Cholesky factors of matrices `blocks`; both (resources, resources, servers).

    Pivots are at least `_LEAST_PIVOT` times the diagonal.
    """
    lower, inverse = np.zeros((2, *blocks.shape))
    for r in range(len(blocks)):
        inverse[r, r] = 1.0
        for s in range(r + 1):
            remaining = blocks[r, s] - np.einsum("qk,qk->k", lower[r, :s], lower[s, :s])
            if s == r:
                lower[r, r] = np.sqrt(np.maximum(remaining, _LEAST_PIVOT * np.maximum(blocks[r, r], TINY)))
            else:
                lower[r, s] = remaining / lower[s, s]
                inverse[r] -= lower[r, s] * inverse[s]
        inverse[r] /= lower[r, r]
    return np.asarray(inverse)


class _ServersFirst:
    r"""Elimination of servers: the Schur complement over users, scaled to a unit diagonal, and factored.

    With the Cholesky factors :math:`M_i = L_i L_i^T` of the blocks of M and
    :math:`h_{ni} = \omega_{ni} L_i^{-1} a_{ni}`, the complement is

    .. math:: E_n \delta_{nm} - \sum_i h_{ni} \cdot h_{mi}

    In the game one of the two factors of every product is divided by the value of its pair.

    Attributes
    ----------
    weight, bought : (pairs,), omega, and omega divided by the values of pairs
    inverse_lower : (resources, resources, servers), :math:`L_i^{-1}`
    scale : (users,), factors of rows and columns by which the diagonal becomes 1 (in a dense matrix, with the
        rank-one term)
    solve_scaled : solver of the scaled complement, plus a rank-one term by which it is regular
    of_rising, length : (users,), its solution for the right-hand side tau, and the product of tau and this solution
    """

    def __init__(self, at: Equations) -> None:
        pairs = at.pairs
        self.without_value, self.weight, self.bought = pairs.with_value(None), at.weight, pairs.over_value(at.weight)
        row = at.row.T
        blocks = pairs.squares(at.weight) * (row[:, None] & row)  # rows that are left out are decoupled
        diagonal = np.einsum("rrk->rk", blocks)  # a view
        diagonal += at.idle.T + ~row
        self.inverse_lower = _inverse_cholesky(blocks)
        # A rank-one term makes the complement regular in the direction of the level, in which it is singular.
        self.rising, per_root = at.rising, 1 / np.sqrt(at.whole)
        rank_one = self.rising * per_root
        rank_one /= max(float(np.linalg.norm(rank_one)), TINY)
        (self._factor_sparse if pairs.order == "servers listed" else self._factor_dense)(at, per_root, rank_one)
        self.of_rising = self._users(self.rising)
        self.length = max(float(self.rising @ self.of_rising), TINY)

    def _factor_sparse(self, at: Equations, per_root: Array, rank_one: Array) -> None:
        """Factor the complement as a sparse matrix.

        Parameters
        ----------
        per_root : (users,), inverse roots of E
        rank_one : (users,), unit vector of the direction of the level, in units of `per_root`
        """
        pairs = at.pairs
        use = (at.row * pairs.inverse)[pairs.server] * pairs.demand[pairs.user] * pairs.of_user(per_root)[:, None]
        use = use if pairs.per is None else use * pairs.per[:, None]
        h = np.einsum("qsp,ps->pq", self.inverse_lower[:, :, pairs.server], use)  # (pairs, resources), over root E
        h *= self.weight[:, None]
        diagonal = 1 - pairs.sums(pairs.over_value((h**2).sum(axis=1)))
        to_unit = 1 / np.sqrt(np.maximum(diagonal, _LEAST_PIVOT))
        self.scale = per_root * to_unit
        h *= pairs.of_user(to_unit)[:, None]
        self.solve_scaled = _sparse_solver(at, h, None, rank_one * to_unit)

    def _factor_dense(self, at: Equations, per_root: Array, rank_one: Array) -> None:
        """Factor the complement as a dense matrix; arguments as in `_factor_sparse`."""
        pairs, n, inverse = at.pairs, len(rank_one), at.row.T * at.pairs.inverse.T
        weight, syrk = _in_precision(at, pairs.table(pairs.demanding(self.weight)) * per_root[:, None], n)
        matrix, demand = np.zeros((n, n), order="F", dtype=weight.dtype), pairs.demand.astype(weight.dtype)
        bought = None
        if pairs.value is not None:
            bought = _in_precision(at, pairs.table(pairs.demanding(self.bought)) * per_root[:, None], n)[0]
        for of_resources in self.inverse_lower:  # a component of h, over root E and before weighting, (users, servers)
            h = demand @ (of_resources * inverse).astype(weight.dtype)
            if bought is None:
                h *= weight
                matrix = syrk(-1.0, h.T, trans=1, beta=1.0, c=matrix, lower=1, overwrite_c=1)
            else:
                matrix -= (h * bought) @ (h * weight).T
        diagonal = np.einsum("ii->i", matrix)  # a view
        diagonal += 1.0
        matrix += np.outer(rank_one, rank_one)
        to_unit = 1 / np.sqrt(np.maximum(diagonal, _LEAST_PIVOT))
        self.scale = per_root * to_unit
        matrix *= to_unit
        matrix *= to_unit[:, None]
        self.solve_scaled = factored(matrix, pairs.value is None)

    def _users(self, values: Array) -> Array:
        """Apply the inverse of the Schur complement over users, (users,)."""
        return np.asarray(self.solve_scaled(values * self.scale) * self.scale)

    def _servers(self, rows: Array) -> Array:
        """Apply the inverse of M, block by server, (servers, resources)."""
        half = np.einsum("qsk,sk->qk", self.inverse_lower, np.ascontiguousarray(rows.T))
        return np.asarray(np.einsum("qrk,qk->rk", self.inverse_lower, half).T)

    def solve(self, rows: Array) -> Array:
        """Apply the inverse of the Schur complement over rows, (servers, resources)."""
        direct = self._servers(rows)
        user_price = self._users(self.without_value.weighed_cost(self.bought, direct))
        user_price -= self.of_rising * (float(self.rising @ user_price) / self.length)
        return np.asarray(direct + self._servers(self.without_value.weighed_use(self.weight, user_price)))
