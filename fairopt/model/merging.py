"""Exact merging of proportional servers and users, and its inverse.

Servers with proportional capacities, equal usable users and equal rates act as one server with the sum of their
capacities: the set of feasible :math:`x_n` is the same, and an equilibrium of the per-server game (finite alpha)
remains an equilibrium if its tasks are split in proportion to capacity. Users with proportional demands and rates,
equal eligibility, and task limits in proportion to weight act as one user with the sum of their weights and limits,
under every share that is homogeneous in the demand (dominant and asset shares, but not numbers of tasks): these users
have one level, and attain their limits at the same level. For PS-DSF, whose :math:`x_n` is not unique, merging selects
one allocation. The 12,583 machines of the Google trace are 10 servers after merging.

Tasks are stored on merged servers (`Split`). A split in proportion to capacity uses the same fraction of every resource
on each of the merged servers. It is therefore feasible and optimal if and only if the merged tasks are feasible and
optimal, since the problems of a server and of the merged server are equal up to scale. Hence both parts of a
certificate follow from the merged tasks; feasibility is nevertheless computed from the original capacities. A dense
array of 5,000 users and 12,583 servers occupies 0.5 GB, and the corresponding split 0.4 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..base.libraries import sp
from ..base.names import apart
from . import _arrays
from ._arrays import Array, Frozen, Index, ratio, read_only
from .cluster import Cluster


@dataclass(frozen=True)
class Merging(Frozen):
    """A merged `cluster` of an `original`; `server_of` and `user_of` map original to merged indices."""

    original: Cluster
    cluster: Cluster
    server_of: Index
    user_of: Index
    server_part: Array  # (servers,), fraction of the merged capacity
    user_part: Array  # (users,), fraction of the merged weight
    task_size: Array  # (users,), demand of a task relative to a task of the merged user

    @property
    def trivial(self) -> bool:
        """True if no servers or users were merged."""
        return len(self.server_of) == len(self.cluster.servers) and len(self.user_of) == len(self.cluster.users)

    @property
    def first_server(self) -> Index:
        """First original server of each merged server, (merged servers,)."""
        return _first(self.server_of)

    @property
    def first_user(self) -> Index:
        """First original user of each merged user, (merged users,)."""
        return _first(self.user_of)

    @property
    def of_servers(self) -> Merging:
        """Merging of the servers alone."""
        whole, first, n = self.original, self.first_server, len(self.user_of)
        if len(self.cluster.users) == n:
            return self
        cluster = whole.derived(
            capacity=self.cluster.capacity,
            eligible=whole.eligible[:, first] if whole.constrained else None,
            servers=self.cluster.servers,
            rate=whole.rate[:, first] if whole.rated else None,
        )
        return Merging(whole, cluster, self.server_of, np.arange(n), self.server_part, np.ones(n), np.ones(n))

    def merged_tasks(self, tasks: Array) -> Array:
        """Sum original tasks (users, servers) to merged tasks, (merged users, merged servers)."""
        by_server = _sums(self.server_of, np.ones(len(self.server_of))) @ tasks.T
        return np.asarray(_sums(self.user_of, self.task_size) @ by_server.T)

    def split_users(self, tasks: Array) -> Array:
        """Tasks (users, merged servers) of the members of merged users, from tasks (merged users, merged servers).

        Members share the resources of the merged user in proportion to weight; a member's number of tasks is also
        divided by the size of its task relative to a task of the merged user.
        """
        return np.asarray(tasks[self.user_of] * (self.user_part / self.task_size)[:, None])

    def split_servers(self, tasks: Array) -> Array:
        """Split tasks (users, merged servers) in proportion to capacity, to (users, servers)."""
        parts = _arrays.table(
            (len(tasks), len(self.server_of)), "ask for user_tasks, tasks_by_type or allocation[user]"
        )
        np.take(tasks, self.server_of, axis=1, out=parts, mode="clip")
        parts *= self.server_part
        return parts

    def split_tasks(self, tasks: Array) -> Array:
        """Split merged tasks in proportion to capacity and weight, to (users, servers)."""
        return self.split_servers(self.split_users(tasks))

    def split_prices(self, prices: Array | None) -> Array | None:
        """Prices (..., servers, resources) per resource unit, equal on all parts of a merged server; None for None."""
        return None if prices is None else prices[..., self.server_of, :]


def merge(cluster: Cluster, servers: bool = True, users: bool = True) -> Merging:
    r"""Merge proportional servers and users of a cluster, which preserves its optima and equilibria.

    .. math:: c_{ir} \propto c_{jr} \text{ with equal usable users } \mapsto c_{ir} + c_{jr}, \qquad
        d_{nr} \propto d_{mr} \text{ with equal eligibility and } q_n \propto \phi_n \mapsto \phi_n + \phi_m

    Limits q are compared in units of demand, :math:`q_n d_{nr} / \phi_n`, for any r.

    Parameters
    ----------
    cluster : Cluster
    servers : bool
        Merge servers.
    users : bool
        Merge users.

    Returns
    -------
    Merging
        The merged `cluster` (the same object if nothing was merged), the maps to it, and their inverses, such as
        `split_tasks`.

    >>> import fairopt as fo
    >>> merging = fo.merge(fo.Cluster([[4, 8], [2, 4]], [[1, 4], [3, 1]]))
    >>> merging.cluster.capacity.tolist(), merging.server_part.round(3).tolist()
    ([[6.0, 12.0]], [0.667, 0.333])
    """
    n, i, _ = cluster.shape
    server_of, user_of = np.arange(i), np.arange(n)
    about = cluster.capacity, cluster.demand
    codes: list[Callable[[], Index | Array]] = []
    if servers:
        if cluster.constrained:  # otherwise proportional servers have equal sets of usable users
            codes.append(lambda: _arrays.usable_columns(*about, cluster.eligible))
        if cluster.rated:
            # Rates of ineligible pairs count, too, since task shares include monopoly work without placement.
            codes.append(lambda: _arrays.numbered(np.ascontiguousarray(_log_rate(cluster.rate).T)))
        server_of = _groups(cluster.capacity, *codes)
    if users:
        codes = []
        if np.isfinite(cluster.max_tasks).any():
            codes.append(lambda: _limit_levels(cluster))
        if cluster.constrained:
            codes.append(lambda: _arrays.numbered(np.packbits(cluster.eligible, axis=1)))
        if cluster.rated:
            codes.append(lambda: _arrays.numbered(_direction(_log_rate(cluster._eligible_rate))))
        user_of = _groups(cluster.demand, *codes)
    if server_of.max() == i - 1 and user_of.max() == n - 1:
        return unmerged(cluster)
    first_server, first_user = _first(server_of), _first(user_of)
    capacity = np.zeros((len(first_server), cluster.shape[2]))
    # Summation in increasing order makes the result independent of the order of servers.
    rising = np.lexsort(cluster.capacity.T)
    np.add.at(capacity, server_of[rising], cluster.capacity[rising])
    # The unit of merged tasks is the smallest demand, independent of the order of users.
    entry = _some_entry(cluster.demand)
    least = np.lexsort([entry, user_of])[np.searchsorted(np.sort(user_of), np.arange(len(first_user)))]
    rising = np.argsort(cluster.weight)
    weight = np.bincount(user_of[rising], cluster.weight[rising])
    size, part = entry / entry[least][user_of], cluster.weight / weight[user_of]
    # The smallest limit that a member implies, so that rounding lets no member exceed its own limit.
    limit = np.full(len(first_user), np.inf)
    np.minimum.at(limit, user_of, cluster.max_tasks * size / part)
    merged = cluster.derived(
        capacity=capacity,
        demand=cluster.demand[least],
        weight=weight,
        eligible=cluster.eligible[np.ix_(first_user, first_server)] if cluster.constrained else None,
        max_tasks=limit,
        users=_labels(cluster.users, user_of, first_user),
        servers=_labels(cluster.servers, server_of, first_server),
        rate=cluster.rate[np.ix_(least, first_server)] if cluster.rated else None,
    )
    whole = _some_entry(capacity)[server_of]
    return Merging(cluster, merged, server_of, user_of, ratio(_some_entry(cluster.capacity), whole), part, size)


def unmerged(cluster: Cluster) -> Merging:
    """Trivial merging, in which every server and user is separate."""
    n, i, _ = cluster.shape
    return Merging(cluster, cluster, np.arange(i), np.arange(n), np.ones(i), np.ones(n), np.ones(n))


def _limit_levels(cluster: Cluster) -> Array:
    """Logarithms of task limits in units of demand per weight, (users,), rounded to 11 decimals."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.round(np.log(cluster.max_tasks * _some_entry(cluster.demand) / cluster.weight), 11) + 0.0)


def _groups(vectors: Array, *codes: Callable[[], Index | Array]) -> Index:
    """Group rows with proportional vectors and equal codes; groups are numbered by first appearance."""
    positive = vectors > 0
    direction = _direction(np.log(vectors, out=np.full(vectors.shape, -np.inf), where=positive))
    if len(np.unique(direction[:, -1])) == len(vectors):  # all rows differ
        return np.arange(len(vectors))
    return _arrays.numbered(np.column_stack([positive.astype(float), direction, *[code() for code in codes]]))


def _direction(logs: Array) -> Array:
    """Rounded log ratios to the first finite entry of each row: equal for proportional rows, and precise in any units.

    The log ratio of an entry 0 is 0 in place of -inf.
    """
    finite = np.isfinite(logs)
    first = np.take_along_axis(logs, finite.argmax(axis=1)[:, None], axis=1)
    ratios = logs - np.where(finite.any(axis=1, keepdims=True), first, 0.0)
    return np.asarray(np.round(np.where(finite, ratios, 0.0), 11) + 0.0)


def _log_rate(rate: Array) -> Array:
    """Rounded log rates (users, servers), -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.round(np.log(rate), 11) + 0.0)


def _some_entry(vectors: Array) -> Array:
    """First nonzero entry of each row, by which proportional rows are compared."""
    return np.asarray(np.take_along_axis(vectors, (vectors > 0).argmax(axis=1)[:, None], axis=1)[:, 0])


def _sums(group_of: Index, size: Array) -> sp.csr_matrix:
    """Sparse matrix (groups, members) that sums members, each multiplied by its size."""
    return sp.csr_matrix((size, (group_of, np.arange(len(group_of)))))


def _first(group_of: Index) -> Index:
    return np.asarray(np.unique(group_of, return_index=True)[1])


def _labels(labels: tuple[str, ...], group_of: Index, first: Index) -> list[str]:
    sizes = np.bincount(group_of)
    single = {labels[f] for g, f in enumerate(first) if sizes[g] == 1}
    several = iter(apart([f"{labels[f]} x{sizes[g]}" for g, f in enumerate(first) if sizes[g] > 1], single, "merged"))
    return [labels[f] if sizes[g] == 1 else next(several) for g, f in enumerate(first)]


@dataclass(frozen=True, eq=False)
class Split:
    """Tasks `merged`, (users, merged servers), of a `merging` of servers only; a call returns all (users, servers)."""

    merging: Merging
    merged: Array

    @classmethod
    def of(cls, merging: Merging, tasks: Array) -> Split:
        """Construct from tasks (merged users, merged servers): users are split, servers stay merged."""
        return cls(merging.of_servers, merging.split_users(tasks))

    @classmethod
    def from_table(cls, merging: Merging, tasks: Array) -> Split:
        """Construct from tasks (users, servers) by summation; `matches` tells if the split is proportional."""
        return cls(merging, tasks if merging.trivial else merging.merged_tasks(tasks))

    @classmethod
    def from_answer(cls, cluster: Cluster, tasks: Array | Split) -> Split:
        """Return a split unchanged; otherwise sum tasks (users, servers) over proportional servers."""
        return tasks if isinstance(tasks, Split) else cls.from_table(merge(cluster, users=False), tasks)

    def matches(self, tasks: Array, tol: float = 1e-12) -> bool:
        """True if `tasks` (users, servers) equal the split tasks within `tol`, relative to the total of each user."""
        apart = self.merging.split_servers(self.merged)
        apart -= tasks
        return not (np.abs(apart, out=apart) > tol * tasks.sum(axis=1, keepdims=True)).any()

    def __call__(self) -> Array:
        """Tasks (users, servers), read-only."""
        return read_only(self.merging.split_servers(self.merged))

    @property
    def user_tasks(self) -> Array:
        """Tasks on all servers, :math:`x_n`, (users,)."""
        groups = self.merging.server_of
        return np.asarray(self.merged @ np.bincount(groups, self.merging.server_part, self.merged.shape[1]))

    @property
    def work(self) -> Array:
        """Work of users on all servers, (users,), which equals `Cluster.work` of the split tasks."""
        cluster, groups = self.merging.cluster, self.merging.server_of
        if not cluster.rated:
            return self.user_tasks
        whole = np.bincount(groups, self.merging.server_part, self.merged.shape[1])
        return np.asarray((self.merged * cluster.rate) @ whole)

    @property
    def use(self) -> Array:
        r"""Use of resources, :math:`\sum_n x_{ni} d_{nr}`, (servers, resources), in resource units."""
        whole = self.merging.original.used(self.merged)
        return np.asarray(whole[self.merging.server_of] * self.merging.server_part[:, None])
