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
from typing import Any, NamedTuple

import numpy as np

from ..base.libraries import csgraph, sp, sparse_linalg
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


#: Rows, columns and values, of any shapes that go together.
Entries = list[tuple[Any, Any, Any]]


def assembled(entries: Entries, shape: tuple[int, int]) -> sp.csr_matrix:
    """The matrix of these entries, without zeros; they add up where they meet."""
    every = ([part.ravel() for part in np.broadcast_arrays(*each)] for each in entries)
    row, column, value = (np.concatenate(parts) for parts in zip(*every, strict=True))
    some = value != 0
    return sp.csr_matrix((value[some], (row[some], column[some])), shape=shape)


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

    def uses(self, pairs: Index) -> tuple[Index, Array]:
        """Equations of the rows of some pairs, and use by all of a user's tasks, 0 of others, (pairs, resources)."""
        polytope = self.active.polytope
        equation = np.full(len(polytope.row_server), -1.0)
        equation[self.rows] = self.of_rows
        of = polytope.by_server(equation, -1.0)[self.server[pairs]].astype(np.intp)
        whole = self.active.total[self.user[pairs]] / polytope.gamma[pairs]
        return of, np.where(of >= 0, polytope.pair_use[pairs] * whole[:, None], 0.0)

    def shares(self, k: int) -> Array:
        """(pairs of set k, resources), parts of resources in what pairs pay; 0 of those without a price."""
        prices, pairs, polytope = self.active.prices[k], self.cheap[k], self.active.polytope
        price = polytope.by_server(prices.log_rows, -np.inf)[self.server[pairs]]
        whole = (prices.cost + np.log(polytope.gamma))[pairs]
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.log(polytope.pair_use[pairs]) + price - whole[:, None]))

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """(equations, unknowns): pairs, levels, and of each set prices and excess, in this order."""
        active, users = self.active, len(self.active.total)
        # Tasks of one's own pairs add up in all equations but those of rows.
        equation = np.concatenate([*self.of_pairs, self.of_limits, self.of_users])
        who = np.concatenate([*(self.user[each] for each in self.cheap), self.limits, self.users])
        own = (summed(who, users).T @ summed(self.user[self.standing], users)).tocoo()
        slope = np.where(np.arange(len(who)) < sum(map(len, self.cheap)), self.slope, 1.0)
        of_rows, use = self.uses(self.standing)
        level = active.level[self.users]
        entries: Entries = [
            (equation[own.row], own.col, slope[own.row]),
            (of_rows, np.arange(len(use))[:, None], use),
            (self.of_users, len(use) + level, -1.0),
        ]
        width = len(use) + int(level.max(initial=-1)) + 1
        for k, (pairs, mine) in enumerate(zip(self.cheap, self.of_pairs, strict=True)):
            priced, user = active.prices[k].log_rows > -np.inf, self.user[pairs]
            row = active.polytope.by_server(np.cumsum(priced, dtype=np.float64) - 1)[self.server[pairs]].astype(np.intp)
            entries.append((mine[:, None], width + row, self.shares(k) / self.scale))
            width += int(priced.sum())
            entries.append((mine, width + np.cumsum(active.excess)[user] - 1, active.excess[user] * 1.0))
            width += int(active.excess.sum())
        whole = assembled(entries, (self.size, width))
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
        given = matrix.tocoo()
        self.row = 1 / _largest(given.row, given.data, matrix.shape[0])
        half = given.data * self.row[given.row]
        self.column = 1 / _largest(given.col, half, matrix.shape[1])
        self.matrix = sp.csr_matrix((half * self.column[given.col], (given.row, given.col)), shape=matrix.shape)
        self.main = np.flatnonzero(main)
        self._core = self.matrix[self.main]
        rows, columns = self._core.shape
        epsilon, self._square, core = 1e-11, rows == columns, self._core.tocoo()
        first, last = np.arange(rows), rows + np.arange(columns)
        if self._square:
            small = epsilon * np.random.default_rng(0).standard_normal(rows)
            whole = assembled([(core.row, core.col, core.data), (first, first, small)], (rows, rows))
        else:
            entries: Entries = [(core.row, last[core.col], core.data), (last[core.col], core.row, core.data)]
            entries += [(first, first, epsilon), (last, last, -epsilon)]
            whole = assembled(entries, (rows + columns, rows + columns))
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


def _largest(groups: Index, values: Array, count: int) -> Array:
    """(count,): the largest value of a group, by size; 1 for none."""
    found = np.zeros(count)
    np.maximum.at(found, groups, np.abs(values))
    return np.where(found > 0, found, 1.0)
