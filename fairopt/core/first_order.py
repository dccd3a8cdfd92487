r"""Conditions of an answer to first order, on its active set, in lists of pairs: the matrix of Newton and derivatives.

Unknowns are changes `da` of pairs in parts of their user's tasks, `dt` of log levels, `db` of log prices of whole
capacities and `de` of prices of limits; what a pair pays is `p_ni = sum_r lambda_ir d_nr`, `share` a row's part in it:

    rows      sum_n x_n d_nr/c_ir da_ni                     rows that stay full
    users     sum_i da_ni - dt_g(n)                         users who follow a level
    limits    sum_i da_ni                                   users who follow their limit
    pairs     slope sum_i da_ni + (sum_r share_nir db_ir)/A + de_n    pairs that go on to cost what tasks are worth

At finite alpha `slope` is alpha/A, `A = max(alpha, 1)`, users at their limit have an `e`, and nobody follows a level.
In max-min users of a level who can take from each other have one in common, slope is 0, every level has prices, and
every user an `e`: the same on all of its pairs, whatever it is.
Conditions that hold with equality although nothing holds them (a pair without tasks that costs no more than others, a
full row without a price, a limit just reached) have equations and no unknown: where these go on to have a solution as
data change, tasks have a derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._libraries import csgraph, sp, sparse_linalg
from ..model._arrays import Array, Index, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope


class Prices(NamedTuple):
    """Prices of one level: log prices of whole capacities (rows,), log costs of a task (pairs,), and cheapest pairs."""

    log_rows: Array
    cost: Array
    pairs: Mask


@dataclass(frozen=True)
class Active:
    """Active set of a solution; weakly active: an equality whose multiplier is zero.

    Attributes
    ----------
    total, part : (users,), tasks; (pairs,), parts of them
    pairs, weak_pairs : (pairs,), with tasks; without, though no dearer than others
    rows, weak_rows : (rows,), with a price; without, though used up
    limits, weak_limits : (users,), whose limit holds them; who just reach it
    follows, level : (users,), whose tasks follow a level, and its number
    excess : (users,), whose pairs cost as much as each other, and not what their tasks are worth
    prices : one set at finite alpha, one a level in max-min
    """

    polytope: Polytope
    criterion: Criterion
    total: Array
    part: Array
    pairs: Mask
    weak_pairs: Mask
    rows: Mask
    weak_rows: Mask
    limits: Mask
    weak_limits: Mask
    follows: Mask
    level: Index
    excess: Mask
    prices: tuple[Prices, ...]


def standing(polytope: Polytope, pairs: Index, part: Array) -> Index:
    """Select pairs from those with tasks (k,), `part` (k,) of their users', that span the same feasible changes.

    Where servers are as good as each other every user may have tasks on all of them: the two largest parts of a user
    and the M + 2 largest uses of a server are then enough.
    """
    if len(pairs) <= 3 * (len(polytope.users) + polytope.cluster.capacity.size):
        return pairs
    use = polytope.pair_use[pairs].max(axis=1) / polytope.gamma[pairs] * part
    server = polytope.pair_server[pairs]
    some = _largest_of(polytope.pair_user[pairs], part, 2) | _largest_of(server, use, polytope.pair_use.shape[1] + 2)
    return pairs[some]


def _largest_of(group: Index, size: Array, most: int) -> Mask:
    """True for the `most` largest entries of every group, (k,)."""
    order = np.lexsort((-size, group))
    ordered = group[order]
    result = np.empty(len(group), dtype=bool)
    result[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered) < most
    return result


def summed(groups: Index, count: int) -> sp.csr_matrix:
    """(count, k): sums over groups (k,)."""
    return sp.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(count, len(groups)))


class Equations:
    """The equations of an active set, pairs, rows, limits and users in this order, and their matrix."""

    def __init__(self, active: Active) -> None:
        self.active = active
        polytope, scale = active.polytope, active.criterion.stiffness
        finite = bool(np.isfinite(scale))
        self.scale, self.slope = (scale, active.criterion.alpha / scale) if finite else (1.0, 0.0)
        #: Pairs with tasks, those of them that have unknowns, users and servers of all pairs.
        self.pairs = np.flatnonzero(active.pairs)
        self.standing = standing(polytope, self.pairs, active.part[self.pairs])
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.rows = np.concatenate([np.flatnonzero(active.rows), np.flatnonzero(active.weak_rows)])
        self.users = np.flatnonzero(active.follows)
        self.limits = np.concatenate([np.flatnonzero(active.limits), np.flatnonzero(active.weak_limits)])
        #: By set of prices, the pairs that have an equation.
        self.cheap = [np.flatnonzero(each.pairs) for each in active.prices]
        blocks = [*self.cheap, self.rows, self.limits, self.users]
        #: How many equations there are, and their numbers.
        self.size = sum(len(each) for each in blocks)
        numbers = np.split(np.arange(self.size), np.cumsum([len(each) for each in blocks[:-1]]))
        *self.of_pairs, self.of_rows, self.of_limits, self.of_users = numbers

    def uses(self, pairs: Index) -> sp.csr_matrix:
        """(rows with an equation, some pairs), use by all of a user's tasks."""
        whole = self.active.total[self.user[pairs]] / self.active.polytope.gamma[pairs]
        return self.active.polytope.use[self.rows][:, pairs] @ sp.diags(whole)

    def shares(self, k: int) -> sp.coo_matrix:
        """(pairs of set k, rows of the polytope), parts of rows in what pairs pay; 0 of rows without a price."""
        prices, pairs = self.active.prices[k], self.cheap[k]
        found = self.active.polytope.use[:, pairs].T.tocoo()
        whole = (prices.cost + np.log(self.active.polytope.gamma))[pairs]
        found.data = np.exp(np.log(found.data) + prices.log_rows[found.col] - whole[found.row])
        return found

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """(equations, unknowns): pairs, levels, and of each set prices and excess, in this order."""
        active, users = self.active, len(self.active.total)
        of_user = [summed(self.user[each], users) for each in (self.standing, *self.cheap)]
        same = [self.slope * each.T @ of_user[0] for each in of_user[1:]]
        tasks = sp.vstack([*same, self.uses(self.standing), of_user[0][self.limits], of_user[0][self.users]])
        level = active.level[self.users]
        shape = self.size, int(level.max(initial=-1)) + 1
        levels = sp.csr_matrix((-np.ones(len(level)), (self.of_users, level)), shape=shape)
        prices = [
            sp.hstack([self.shares(k).tocsc()[:, each.log_rows > -np.inf] / self.scale, own.T[:, active.excess]])
            for k, (each, own) in enumerate(zip(active.prices, of_user[1:], strict=True))
        ]
        by_prices = sp.block_diag([sp.csr_matrix((0, 0)), *prices])
        by_prices.resize(self.size, by_prices.shape[1])
        whole = sp.hstack([tasks, levels, by_prices]).tocsr()
        whole.eliminate_zeros()
        return whole if self.slope else whole[:, np.unique(whole.indices)]  # no equation has the others

    @cached_property
    def main(self) -> Mask:
        """(equations,), True for strongly active conditions; the others must be implied, or there is no derivative."""
        active = self.active
        stands = np.zeros(len(active.pairs), dtype=bool)
        stands[self.standing] = True
        of_limits = np.arange(len(self.limits)) < active.limits.sum()
        of_rows = np.arange(len(self.rows)) < active.rows.sum()
        return np.concatenate([*(stands[each] for each in self.cheap), of_rows, of_limits, active.follows[self.users]])

    @cached_property
    def parts(self) -> tuple[Index, Index]:
        """Labels of connected components, of equations and of all users of the cluster."""
        polytope = self.active.polytope
        part, users = parts(polytope), polytope.cluster.shape[0]
        of_rows = part[users + polytope.row_server[self.rows]]
        of_users = [part[polytope.users[each]] for each in (self.limits, self.users)]
        of_pairs = [part[users + self.server[each]] for each in self.cheap]
        return np.concatenate([*of_pairs, of_rows, *of_users]), part[:users]


def parts(polytope: Polytope) -> Index:
    """Numbers of parts of users and servers, (all users + servers,), who share no server, not even one that they do not
    use: where equations have no solution prices jump, and who could use a server may come."""
    users, servers = polytope.cluster.shape[:2]
    edges = polytope.users[polytope.pair_user], users + polytope.pair_server
    graph = sp.csr_matrix((np.ones(len(polytope.gamma)), edges), shape=(users + servers,) * 2)
    return np.asarray(csgraph.connected_components(graph, directed=False)[1])


class Factors:
    """A sparse matrix (equations, unknowns) of any shape and rank, factorised once: adjoints and null vectors.

        J s = b  has a solution  if and only if  v' b = 0 for all v with v' J = 0,
        g' s  is the same for all solutions  if and only if  J' w = g  has one; then  g' s = w' b.

    Rows and columns are scaled to largest entries of 1; factors are those of a square J with random multiples of
    epsilon on its diagonal, or of `[epsilon, J; J', -epsilon]`, which is regular for any J. Refinement takes epsilon
    out again where there is a solution. A vector of the left null space is what inverse iteration ends with, if there
    is one: it grows by 1/epsilon a step.

    Parameters
    ----------
    main : (equations,), those that are factorised; the others are looked at: may they have no solution?

    Source: Bjorck, "Numerical Methods for Least Squares Problems" (1996), 2.5; Golub, Van Loan, "Matrix Computations"
    (2013), 7.6 (inverse iteration).
    """

    def __init__(self, matrix: sp.csr_matrix, main: Mask) -> None:
        self.row = 1 / _largest(matrix, 1)
        self.column = 1 / _largest(sp.diags(self.row) @ matrix, 0)
        self.matrix = (sp.diags(self.row) @ matrix @ sp.diags(self.column)).tocsr()
        self.main = np.flatnonzero(main)
        self._core = self.matrix[self.main]
        rows, columns = self._core.shape
        epsilon, self._square = 1e-11, rows == columns
        if self._square:
            whole = self._core + epsilon * sp.diags(np.random.default_rng(0).standard_normal(rows))
        else:
            whole = sp.bmat([[epsilon * sp.eye(rows), self._core], [self._core.T, -epsilon * sp.eye(columns)]])
        self._factors = sparse_linalg.splu(whole.tocsc())

    def _once(self, given: Array, of_equations: bool = False) -> Array:
        """A solution of `J' w = given` (unknowns, k), nearly.

        Or what of `given` (equations, k) is in the left null space, times 1/epsilon; of the rest little.
        """
        rows, columns = self._core.shape
        if self._square:
            return np.asarray(self._factors.solve(given, "T"))
        none = np.zeros((columns if of_equations else rows, given.shape[1]))
        return np.asarray(self._factors.solve(np.concatenate([given, none] if of_equations else [none, given]))[:rows])

    def adjoint(self, given: Array) -> tuple[Array, Array]:
        """w (equations, k) with `J' w = given` (unknowns, k) as nearly as can be, and by what it is missed, (k,)."""
        scaled = given * self.column[:, None]
        w = self._adjoint(scaled)
        missed = np.abs(scaled - self.matrix.T @ w).max(axis=0, initial=0.0)
        size = np.abs(scaled).max(axis=0, initial=0.0)
        return w * self.row[:, None], np.divide(missed, size, out=np.zeros_like(missed), where=size > 0)

    def _adjoint(self, scaled: Array) -> Array:
        found = self._once(scaled)
        for _ in range(2):
            found = found + self._once(scaled - self._core.T @ found)
        result = np.zeros((self.matrix.shape[0], scaled.shape[1]))
        result[self.main] = found
        return result

    @cached_property
    def null(self) -> Array:
        """Random vectors v (equations, k) of the left null space, `v' J = 0`."""
        rng, size = np.random.default_rng(0), self.matrix.shape[0]
        core, found = rng.standard_normal((len(self.main), 3)), np.zeros((size, 6))
        for _ in range(2):
            core = self._once(core, True)
            core /= np.abs(core).max(axis=0, initial=1e-300)
        found[self.main, :3] = np.where(np.abs(self._core.T @ core).max(axis=0, initial=0.0) <= 1e-9, core, 0.0)
        if len(self.main) < size:
            others = rng.standard_normal((size, 3))
            others[self.main] = 0.0
            others -= self._adjoint(self.matrix.T @ others)
            others /= np.abs(others).max(axis=0)
            if np.abs(self.matrix.T @ others).max(initial=0.0) > 1e-7:  # some do not follow from the main ones
                return Factors(self.matrix, np.ones(size, dtype=bool)).null * self.row[:, None]
            found[:, 3:] = others
        return np.asarray(found * self.row[:, None])


def _largest(matrix: sp.spmatrix, axis: int) -> Array:
    """The largest entry of every row (axis 1) or column (axis 0), by size; 1 for none."""
    found = np.asarray(abs(matrix).max(axis=axis).todense()).ravel()
    return np.where(found > 0, found, 1.0)
