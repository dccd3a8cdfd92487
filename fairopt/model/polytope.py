"""The feasible set of a cluster in normalised coordinates, for engines and certificates.

Coordinates are fractions `z = x[n,i]/gamma[n,i]` in [0, 1] at usable pairs, so that every capacity constraint is
`sum D z <= 1` with D in [0, 1], independent of units. Memory is proportional to the number of usable pairs.

Arrays (users, servers) are in tasks. Values of pairs and of users are in work, which equals tasks if no rates are
given: engines and criteria use work only. A task limit bounds the work of a user whose rates are equal; if rates differ
and the limit can be active, it is a separate constraint (`timed`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..base.libraries import sp
from ._arrays import Array, Index, row_pointers
from .cluster import Cluster

#: Number of usable pairs above which linear programs over all of them are too slow.
LARGE = 300_000
#: Ratio of a residual to the tolerance below which rounding errors may be its cause.
_BY_ROUNDING = 100


class Polytope:
    """Feasible set `{z >= 0: use @ z <= 1, tasks @ z <= limit}` of the users that can run tasks.

    Attributes
    ----------
    users : indices of users that can run tasks; arrays (users,) of this class are in this order
    pair_user, pair_server : (pairs,), indices into `users` and the cluster's servers
    gamma : (pairs,), monopoly work: tasks times rate
    rate : (pairs,), work of a task, or None if all rates are 1
    pair_use : (pairs, resources), `D[n,i,r]`
    row_server, row_resource : (rows,), the (server, resource) of each row, which some pair uses
    quota : (users,), task limits (may be infinite)
    limit : (users,), bounds on work: task limits times the user's largest rate
    """

    rate: Array | None = None

    def __init__(self, cluster: Cluster, limits: Array) -> None:
        runnable = cluster.usable.any(axis=1) & (limits > 0)
        self.cluster = cluster
        self.users: Index = np.flatnonzero(runnable)
        self.quota: Array = limits[self.users]
        self.limit = self.quota
        self.pair_user, self.pair_server = np.nonzero(cluster.usable[self.users])
        self._pairs = self.users[self.pair_user], self.pair_server
        self.gamma: Array = cluster.gamma[self._pairs]
        servers, resources = cluster.capacity.shape
        self.pair_use: Array = np.empty((len(self.gamma), resources))
        touched = np.zeros((servers, resources), dtype=bool)
        for r in range(resources):  # resource by resource, as gathering rows of a (pairs, resources) array is slow
            demand, capacity = cluster.demand[self.users, r], cluster.capacity[:, r]
            use = self.gamma * demand[self.pair_user] / np.where(capacity > 0, capacity, 1.0)[self.pair_server]
            self.pair_use[:, r] = use
            touched[:, r] = np.bincount(self.pair_server, use > 0, servers) > 0
        self._rows = self.row_server, self.row_resource = np.nonzero(touched)
        if cluster.rated:
            self.rate = cluster.rate[self._pairs]
            self.gamma = self.gamma * self.rate
            self.limit = self.quota * np.maximum.reduceat(self.rate, self.start[:-1]) if len(self.users) else self.quota

    @cached_property
    def start(self) -> Index:
        """Row pointers, (users + 1,): the pairs of user n are `start[n]` to `start[n + 1] - 1`."""
        return row_pointers(self.pair_user, len(self.users))

    @cached_property
    def use(self) -> sp.csr_matrix:
        """Sparse matrix `D[n,i,r]`, (rows, pairs)."""
        return self.use_by(slice(None))

    def use_by(self, pairs: Index | slice) -> sp.csr_matrix:
        """Columns of `use` for these pairs, without the matrix of all."""
        of_pair = self.pair_use[pairs]
        column, resource = np.nonzero(of_pair)
        row_of = np.zeros(self.cluster.capacity.shape, dtype=np.intp)
        row_of[self._rows] = np.arange(len(self.row_server))
        row = row_of[self.pair_server[pairs][column], resource]
        return sp.csr_matrix((of_pair[column, resource], (row, column)), shape=(len(self.row_server), len(of_pair)))

    @cached_property
    def tasks(self) -> sp.csr_matrix:
        """Sparse matrix of work per fraction, (users, pairs)."""
        pairs = np.arange(len(self.gamma))
        return sp.csr_matrix((self.gamma, (self.pair_user, pairs)), shape=(len(self.users), len(pairs)))

    @property
    def instances(self) -> Array:
        """Tasks per fraction, (pairs,)."""
        return self.gamma if self.rate is None else self.gamma / self.rate

    @property
    def per_work(self) -> Array | None:
        """Tasks per unit of work, (pairs,), or None if all rates are 1."""
        return None if self.rate is None else 1 / self.rate

    @cached_property
    def reach(self) -> Array:
        r"""Upper bounds on work, the least of :math:`\sum_i \gamma_{ni}` and `limit`, (users,)."""
        return np.asarray(np.minimum(self._monopoly, self.limit))

    @cached_property
    def _monopoly(self) -> Array:
        r"""Monopoly work on all servers, :math:`\sum_i \gamma_{ni}`, (users,)."""
        return self._sums(self.gamma)

    @property
    def limited(self) -> Index:
        """Indices of users with a limit that can be active."""
        if self.rate is None:
            return np.flatnonzero(self._monopoly > self.limit)
        return np.flatnonzero(self._sums(self.instances) > self.quota)

    @cached_property
    def timed(self) -> Index:
        """Indices of users with different rates and a limit that can be active, which thus does not bound work."""
        if self.rate is None or not len(self.limited):
            return np.zeros(0, dtype=np.intp)
        least = np.minimum.reduceat(self.rate, self.start[:-1])
        return self.limited[(self.limit > self.quota * least)[self.limited]]

    def _sums(self, of_pairs: Array) -> Array:
        """Sums over each user's pairs, (users,)."""
        return np.asarray(np.bincount(self.pair_user, of_pairs, len(self.users)), dtype=float)

    @cached_property
    def use_of_limit(self) -> sp.csr_matrix:
        """Sparse matrix of task limits, (limited users, pairs), normalised such that `@ z <= 1`."""
        rows, tasks = self.limited, self.tasks
        if self.rate is not None:
            tasks = sp.csr_matrix((self.instances, tasks.indices, tasks.indptr), tasks.shape)
        return sp.csr_matrix(sp.diags(1 / self.quota[rows]) @ tasks[rows])

    def named(self, rows: Index) -> list[str]:
        """Names of rows, such as `'cpu' of 'rack-1'`."""
        cluster = self.cluster
        return [f"{cluster.resources[self.row_resource[k]]!r} of {cluster.servers[self.row_server[k]]!r}" for k in rows]

    def fractions(self, tasks: Array) -> Array:
        """Fractions z, (pairs,), of tasks (all users, servers)."""
        return np.asarray(tasks[self._pairs] / self.instances)

    def work(self, tasks: Array) -> Array:
        """Work of pairs, (pairs,), by tasks (all users, servers)."""
        return np.asarray(tasks[self._pairs] if self.rate is None else tasks[self._pairs] * self.rate)

    def user_tasks(self, fractions: Array) -> Array:
        """Work of each user, (users,), from fractions (pairs,)."""
        return self._sums(self.gamma * fractions)

    def part_of_limit(self, work: Array) -> Array:
        """Tasks of each user as a part of its limit, (users,), 0 without a limit, from work (pairs,)."""
        return np.asarray(self._sums(work if self.rate is None else work / self.rate) / self.quota)

    def allocation(self, fractions: Array) -> Array:
        """Tasks x, (all users, servers), from fractions (pairs,)."""
        result = np.zeros(self.cluster.shape[:2])
        result[self._pairs] = fractions * self.instances
        return result

    def inside(self, fractions: Array) -> Array:
        """Feasible fractions, (pairs,): clipped at 0, and each pair divided by its largest overuse.

        This corrects rounding errors of engines; certificates are computed afterwards.
        """
        amount = np.maximum(fractions, 0.0)
        part = 1 / np.maximum(self.part_of_limit(self.gamma * amount), 1.0)[self.pair_user]
        for use in self.pair_use.T:
            used = np.bincount(self.pair_server, use * amount, self.cluster.shape[1])
            np.minimum(part, (1 / np.maximum(used, 1.0))[self.pair_server], where=use > 0, out=part)
        return np.asarray(amount * part)

    def filled(self, tasks: Array, tol: float, residual: float) -> Array | None:
        """Tasks increased by the rounding error of sums, so that exhausted rows have no slack however sums are ordered.

        None if that error is less than `tol` of the smallest tasks, and the `residual` at least `_BY_ROUNDING` times as
        large as `tol`, so that the error does not matter.
        """
        rounding = (np.bincount(self.pair_server).max() + 4) * np.finfo(float).eps
        part = (self.cluster.work(tasks)[self.users] / self.reach).min()
        matters = tol * part * self.pair_use.min(initial=1.0, where=self.pair_use > 0) <= rounding
        if not (matters or residual < _BY_ROUNDING * tol):
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

    def used_by(self, fractions: Array) -> Array:
        """Used fraction of each row's capacity, (rows,), by fractions (pairs,)."""
        servers = self.cluster.shape[1]
        used = [np.bincount(self.pair_server, use * fractions, servers) for use in self.pair_use.T]
        return np.asarray(np.stack(used, axis=1)[self._rows])

    def price_per_task(self, row_prices: Array) -> Array:
        r"""Cost of a unit of work, (pairs,), from prices of whole capacities (rows,).

        Without rates this is the cost of a task, :math:`\sum_r \lambda_{ir} d_{nr}`.
        """
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
        """Log prices of whole capacities, (rows,), from log prices per resource unit (servers, resources)."""
        return np.asarray(log_prices[self._rows] + np.log(self.capacity))

    def log_unit_prices(self, log_rows: Array) -> Array:
        """Log prices per resource unit, (servers, resources), -inf without a row, from log prices of capacities."""
        return self.by_server(log_rows - np.log(self.capacity), -np.inf)
