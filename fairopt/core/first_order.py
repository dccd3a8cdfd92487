r"""Linearised optimality conditions on the active set of a solution: the Jacobian of Newton's method and derivatives.

The unknowns are changes :math:`d\delta_{ni} = dx_{ni} / x_n` of tasks of pairs, :math:`d\log l_g` of common levels,
:math:`d\log \lambda_{ir}` of prices, and :math:`d\xi_n` of prices of limits. With the share
:math:`\theta_{nir} = \lambda_{ir} d_{nr} / p_{ni}` of a row in the cost :math:`p_{ni} = \sum_r \lambda_{ir} d_{nr}` of
a task, and A the criterion's `stiffness`, max(alpha, 1) under alpha-fairness, the left-hand sides of the equations are,
for active rows, users whose tasks follow a level, users at their limits, and pairs whose cost equals the marginal
utility,

.. math::
    \sum_n \frac{x_n d_{nr}}{c_{ir}}\,d\delta_{ni}, \qquad \sum_i d\delta_{ni} - d\log l_{g(n)}, \qquad
    \sum_i d\delta_{ni}, \qquad
    slope \sum_i d\delta_{ni} + \frac1A \sum_r \theta_{nir}\,d\log \lambda_{ir} + d\xi_n

At finite alpha `slope` is the elasticity of marginal utility over A (alpha/A under alpha-fairness), only users at their
limits have an unknown :math:`\xi_n`, and no user follows a level. In max-min users between whom tasks can be exchanged
share a level, `slope` is 0 and A is 1, every level has its own prices, and every user has an unknown :math:`\xi_n`, as
the common cost of its pairs is arbitrary.

Weakly active constraints (a pair without tasks at least cost, an exhausted row with price zero, a limit attained at
price zero) have an equation but no unknown. Tasks have a derivative if the equations of weakly active constraints are
consistent with the others for every change of the data.
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
from .accuracy import ACCURATE, NEGLIGIBLE, SINGLE_ROUNDING
from .factors import TINY

#: Perturbation that makes J regular, relative to its largest entries: small enough for iterative refinement to remove
#: it, and larger than rounding errors, so that only null vectors are amplified by its inverse.
_EPSILON = ACCURATE
#: Largest entry of v^T J, for largest entries of v and J of 1, up to which v counts as a null vector
#: (`_IN_NULL_SPACE`); and largest entry of the difference between an equation and a combination of the main equations
#: up to which they imply the equation (`_IMPLIED`).
_IN_NULL_SPACE, _IMPLIED = NEGLIGIBLE, SINGLE_ROUNDING


class Prices(NamedTuple):
    """Log prices of whole capacities (rows,), and log costs of a task and mask of least-cost pairs, both (pairs,)."""

    log_rows: Array
    cost: Array
    pairs: Mask


@dataclass(frozen=True)
class Active:
    """Active set of a solution. A weakly active constraint is an equality whose multiplier is zero.

    Attributes
    ----------
    total, part : (users,), tasks; (pairs,), fractions of the user's tasks
    pairs, weak_pairs : (pairs,), masks of pairs with tasks, and of pairs without tasks at least cost
    rows, weak_rows : (rows,), masks of rows with a price, and of exhausted rows with price zero
    limits, weak_limits : (users,), masks of users whose limit binds, and whose limit is attained at price zero
    follows, level : (users,), mask of users whose tasks follow a level, and the index of that level
    excess : (users,), mask of users whose costs differ from the marginal utility by an unknown xi
    prices : one set of prices at finite alpha, one for each level in max-min
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
    """Subset of `pairs` (k,) with tasks, whose columns of the Jacobian span the columns of all `pairs`.

    On interchangeable servers every user may have tasks on all of them. If pairs are many more than equations, the two
    pairs of each user with most of its tasks and the R + 2 pairs of each server with the largest use are kept, with R
    resources: two pairs of a user let its tasks move between servers, and R pairs of a server span all changes of the
    use of its capacities.

    Parameters
    ----------
    pairs : (k,), indices of pairs
    part : (k,), fractions of the user's tasks
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


#: List of triplets: arrays of row indices, column indices and values, broadcast against each other.
Entries = list[tuple[Any, Any, Any]]


def listed(entries: Entries) -> tuple[Index, Index, Array]:
    """Row indices, column indices and values of all triplets without zero values, (entries,) each."""
    every = ([part.ravel() for part in np.broadcast_arrays(*each)] for each in entries)
    row, column, value = (np.concatenate(parts) for parts in zip(*every, strict=True))
    some = value != 0
    return row[some], column[some], value[some]


def assembled(entries: Entries, shape: tuple[int, int]) -> sp.csr_matrix:
    """Sparse matrix from triplets, where values at equal indices are added."""
    row, column, value = listed(entries)
    return sp.csr_matrix((value, (row, column)), shape=shape)


def matches(one: Index, other: Index) -> tuple[Index, Index]:
    """All indices i and j with `one[i] == other[j]`, where `other` is sorted."""
    first = np.searchsorted(other, one)
    count = np.searchsorted(other, one, "right") - first
    i = np.repeat(np.arange(len(one)), count)
    return i, np.arange(len(i)) - np.repeat(np.cumsum(count) - count - first, count)


class Equations:
    """Equations of an active set, in the order pairs, rows, limits and users, and their Jacobian.

    With `spanning` unknowns are limited to a subset of pairs whose columns span the columns of all pairs with tasks.
    """

    def __init__(self, active: Active, spanning: bool = True) -> None:
        self.active = active
        polytope, scale = active.polytope, active.criterion.stiffness
        finite = bool(np.isfinite(scale))
        self.scale, self.slope = (scale, active.criterion.alpha / scale) if finite else (1.0, 0.0)
        #: Pairs with tasks, and the subset that has unknowns.
        self.pairs = np.flatnonzero(active.pairs)
        self.independent = spanning_pairs(polytope, self.pairs, active.part[self.pairs]) if spanning else self.pairs
        self.user, self.server = polytope.pair_user, polytope.pair_server
        self.rows = np.concatenate([np.flatnonzero(active.rows), np.flatnonzero(active.weak_rows)])
        self.users = np.flatnonzero(active.follows)
        self.limits = np.concatenate([np.flatnonzero(active.limits), np.flatnonzero(active.weak_limits)])
        #: Pairs with an equation, for each set of prices.
        self.cheap = [np.flatnonzero(each.pairs) for each in active.prices]
        blocks = [*self.cheap, self.rows, self.limits, self.users]
        #: Number of equations; the indices of the equations of pairs, rows, limits and users follow.
        self.size = sum(len(each) for each in blocks)
        numbers = np.split(np.arange(self.size), np.cumsum([len(each) for each in blocks[:-1]]))
        *self.of_pairs, self.of_rows, self.of_limits, self.of_users = numbers
        prices = sum(
            np.count_nonzero(each.log_rows > -np.inf) + np.count_nonzero(active.excess) for each in active.prices
        )
        self.unknowns = len(self.independent) + int(active.level[self.users].max(initial=-1)) + 1 + int(prices)

    def uses(self, pairs: Index) -> tuple[Index, Array]:
        """Coefficients of the changes of tasks of `pairs` (k,) in the equations of rows.

        Returns the indices of the equations, -1 for rows without an equation, and the coefficients
        :math:`x_n d_{nr} / c_{ir}`, the fraction of a capacity that all tasks of the user would use, or 0 for rows
        without an equation; both arrays are (k, resources).
        """
        polytope = self.active.polytope
        equation = np.full(len(polytope.row_server), -1.0)
        equation[self.rows] = self.of_rows
        of = polytope.by_server(equation, -1.0)[self.server[pairs]].astype(np.intp)
        whole = self.active.total[self.user[pairs]] / polytope.gamma[pairs]
        return of, np.where(of >= 0, polytope.pair_use[pairs] * whole[:, None], 0.0)

    def shares(self, k: int) -> Array:
        r"""Shares :math:`\theta_{nir}` of rows in costs of the least-cost pairs, (pairs, resources), in price set k."""
        prices, pairs, polytope = self.active.prices[k], self.cheap[k], self.active.polytope
        price = polytope.by_server(prices.log_rows, -np.inf)[self.server[pairs]]
        whole = (prices.cost + np.log(polytope.gamma))[pairs]
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.log(polytope.pair_use[pairs]) + price - whole[:, None]))

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """Jacobian (equations, unknowns); unknowns are pairs, levels, and the prices and xi of each price set."""
        whole = assembled([*self.in_own_tasks(), *self.others()], (self.size, self.unknowns))
        return whole if self.slope else whole[:, np.unique(whole.indices)]  # without empty columns

    def _sums(self, equation: Index, user: Index, value: Array | float) -> tuple[Index, Index, Array]:
        """Entries `value` (k,) of equations (k,) in the columns of all pairs of users (k,)."""
        own, column = matches(user, self.user[self.independent])
        return equation[own], column, np.broadcast_to(value, len(user))[own]

    def in_own_tasks(self) -> Entries:
        """Derivatives of slacks of pairs in log user tasks, a dense block for each user; empty in max-min."""
        if not self.slope:
            return []
        pairs, rule = self.cheap[0], self.active.criterion.restrict(self.active.polytope.users)
        slope, user = rule.elasticity(self.active.total) / self.scale, self.user[pairs]
        return [self._sums(self.of_pairs[0], user, slope[user] if slope.ndim == 1 else slope[user, self.server[pairs]])]

    def others(self) -> Entries:
        """Entries of the Jacobian that `in_own_tasks` does not have."""
        active = self.active
        of_rows, use = self.uses(self.independent)
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
        """Mask (equations,) of strongly active conditions; a derivative exists if they imply the other equations."""
        active = self.active
        independent = np.zeros(len(active.pairs), dtype=bool)
        independent[self.independent] = True
        of_limits = np.arange(len(self.limits)) < active.limits.sum()
        of_rows = np.arange(len(self.rows)) < active.rows.sum()
        of_pairs = [independent[each] for each in self.cheap]
        return np.concatenate([*of_pairs, of_rows, of_limits, active.follows[self.users]])

    @cached_property
    def parts(self) -> tuple[Index, Index]:
        """Labels of the connected components of equations (equations,), and of all users of the cluster (users,)."""
        polytope = self.active.polytope
        part, users = parts(polytope), polytope.cluster.shape[0]
        of_rows = part[users + polytope.row_server[self.rows]]
        of_users = [part[polytope.users[each]] for each in (self.limits, self.users)]
        of_pairs = [part[users + self.server[each]] for each in self.cheap]
        return np.concatenate([*of_pairs, of_rows, *of_users]), part[:users]


def parts(polytope: Polytope) -> Index:
    """Connected components of the eligibility graph, (all users + servers,).

    Pairs without tasks are edges too: where equations have no solution, prices jump, and such a pair may get tasks.
    """
    users, servers = polytope.cluster.shape[:2]
    edges = polytope.users[polytope.pair_user], users + polytope.pair_server
    graph = sp.csr_matrix((np.ones(len(polytope.gamma)), edges), shape=(users + servers,) * 2)
    return np.asarray(csgraph.connected_components(graph, directed=False)[1])


class Factors:
    """Factors of a sparse matrix J (equations, unknowns) of any shape and rank: adjoints and left null vectors.

    :math:`J s = b` has a solution if and only if :math:`v^T b = 0` for all v with :math:`v^T J = 0`. An output
    :math:`g^T s` is the same for all solutions if and only if :math:`J^T w = g` has a solution, and is then
    :math:`w^T b`.

    Rows and columns are scaled to largest entries of 1. A square J is factored with random multiples of epsilon added
    to its diagonal; for any other J, and where that is singular, the matrix of the blocks epsilon I, J, J' and -epsilon
    I is factored, which is regular for every J. Iterative refinement removes the perturbation where a solution exists.
    Inverse iteration yields vectors of the left null space, which are amplified by 1/epsilon in each step.

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
        self._square = self._core.shape[0] == self._core.shape[1]
        try:
            self._factors = sparse_linalg.splu((self._perturbed() if self._square else self._augmented()).tocsc())
        except RuntimeError:  # SuperLU: in floating-point numbers the perturbed matrix can be singular, too
            self._square, self._factors = False, sparse_linalg.splu(self._augmented().tocsc())

    def _perturbed(self) -> sp.csr_matrix:
        """The square J with random multiples of epsilon added to its diagonal."""
        core, k = self._core.tocoo(), np.arange(self._core.shape[0])
        small = _EPSILON * np.random.default_rng(0).standard_normal(len(k))
        return assembled([(core.row, core.col, core.data), (k, k, small)], self._core.shape)

    def _augmented(self) -> sp.csr_matrix:
        """Matrix of the blocks epsilon I, J, J' and -epsilon I."""
        core, (rows, columns) = self._core.tocoo(), self._core.shape
        first, last = np.arange(rows), rows + np.arange(columns)
        entries: Entries = [(core.row, last[core.col], core.data), (last[core.col], core.row, core.data)]
        entries += [(first, first, _EPSILON), (last, last, -_EPSILON)]
        return assembled(entries, (rows + columns, rows + columns))

    def _once(self, given: Array, of_equations: bool = False) -> Array:
        """Approximate solution w (equations, k) of `J' w = given` (unknowns, k).

        With `of_equations` the result is a step of inverse iteration from `given` (equations, k), which amplifies the
        left null space by 1/epsilon.
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
        """Random vectors v (equations, 6) of the left null space, :math:`v^T J = 0`, or zero where it is trivial.

        The test :math:`v^T b = 0` of a right-hand side has the same result on a few random vectors as on a basis, with
        probability 1. The first three vectors are supported on the equations of `main`, and found by two steps of
        inverse iteration. In the last three, random multiples of the other equations are completed by adjoint
        solutions, which exist if the main equations imply the other equations; if not, all equations are factored
        together.
        """
        rng, size = np.random.default_rng(0), self.matrix.shape[0]
        core, found = rng.standard_normal((len(self.main), 3)), np.zeros((size, 2 * 3))
        for _ in range(2):
            core = self._once(core, True)
            core /= np.abs(core).max(axis=0, initial=TINY)
        found[self.main, :3] = np.where(
            np.abs(self._core.T @ core).max(axis=0, initial=0.0) <= _IN_NULL_SPACE, core, 0.0
        )
        if len(self.main) < size:
            others = rng.standard_normal((size, 3))
            others[self.main] = 0.0
            others -= self._adjoint(self.matrix.T @ others)
            others /= np.abs(others).max(axis=0)
            if np.abs(self.matrix.T @ others).max(initial=0.0) > _IMPLIED:
                return Factors(self.matrix, np.ones(size, dtype=bool)).null * self.row[:, None]
            found[:, 3:] = others
        return np.asarray(found * self.row[:, None])


def _largest(groups: Index, values: Array, count: int) -> Array:
    """Largest absolute value of each group, (count,); 1 for groups without a nonzero value."""
    largest = np.zeros(count)
    np.maximum.at(largest, groups, np.abs(values))
    return np.where(largest > 0, largest, 1.0)
