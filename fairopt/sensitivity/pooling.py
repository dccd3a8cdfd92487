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
        pool = cluster.pooled_capacity
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.nan_to_num(log_prices, nan=-np.inf, posinf=-np.inf, neginf=-np.inf) + np.log(pool)
            self.log_cost: Array = np.logaddexp.reduce(whole, axis=2).T  # (servers, levels)
            shares = np.nan_to_num(np.exp(whole - self.log_cost.T[:, :, None]))
            idle = 1 - (tasks.T @ cluster.demand) / cluster.capacity
        self.shares: Array = shares.transpose(1, 0, 2)  # (servers, levels, resources)
        self.priced: Mask = (shares > OPTIONS.priced).any(axis=0)
        full = (cluster.capacity > 0) & (idle <= OPTIONS.full)
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
        cost = self.log_cost[:, 0]
        order = np.argsort(cost, kind="stable")
        with np.errstate(invalid="ignore"):
            apart = np.diff(cost[order]) > self.same
        for run in np.split(order, np.flatnonzero(apart) + 1):
            left = run
            while len(left):
                group = self._group(left)
                yield group
                left = left[~np.isin(left, group)]

    def _group(self, servers: Index) -> Index:
        """Of these servers the busiest one, and those that can be put together with it."""
        clear = servers[self.clear[servers]]
        if not len(clear):
            return servers[:1]
        root = clear[self.busy[clear].argmax()]
        with np.errstate(invalid="ignore"):
            cost = np.abs(self.log_cost[servers] - self.log_cost[root])  # NaN where neither has a price
        equal = ~(cost > self.same).any(axis=1)
        equal &= np.abs(self.shares[servers] - self.shares[root]).sum(axis=2).max(axis=1) <= self.same
        left, group = servers[equal & (servers != root)], np.array([root])
        known = np.zeros(self.on.shape[1])
        while len(left):
            known[np.unique(self.on[group].indices)] = 1.0
            joins = self._determined(left, known, self.used_up[left] | self.priced[root])
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
