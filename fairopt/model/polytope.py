"""The feasible set of a cluster in normalised coordinates, for engines and certificates.

Coordinates are fractions `z = x[n,i]/gamma[n,i]` in [0, 1] at usable pairs, so that every capacity constraint is
`sum D z <= 1` with D in [0, 1], independent of units. Memory is proportional to the number of usable pairs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..base.libraries import sp
from ._arrays import Array, Index, row_pointers
from .cluster import Cluster

#: Number of usable pairs above which linear programs over all of them are too slow.
LARGE = 300_000


class Polytope:
    """Feasible set `{z >= 0: use @ z <= 1, tasks @ z <= limit}` of the users that can run tasks.

    Attributes
    ----------
    users : indices of users that can run tasks; arrays (users,) of this class are in this order
    pair_user, pair_server : (pairs,), indices into `users` and the cluster's servers
    gamma : (pairs,), monopoly tasks
    pair_use : (pairs, resources), `D[n,i,r]`
    row_server, row_resource : (rows,), the (server, resource) of each row, which some pair uses
    limit : (users,), task limits (may be infinite)
    """

    def __init__(self, cluster: Cluster, limits: Array) -> None:
        runnable = cluster.usable.any(axis=1) & (limits > 0)
        self.cluster = cluster
        self.users: Index = np.flatnonzero(runnable)
        self.limit: Array = limits[self.users]
        self.pair_user, self.pair_server = np.nonzero(cluster.usable[self.users])
        self._pairs = self.users[self.pair_user], self.pair_server
        self.gamma: Array = cluster.gamma[self._pairs]
        servers, resources = cluster.capacity.shape
        self.pair_use: Array = np.empty((len(self.gamma), resources))
        touched = np.zeros((servers, resources), dtype=bool)
        for r in range(resources):  # by resource, as gathering rows of a (pairs, resources) array is slow
            demand, capacity = cluster.demand[self.users, r], cluster.capacity[:, r]
            use = self.gamma * demand[self.pair_user] / np.where(capacity > 0, capacity, 1.0)[self.pair_server]
            self.pair_use[:, r] = use
            touched[:, r] = np.bincount(self.pair_server, use > 0, servers) > 0
        self._rows = self.row_server, self.row_resource = np.nonzero(touched)

    @cached_property
    def start(self) -> Index:
        """Row pointers, (users + 1,): the pairs of user n are `start[n]` to `start[n + 1]`."""
        return row_pointers(self.pair_user, len(self.users))

    @cached_property
    def use(self) -> sp.csr_matrix:
        """Sparse matrix `D[n,i,r]`, (rows, pairs)."""
        column, resource = np.nonzero(self.pair_use)
        row_of = np.zeros(self.cluster.capacity.shape, dtype=np.intp)
        row_of[self._rows] = np.arange(len(self.row_server))
        row = row_of[self.pair_server[column], resource]
        shape = (len(self.row_server), len(self.gamma))
        return sp.csr_matrix((self.pair_use[column, resource], (row, column)), shape=shape)

    @cached_property
    def tasks(self) -> sp.csr_matrix:
        """Sparse matrix of tasks per fraction, (users, pairs)."""
        pairs = np.arange(len(self.gamma))
        return sp.csr_matrix((self.gamma, (self.pair_user, pairs)), shape=(len(self.users), len(pairs)))

    @cached_property
    def reach(self) -> Array:
        r"""Upper bounds on tasks, :math:`\min(\sum_i \gamma_{ni}, q_n)`, (users,)."""
        return np.asarray(np.minimum(self._monopoly, self.limit))

    @cached_property
    def _monopoly(self) -> Array:
        r"""Monopoly tasks on all servers, :math:`\sum_i \gamma_{ni}`, (users,)."""
        return np.asarray(np.bincount(self.pair_user, self.gamma, len(self.users)), dtype=float)

    @property
    def limited(self) -> Index:
        """Indices of users with a limit that can be active."""
        return np.flatnonzero(self._monopoly > self.limit)

    @cached_property
    def use_of_limit(self) -> sp.csr_matrix:
        """Sparse matrix of task limits, (limited users, pairs), normalised such that `@ z <= 1`."""
        rows = self.limited
        return sp.csr_matrix(sp.diags(1 / self.limit[rows]) @ self.tasks[rows])

    def named(self, rows: Index) -> list[str]:
        """Names of rows, such as `'cpu' of 'rack-1'`."""
        cluster = self.cluster
        return [f"{cluster.resources[self.row_resource[k]]!r} of {cluster.servers[self.row_server[k]]!r}" for k in rows]

    def fractions(self, tasks: Array) -> Array:
        """Fractions z, (pairs,), of tasks (all users, servers)."""
        return np.asarray(tasks[self._pairs] / self.gamma)

    def user_tasks(self, fractions: Array) -> Array:
        """Tasks of each user, (users,), from fractions (pairs,)."""
        return np.asarray(np.bincount(self.pair_user, self.gamma * fractions, len(self.users)), dtype=float)

    def allocation(self, fractions: Array) -> Array:
        """Tasks x, (all users, servers), from fractions (pairs,)."""
        result = np.zeros(self.cluster.shape[:2])
        result[self._pairs] = fractions * self.gamma
        return result

    def inside(self, fractions: Array) -> Array:
        """Feasible fractions, (pairs,): clipped at 0, and each pair divided by its largest overuse.

        It corrects rounding errors of engines; certificates are computed afterwards.
        """
        amount = np.maximum(fractions, 0.0)
        part = 1 / np.maximum(self.user_tasks(amount) / self.limit, 1.0)[self.pair_user]
        for use in self.pair_use.T:
            used = np.bincount(self.pair_server, use * amount, self.cluster.shape[1])
            np.minimum(part, (1 / np.maximum(used, 1.0))[self.pair_server], where=use > 0, out=part)
        return np.asarray(amount * part)

    def filled(self, tasks: Array, tol: float) -> Array | None:
        """Tasks raised by the rounding error of sums, so that exhausted rows have no slack in any order of summation.

        None where that error is below `tol` of the smallest tasks, so that it does not matter.
        """
        rounding = (np.bincount(self.pair_server).max() + 4) * np.finfo(float).eps
        part = (tasks.sum(axis=1)[self.users] / self.reach).min()
        if tol * part * self.pair_use.min(initial=1.0, where=self.pair_use > 0) > rounding:
            return None
        factor = np.ones(tasks.shape[1])
        factor[self.row_server[np.abs(1 - self.used(tasks)) <= rounding]] += 3 * rounding
        return np.asarray(tasks * factor)

    @cached_property
    def capacity(self) -> Array:
        """Capacities of rows, (rows,)."""
        return np.asarray(self.cluster.capacity[self._rows])

    def by_server(self, rows: Array, unused: float = 0.0) -> Array:
        """Values (rows,) as (servers, resources), with `unused` where no pair uses the resource."""
        result = np.full(self.cluster.capacity.shape, unused)
        result[self._rows] = rows
        return result

    def used(self, tasks: Array) -> Array:
        """Used fraction of each row's capacity, (rows,), by tasks (all users, servers)."""
        return np.asarray((tasks.T @ self.cluster.demand)[self._rows] / self.capacity)

    def price_per_task(self, row_prices: Array) -> Array:
        r"""Cost of a task, :math:`\sum_r \lambda_{ir} d_{nr}`, (pairs,), from prices of whole capacities (rows,)."""
        prices = self.by_server(row_prices)
        total = np.zeros(len(self.gamma))
        for r in range(prices.shape[1]):
            total += self.pair_use[:, r] * prices[self.pair_server, r]
        return np.asarray(total / self.gamma)

    def row_prices(self, prices: Array) -> Array:
        """Prices of whole capacities, (rows,), from prices per unit (servers, resources)."""
        return np.asarray(prices[self._rows] * self.capacity)

    def unit_prices(self, row_prices: Array) -> Array:
        """Prices per resource unit, (servers, resources), from prices of whole capacities (rows,)."""
        return self.by_server(row_prices / self.capacity)

    def log_row_prices(self, log_prices: Array) -> Array:
        """Log prices of whole capacities, (rows,), from those per resource unit (servers, resources)."""
        return np.asarray(log_prices[self._rows] + np.log(self.capacity))

    def log_unit_prices(self, log_rows: Array) -> Array:
        """Log prices per resource unit, (servers, resources), -inf off the rows, from those of whole capacities."""
        return self.by_server(log_rows - np.log(self.capacity), -np.inf)
