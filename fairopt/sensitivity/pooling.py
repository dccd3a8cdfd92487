"""Servers of equal prices as one server, where users can move between them.

Where servers i and j of a global program have the same prices, users who run on both do not mind where: tasks move over
as one of the two changes, and only the sum of the capacities counts. Let P be the resources with a price. Small changes
of users' totals in a group of servers, and of its capacities, can be split over its servers if and only if they leave
the sums over the group as full as they are, provided that

    v_i . d_n = u_n  on all pairs (n, i) with tasks        implies      v_i = v  on P, and 0 on what else is used up,

by Farkas: v_i on what is used up on i, u_n a user's total. That is checked server by server: i joins a group if the
demands of those of its users who also run on a server of the group have full rank in what is used up on i.
Then an answer moves as that of the cluster with one server per group does; how its tasks are split is left open, as it
is in the answer. (The game is another matter: there a server's own gammas count.)

Source: found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..model.cluster import Cluster
from ..model.criterion import Criterion

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PoolingOptions:
    """Which servers have equal prices, and who can move between them."""

    #: Prices are equal if tasks that take all resources alike cost the same on both to this part.
    same: float = 1e-5
    #: Who has this part of its tasks on a server can give some up.
    runs: float = 1e-4
    #: What idles by less than `full` of a capacity is used up; what costs less than `priced` of a server has no price.
    full: float = 1e-6
    priced: float = 1e-6
    #: Demands have full rank if the least eigenvalue of `A'A`, scaled to a diagonal of 1, is above this.
    rank: float = 1e-6


#: What is used unless a caller says otherwise.
OPTIONS = PoolingOptions()


@dataclass(frozen=True)
class Pooling:
    """`cluster` has a server for every group of servers of another one.

    Attributes
    ----------
    pool_of : (servers,), the group of each
    first : (pools,), a server of each group, whose prices are the group's
    part : (servers, resources), of its group's capacity; 1 of a server by itself
    """

    cluster: Cluster
    pool_of: Index
    first: Index
    part: Array

    def pooled(self, tasks: Array) -> Array:
        """Tasks (users, servers) on groups."""
        servers = np.arange(len(self.pool_of))
        return np.asarray(tasks @ sp.csr_matrix((np.ones(len(servers)), (servers, self.pool_of))))

    def spread(self, pools: Array) -> Array:
        """By log capacity of groups (pools, resources, k) to by that of servers."""
        return np.asarray(pools[self.pool_of] * self.part[:, :, None])


def alone(cluster: Cluster) -> Pooling:
    """Every server by itself."""
    servers = np.arange(cluster.shape[1])
    return Pooling(cluster, servers, servers, np.ones(cluster.capacity.shape))


def pooling(cluster: Cluster, criterion: Criterion, tasks: Array, log_prices: Array | None) -> Pooling:
    """Groups of servers of a global program's answer.

    Parameters
    ----------
    tasks : (users, servers)
    log_prices : per unit of resource, (servers, resources), or (levels, servers, resources) of max-min; without, no
        server is put together with another
    """
    if criterion.scope == "game" or log_prices is None or cluster.shape[1] == 1:
        return alone(cluster)
    seen = _Seen(cluster, criterion, tasks, log_prices.reshape(-1, *cluster.capacity.shape))
    groups = list(seen.groups())
    return alone(cluster) if len(groups) == cluster.shape[1] else _put_together(cluster, groups)


def _put_together(cluster: Cluster, groups: list[Index]) -> Pooling:
    pool_of, first = np.empty(cluster.shape[1], dtype=np.intp), np.array([group[0] for group in groups])
    for g, group in enumerate(groups):
        pool_of[group] = g
    onto = sp.csr_matrix((np.ones(len(pool_of)), (np.arange(len(pool_of)), pool_of)))
    capacity = np.asarray(onto.T @ cluster.capacity)
    whole = capacity[pool_of]
    part = np.divide(cluster.capacity, whole, out=np.zeros(whole.shape), where=whole > 0)
    part[[group[0] for group in groups if len(group) == 1]] = 1.0
    names = [cluster.servers[group[0]] for group in groups]
    several = [f"{name} and {len(group) - 1} of its prices" for name, group in zip(names, groups, strict=True)]
    labels = [name if len(group) == 1 else more for name, more, group in zip(names, several, groups, strict=True)]
    eligible = np.asarray(cluster.usable.astype(float) @ onto) > 0
    return Pooling(cluster.derived(capacity=capacity, eligible=eligible, servers=labels), pool_of, first, part)


class _Seen:
    """Prices in what all capacities cost on a server, who runs where, what is used up."""

    def __init__(self, cluster: Cluster, criterion: Criterion, tasks: Array, log_prices: Array) -> None:
        self.same = OPTIONS.same * (criterion.stiffness if np.isfinite(criterion.alpha) else 1.0)
        self.there: Mask = cluster.capacity > 0
        pool = cluster.pooled_capacity
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.where(self.there & np.isfinite(log_prices), log_prices, -np.inf) + np.log(pool)
            idle = 1 - (tasks.T @ cluster.demand) / cluster.capacity
        self.cost: Array = whole.transpose(1, 0, 2)  # (servers, levels, resources), logarithms
        self.total: Array = np.logaddexp.reduce(self.cost, axis=2)
        highest = self.total.max(axis=0)
        self.unit: Array = np.where(np.isfinite(self.total), self.total, np.where(np.isfinite(highest), highest, 0.0))
        self.priced: Mask = (self.cost - self.unit[:, :, None] > np.log(OPTIONS.priced)).any(axis=1)
        full = self.there & (idle <= OPTIONS.full)
        self.used_up: Mask = full | self.priced
        self.clear: Mask = ~(full & ~self.priced).any(axis=1)
        runs = tasks > OPTIONS.runs * tasks.sum(axis=1, keepdims=True)
        self.on: sp.csr_matrix = sp.csr_matrix(runs.T.astype(float))  # (servers, users)
        self.busy: Index = np.diff(self.on.indptr)
        size = cluster.demand / np.where(pool > 0, pool, 1.0)
        size /= size.max(axis=1, keepdims=True)
        self.squares: Array = (size[:, :, None] * size[:, None, :]).reshape(len(size), -1)  # (users, resources^2)

    def groups(self) -> Iterator[Index]:
        """All servers in groups, one that stands for each group first."""
        price = self.cost.max(axis=1)
        likely = np.zeros(len(price), dtype=bool)  # some resource has nearly this price elsewhere
        for r in range(price.shape[1]):
            order = np.argsort(price[:, r], kind="stable")
            with np.errstate(invalid="ignore"):
                near = np.abs(np.diff(price[order, r])) <= self.same * price.shape[1]
            likely[order[1:][near]] = True
            likely[order[:-1][near]] = True
        yield from np.flatnonzero(~likely)[:, None]
        left = np.flatnonzero(likely)
        left = left[np.lexsort((-self.busy[left], -self.there[left].sum(axis=1), ~self.clear[left]))]
        while len(left):
            group = self._group(left[0], left[1:]) if self.clear[left[0]] else left[:1]
            yield group
            left = left[~np.isin(left, group)]

    def _group(self, root: int, servers: Index) -> Index:
        """A server, and those of others that can be put together with it."""
        both = (self.there[servers] & self.there[root])[:, None, :]
        with np.errstate(over="ignore"):
            own, others = (np.exp(self.cost[each] - self.unit[root][:, None]) for each in (root, servers))
        apart = np.where(both, np.abs(others - own), 0.0).sum(axis=2).max(axis=1)
        left, group = servers[apart <= self.same], np.array([root])
        known = np.zeros(self.on.shape[1])
        while len(left):
            known[np.unique(self.on[group].indices)] = 1.0
            joins = self._determined(left, known, self.used_up[left] | (self.priced[root] & self.there[left]))
            if not joins.any():
                break
            group, left = np.concatenate([group, left[joins]]), left[~joins]
        return group

    def _determined(self, servers: Index, known: Array, used_up: Mask) -> Mask:
        """(servers,): have demands of the known users who run there full rank in what is used up?"""
        resources = used_up.shape[1]
        gram = np.asarray(self.on[servers] @ (self.squares * known[:, None])).reshape(-1, resources, resources)
        gram = np.where(used_up[:, :, None] & used_up[:, None, :], gram, np.eye(resources))
        scale = np.sqrt(np.einsum("irr->ir", gram))
        with np.errstate(divide="ignore", invalid="ignore"):
            gram = np.nan_to_num(gram / (scale[:, :, None] * scale[:, None, :]))
        return np.asarray(np.linalg.eigvalsh(gram)[:, 0] > OPTIONS.rank)
