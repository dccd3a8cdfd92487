r"""Linearised optimality conditions on the active set of a solution: the Jacobian of Newton's method and derivatives.

The unknowns are changes `da` of the tasks of pairs relative to their user's tasks, `dt` of log levels, `db` of log
prices of whole capacities, and `de` of prices of limits. With costs `p_ni = sum_r lambda_ir d_nr` and the share of a
row in them, the left-hand sides are

    rows      sum_n x_n d_nr/c_ir da_ni                     active rows
    users     sum_i da_ni - dt_g(n)                         users whose tasks follow a level
    limits    sum_i da_ni                                   users at their limits
    pairs     slope sum_i da_ni + (sum_r share_nir db_ir)/A + de_n    pairs whose cost equals the marginal utility

At finite alpha `slope` is alpha/A, `A = max(alpha, 1)`, only users at their limits have an `e`, and no user follows a
level. In max-min users who can take tasks from each other share a level, slope is 0, every level has its own prices,
and every user has an `e`, as the common cost of its pairs is arbitrary.
Weakly active constraints (a pair without tasks of least cost, an exhausted row without a price, a limit just reached)
have an equation but no unknown: tasks have a derivative where these equations are consistent as data change.
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
from .factors import TINY


class Prices(NamedTuple):
    """Prices of one level: log prices of whole capacities (rows,), log costs of a task (pairs,), least-cost pairs."""

    log_rows: Array
    cost: Array
    pairs: Mask


@dataclass(frozen=True)
class Active:
    """Active set of a solution; weakly active: an equality whose multiplier is zero.

    Attributes
    ----------
    total, part : (users,), tasks; (pairs,), parts of them
    pairs, weak_pairs : (pairs,), with tasks; without tasks, at least cost
    rows, weak_rows : (rows,), with a price; exhausted, without a price
    limits, weak_limits : (users,), whose limit binds; whose limit is attained with price zero
    follows, level : (users,), whose tasks follow a level, and its number
    excess : (users,), whose costs exceed the marginal utility by an unknown amount, the same for all of their pairs
    prices : one set at finite alpha, one for each level in max-min
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


def spanning_pairs(polytope: Polytope, pairs: Index, part: Array) -> Index:
    """Subset of pairs with tasks (k,) whose columns span the same changes; `part` (k,) are fractions of user tasks.

    On interchangeable servers every user may have tasks on all of them: the two largest parts of a user and the M + 2
    largest loads of a server, with M resources, then suffice.
    """
    if len(pairs) <= 3 * (len(polytope.users) + polytope.cluster.capacity.size):
        return pairs
    use = polytope.pair_use[pairs].max(axis=1) / polytope.gamma[pairs] * part
    server = polytope.pair_server[pairs]
    selected = _largest_of(polytope.pair_user[pairs], part, 2) | _largest_of(
        server, use, polytope.pair_use.shape[1] + 2
    )
    return pairs[selected]


def _largest_of(group: Index, size: Array, count: int) -> Mask:
    """True for the `count` largest entries of every group, (k,)."""
    order = np.lexsort((-size, group))
    ordered = group[order]
    result = np.empty(len(group), dtype=bool)
    result[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered) < count
    return result


def summed(groups: Index, count: int) -> sp.csr_matrix:
    """Matrix (count, k) that sums values (k,) over groups."""
    return sp.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(count, len(groups)))


#: Triplets of rows, columns and values, broadcast against each other.
Entries = list[tuple[Any, Any, Any]]


def listed(entries: Entries) -> tuple[Index, Index, Array]:
    """Rows, columns and values of all triplets, without zeros, (entries,) each."""
    every = ([part.ravel() for part in np.broadcast_arrays(*each)] for each in entries)
    row, column, value = (np.concatenate(parts) for parts in zip(*every, strict=True))
    some = value != 0
    return row[some], column[some], value[some]


def assembled(entries: Entries, shape: tuple[int, int]) -> sp.csr_matrix:
    """Sparse matrix of triplets; duplicates are added, zeros dropped."""
    row, column, value = listed(entries)
    return sp.csr_matrix((value, (row, column)), shape=shape)


def matches(one: Index, other: Index) -> tuple[Index, Index]:
    """Indices i and j of all `one[i] == other[j]`, where `other` is sorted."""
    first = np.searchsorted(other, one)
    count = np.searchsorted(other, one, "right") - first
    i = np.repeat(np.arange(len(one)), count)
    return i, np.arange(len(i)) - np.repeat(np.cumsum(count) - count - first, count)


class Equations:
    """Equations of an active set, in the order pairs, rows, limits and users, and their Jacobian.

    With `spanning` only pairs whose columns span the changes of all pairs with tasks have unknowns.
    """

    def __init__(self, active: Active, spanning: bool = True) -> None:
        self.active = active
        polytope, scale = active.polytope, active.criterion.stiffness
        finite = bool(np.isfinite(scale))
        self.scale, self.slope = (scale, active.criterion.alpha / scale) if finite else (1.0, 0.0)
        #: Pairs with tasks, and the subset that has unknowns.
        self.pairs = np.flatnonzero(active.pairs)
        self.standing = spanning_pairs(polytope, self.pairs, active.part[self.pairs]) if spanning else self.pairs
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.rows = np.concatenate([np.flatnonzero(active.rows), np.flatnonzero(active.weak_rows)])
        self.users = np.flatnonzero(active.follows)
        self.limits = np.concatenate([np.flatnonzero(active.limits), np.flatnonzero(active.weak_limits)])
        #: Pairs with an equation, for each set of prices.
        self.cheap = [np.flatnonzero(each.pairs) for each in active.prices]
        blocks = [*self.cheap, self.rows, self.limits, self.users]
        #: Number of equations, and their numbers by kind.
        self.size = sum(len(each) for each in blocks)
        numbers = np.split(np.arange(self.size), np.cumsum([len(each) for each in blocks[:-1]]))
        *self.of_pairs, self.of_rows, self.of_limits, self.of_users = numbers
        prices = sum(
            np.count_nonzero(each.log_rows > -np.inf) + np.count_nonzero(active.excess) for each in active.prices
        )
        self.unknowns = int(len(self.standing) + int(active.level[self.users].max(initial=-1)) + 1 + prices)

    def uses(self, pairs: Index) -> tuple[Index, Array]:
        """Row equations of some pairs, and the use if all user tasks ran there, 0 without one, (pairs, resources)."""
        polytope = self.active.polytope
        equation = np.full(len(polytope.row_server), -1.0)
        equation[self.rows] = self.of_rows
        of = polytope.by_server(equation, -1.0)[self.server[pairs]].astype(np.intp)
        whole = self.active.total[self.user[pairs]] / polytope.gamma[pairs]
        return of, np.where(of >= 0, polytope.pair_use[pairs] * whole[:, None], 0.0)

    def shares(self, k: int) -> Array:
        """Shares of resources in the costs of pairs, (pairs of set k, resources); 0 for rows without a price."""
        prices, pairs, polytope = self.active.prices[k], self.cheap[k], self.active.polytope
        price = polytope.by_server(prices.log_rows, -np.inf)[self.server[pairs]]
        whole = (prices.cost + np.log(polytope.gamma))[pairs]
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.log(polytope.pair_use[pairs]) + price - whole[:, None]))

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """Jacobian (equations, unknowns), of pairs, levels, and for each set prices and excess, in this order."""
        whole = assembled([*self.in_own_tasks(), *self.others()], (self.size, self.unknowns))
        return whole if self.slope else whole[:, np.unique(whole.indices)]  # without empty columns

    def _sums(self, equation: Index, user: Index, value: Array | float) -> tuple[Index, Index, Array]:
        """Entries of equations in which the tasks of a user are summed over its pairs."""
        own, column = matches(user, self.user[self.standing])
        return equation[own], column, np.broadcast_to(value, len(user))[own]

    def in_own_tasks(self) -> Entries:
        """Derivatives of slacks of pairs in the log tasks of users at finite alpha: a dense block for each user."""
        if not self.slope:
            return []
        pairs, rule = self.cheap[0], self.active.criterion.restrict(self.active.polytope.users)
        slope, user = rule.elasticity(self.active.total) / self.scale, self.user[pairs]
        return [self._sums(self.of_pairs[0], user, slope[user] if slope.ndim == 1 else slope[user, self.server[pairs]])]

    def others(self) -> Entries:
        """All other derivatives."""
        active = self.active
        of_rows, use = self.uses(self.standing)
        level = active.level[self.users]
        entries: Entries = [
            self._sums(self.of_limits, self.limits, 1.0),
            self._sums(self.of_users, self.users, 1.0),
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
        return entries

    @cached_property
    def main(self) -> Mask:
        """Mask (equations,) of strongly active conditions; a derivative exists if the others are implied by them."""
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
    """Connected components of the eligibility graph, (all users + servers,).

    Pairs without tasks connect as well: where equations have no solution, prices jump, and such a pair may get tasks.
    """
    users, servers = polytope.cluster.shape[:2]
    edges = polytope.users[polytope.pair_user], users + polytope.pair_server
    graph = sp.csr_matrix((np.ones(len(polytope.gamma)), edges), shape=(users + servers,) * 2)
    return np.asarray(csgraph.connected_components(graph, directed=False)[1])


class Factors:
    """Factors of a sparse matrix J (equations, unknowns) of any shape and rank: adjoints and left null vectors.

        J s = b  has a solution  if and only if  v' b = 0 for all v with v' J = 0,
        g' s  is the same for all solutions  if and only if  J' w = g  has a solution; then  g' s = w' b.

    Rows and columns are scaled to largest entries of 1. A square J is factored with random multiples of epsilon added
    to its diagonal, any other as `[epsilon, J; J', -epsilon]`, which is regular for every J. Iterative refinement
    removes the perturbation where a solution exists. Inverse iteration yields vectors of the left null space, which
    grow by 1/epsilon a step.

    Parameters
    ----------
    main : (equations,), mask of the equations that are factored; the others are only tested for consistency

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
        """Approximate solution of `J' w = given` (unknowns, k).

        With `of_equations` one step of inverse iteration from `given` (equations, k), which amplifies the left null
        space by 1/epsilon.
        """
        rows, columns = self._core.shape
        if self._square:
            return np.asarray(self._factors.solve(given, "T"))
        none = np.zeros((columns if of_equations else rows, given.shape[1]))
        return np.asarray(self._factors.solve(np.concatenate([given, none] if of_equations else [none, given]))[:rows])

    def adjoint(self, given: Array) -> tuple[Array, Array]:
        """Approximate solution w (equations, k) of `J' w = given` (unknowns, k), and relative residuals (k,)."""
        scaled = given * self.column[:, None]
        w = self._adjoint(scaled)
        residual = np.abs(scaled - self.matrix.T @ w).max(axis=0, initial=0.0)
        size = np.abs(scaled).max(axis=0, initial=0.0)
        return w * self.row[:, None], np.divide(residual, size, out=np.zeros_like(residual), where=size > 0)

    def _adjoint(self, scaled: Array) -> Array:
        """Solution of the scaled adjoint equations by iterative refinement, (equations, k); 0 outside `main`."""
        solution = self._once(scaled)
        for _ in range(2):
            solution = solution + self._once(scaled - self._core.T @ solution)
        result = np.zeros((self.matrix.shape[0], scaled.shape[1]))
        result[self.main] = solution
        return result

    @cached_property
    def null(self) -> Array:
        """Random vectors v (equations, k) of the left null space, `v' J = 0`."""
        rng, size = np.random.default_rng(0), self.matrix.shape[0]
        core, found = rng.standard_normal((len(self.main), 3)), np.zeros((size, 2 * 3))
        for _ in range(2):
            core = self._once(core, True)
            core /= np.abs(core).max(axis=0, initial=TINY)
        found[self.main, :3] = np.where(np.abs(self._core.T @ core).max(axis=0, initial=0.0) <= 1e-9, core, 0.0)
        if len(self.main) < size:
            others = rng.standard_normal((size, 3))
            others[self.main] = 0.0
            others -= self._adjoint(self.matrix.T @ others)
            others /= np.abs(others).max(axis=0)
            if np.abs(self.matrix.T @ others).max(initial=0.0) > 1e-7:  # some are not implied by the main ones
                return Factors(self.matrix, np.ones(size, dtype=bool)).null * self.row[:, None]
            found[:, 3:] = others
        return np.asarray(found * self.row[:, None])


def _largest(groups: Index, values: Array, count: int) -> Array:
    """Largest absolute value of each group, (count,); 1 for an empty or zero one."""
    largest = np.zeros(count)
    np.maximum.at(largest, groups, np.abs(values))
    return np.where(largest > 0, largest, 1.0)
