"""A program as a market: servers ask prices of whole capacities, users buy tasks where these are cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....model.problem import Problem
from ...linalg import _pairs, structured
from ...linalg.structured import FactorOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Market:
    """The arrays of a program.

    Attributes
    ----------
    start, user, server : row pointers of users' pairs, (users + 1,), and the user and server of each pair
    vectors : (pairs, resources), the parts of capacities that a task takes
    row : (servers, resources), where anybody needs what there is
    log_marginal : (users,), the log of what the first task is worth, prices being about 1
    log_limit : (users,), of the most tasks, infinite where no limit can bind
    """

    start: Index
    user: Index
    server: Index
    vectors: Array
    row: NDArray[np.bool_]
    log_marginal: Array
    alpha: float
    log_limit: Array

    @classmethod
    def of(cls, problem: Problem) -> Market:
        """From a problem with an alpha-fair criterion."""
        polytope, criterion = problem.polytope, problem.criterion
        row = np.zeros(polytope.cluster.capacity.shape, dtype=bool)
        row[polytope.row_server, polytope.row_resource] = True
        limit = np.full(len(polytope.users), np.inf)
        limit[polytope.limited] = np.log(polytope.limit[polytope.limited])
        return cls(
            polytope.start,
            polytope.pair_user,
            polytope.pair_server,
            polytope.pair_use / polytope.gamma[:, None],
            row,
            criterion.restrict(polytope.users).log_marginal(np.ones(len(limit))),
            criterion.alpha,
            limit,
        )

    def cost(self, price: Array) -> Array:
        """What a task costs, (pairs,)."""
        result = np.empty(len(self.server))
        _pairs.cost(self.server, self.vectors, price, result)
        return result

    def used(self, tasks: Array) -> Array:
        """The part of every capacity in use, (servers, resources)."""
        result = np.zeros(self.row.shape)
        _pairs.used(self.server, self.vectors, tasks, result)
        return result

    def summed(self, pairs: Array) -> Array:
        """Sums over each user's pairs, (users,)."""
        return np.asarray(np.add.reduceat(pairs, self.start[:-1]))

    def cheapest(self, cost: Array) -> Array:
        """The least cost of each user's pairs, (users,)."""
        return np.asarray(np.minimum.reduceat(cost, self.start[:-1]))

    def demand(self, user_price: Array, width: float) -> tuple[Array, Array]:
        """The tasks that users buy at what they pay, (users,), and the parts of 1/alpha that their elasticities are."""
        from . import _demand

        tasks, part = np.empty(len(user_price)), np.empty(len(user_price))
        _demand.demands(self.log_marginal, self.alpha, self.log_limit, width, user_price, tasks, part)
        return tasks, part

    def stiffness(self, tasks: Array, part: Array, user_price: Array) -> Array:
        """By how much demand falls with pay, (users,)."""
        return np.where(user_price > 0, tasks * part / self.alpha / np.where(user_price > 0, user_price, 1.0), 0.0)

    def factors(
        self, weight: Array, extra: Array, diagonal: Array, options: FactorOptions
    ) -> structured.SymmetricFactors | structured.ServersFirst:
        """The matrix of prices: `weight` (pairs,) are slopes of tasks in slacks, `extra` (users,) of demand in pay."""
        diagonal = np.where(self.row, diagonal, 1.0)
        return structured.factor_symmetric(
            self.start, self.server, weight, self.vectors, extra, diagonal, options=options
        )

    def solved(self, factors: structured.SymmetricFactors | structured.ServersFirst, rhs: Array) -> Array:
        """Changes of prices, (servers, resources)."""
        return np.where(self.row, factors.solve(np.where(self.row, rhs, 0.0).ravel()).reshape(self.row.shape), 0.0)

    def per_price(self, values: Array, price: Array) -> Array:
        """Values over prices where there are prices, 0 elsewhere."""
        return np.divide(values, price, out=np.zeros(price.shape), where=self.row)
