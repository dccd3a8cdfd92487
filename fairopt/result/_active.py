"""Active sets of answers of global programs: servers that act as one, and the levels of max-min with their prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.backward import log_price_per_task
from ..certificates.leximin import by_level, held
from ..core.first_order import Active, Prices, parts, summed
from ..core.settled import ZERO
from ..errors import SolverError
from ..model._arrays import Array, Index, Mask, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.polytope import Polytope

#: What idles by less of a capacity is used up, what costs less of a server has no price; demands have full rank if the
#: least eigenvalue of `A'A` is above this.
SMALL = 1e-6


@dataclass(frozen=True)
class Pooling:
    """`cluster` has a server for every group of servers of another one.

    Attributes
    ----------
    pool_of : (servers,), the group of each
    first : (pools,), a server of each group, whose prices are the group's
    part : (servers, resources), of its group's capacity
    """

    cluster: Cluster
    pool_of: Index
    first: Index
    part: Array

    def pooled(self, tasks: Array) -> Array:
        """Tasks (users, servers) on groups."""
        return np.asarray(tasks @ summed(self.pool_of, len(self.first)).T)

    def spread(self, pools: Array) -> Array:
        """Spread derivatives by log capacity of groups (pools, resources, k) over their servers."""
        return np.asarray(pools[self.pool_of] * self.part[:, :, None])


def alone(cluster: Cluster) -> Pooling:
    """Every server by itself."""
    servers = np.arange(cluster.shape[1])
    return Pooling(cluster, servers, servers, np.ones(cluster.capacity.shape))


def pooling(cluster: Cluster, criterion: Criterion, tasks: Array, log_prices: Array | None) -> Pooling:
    """Groups of servers of a global program's answer.

    Where servers i and j of a global program have the same prices, users who run on both do not mind where: tasks move
    over as one of the two changes, and only the sum of the capacities counts. Let P be the resources with a price.
    Small changes of users' totals in a group of servers, and of its capacities, can be split over its servers if and
    only if they leave the sums over the group as full as they are, provided that

        v_i . d_n = u_n  on all pairs (n, i) with tasks     implies     v_i = v  on P, and 0 on what else is used up,

    by Farkas: v_i on what is used up on i, u_n a user's total. That is checked server by server: i joins a group if the
    demands of those of its users who also run on a server of the group have full rank in what is used up on i. Then an
    answer moves as that of the cluster with one server per group does; how its tasks are split is left open, as it is
    in the answer. (The game is another matter: there a server's own gammas count.)

    Source: found here.

    Parameters
    ----------
    tasks : (users, servers)
    log_prices : per unit of resource, (servers, resources), or (levels, servers, resources) of max-min; without, no
        server is put together with another
    """
    if criterion.scope == "game" or log_prices is None or cluster.shape[1] == 1:
        return alone(cluster)
    # Prices are equal if tasks that take all resources alike cost the same on both to this part.
    same = 1e-5 * (criterion.stiffness if np.isfinite(criterion.alpha) else 1.0)
    chosen = _chosen(cluster, tasks, log_prices.reshape(-1, *cluster.capacity.shape), same)
    first, pool_of = np.unique(chosen, return_inverse=True)
    if len(first) == cluster.shape[1]:
        return alone(cluster)
    onto = summed(pool_of, len(first))
    capacity = onto @ cluster.capacity
    eligible = onto @ cluster.usable.T.astype(float) > 0
    labels = [cluster.servers[i] for i in first]
    pooled = cluster.derived(capacity=capacity, eligible=eligible.T, servers=labels)
    return Pooling(pooled, pool_of, first, ratio(cluster.capacity, capacity[pool_of]))


def _chosen(cluster: Cluster, tasks: Array, log_prices: Array, same: float) -> Index:
    """(servers,): the server that stands for the group of each."""
    servers, resources = cluster.capacity.shape
    pool = np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = 1 - (tasks.T @ cluster.demand) / cluster.capacity <= SMALL
        whole = np.where(cluster.capacity > 0, log_prices, -np.inf) + np.log(pool)  # what all of a capacity costs
        total = np.logaddexp.reduce(whole, axis=2)
        part = np.nan_to_num(np.exp(whole - total[:, :, None]))
    priced = (part > SMALL).any(axis=0)
    prices = np.concatenate([np.nan_to_num(total)[:, :, None], part], axis=2).transpose(1, 0, 2).reshape(servers, -1)
    runs = (tasks > 1e-4 * tasks.sum(axis=1, keepdims=True)).T.astype(float)  # who has so much there can give some up
    size = cluster.demand / pool
    size /= size.max(axis=1, keepdims=True)
    squares = (size[:, :, None] * size[:, None, :]).reshape(len(size), -1)
    chosen, free = np.arange(servers), ~(full & ~priced).any(axis=1)
    for root in np.argsort(-runs.sum(axis=1), kind="stable"):
        if not free[root]:
            continue
        free[root] = False
        may = np.flatnonzero(free & (np.abs(prices - prices[root]).max(axis=1) <= same))
        while len(may):
            known = runs[chosen == root].any(axis=0)
            gram = (runs[may] @ (squares * known[:, None])).reshape(-1, resources, resources)
            used_up = priced[may, :, None] & priced[may, None, :]
            # Have demands of users of both full rank in what is used up?
            joins = np.linalg.eigvalsh(np.where(used_up, gram, np.eye(resources)))[:, 0] > SMALL
            if not joins.any():
                break
            chosen[may[joins]], free[may[joins]], may = root, False, may[~joins]
    return chosen


def leximin(polytope: Polytope, criterion: Criterion, tasks: Array, hint: Array | None) -> Active:
    """The active set of a max-min answer `tasks` (all users, servers); `hint` prices (levels, servers, resources).

    Raises
    ------
    SolverError
        No prices prove the levels to seven digits.
    """
    user, first = polytope.pair_user, polytope.start[:-1]
    x = tasks[polytope.users[user], polytope.pair_server]
    total = np.add.reduceat(x, first)
    level = criterion.restrict(polytope.users).levels(total)
    limited = total >= polytope.limit * (1 - ZERO)
    sets, blocked = _prices(polytope, tasks, level, limited, hint)
    part = x / total[user]
    pairs, priced = part > ZERO, np.zeros(len(polytope.row_server), dtype=bool)
    slack = np.zeros(len(x))
    for rows in sets:
        whole = polytope.price_per_task(rows) * total[user]
        least = np.minimum.reduceat(whole, first)[user]
        slack = np.maximum(slack, (whole - least) / np.where(least > ZERO * rows.sum(), least, max(rows.sum(), 1e-300)))
        priced |= rows > ZERO * rows.max(initial=0.0)
    # How much dearer pairs with a thousandth of a user's tasks are than need be says how well prices are known.
    weak = ~pairs & (slack <= max(ZERO, float(slack[part > 1e-3].max(initial=0.0))))
    prices = []
    for rows in sets:
        cheap = (pairs | weak) & (polytope.price_per_task(rows) * polytope.gamma > ZERO * rows.max(initial=0.0))
        cheap &= np.bincount(user[cheap], minlength=len(total))[user] > 1
        with np.errstate(divide="ignore"):
            log_rows = np.log(rows)
            prices.append(Prices(log_rows, log_price_per_task(polytope, log_rows), cheap))
    return Active(
        polytope,
        criterion,
        total,
        np.where(pairs, part, 0.0),
        pairs,
        weak,
        priced,
        ~priced & (1 - polytope.used(tasks) <= ZERO),
        limited,
        np.zeros(len(total), dtype=bool),
        blocked,
        _level_groups(polytope, level),
        np.ones(len(total), dtype=bool),
        tuple(prices),
    )


def _level_groups(polytope: Polytope, level: Array) -> Index:
    """Users of one level who take from each other wherever they may, whether or not they do now."""
    rank = np.empty(len(level), dtype=np.intp)
    for g, members in enumerate(by_level(level)):
        rank[members] = g
    both = np.column_stack([rank, parts(polytope)[polytope.users]])
    return np.asarray(np.unique(both, axis=0, return_inverse=True)[1].ravel())


def _prices(
    polytope: Polytope, tasks: Array, level: Array, limited: Mask, hint: Array | None
) -> tuple[list[Array], Mask]:
    """Prices of whole capacities (rows,) that prove who is held by capacity, and who is, (users,)."""
    sets, proof = held(polytope, tasks, level, np.zeros(len(level)), ~limited, hint, ZERO)
    blocked = proof.rise <= 10 * ZERO
    open = ~limited & ~blocked
    if open.any():
        name = polytope.cluster.users[polytope.users[int(open.argmax())]]
        raise SolverError(
            f"no prices prove the level of user {name!r} to seven digits, so that nothing is known of how it moves: "
            "solve with a smaller tol, such as solve(cluster, tol=1e-9)"
        )
    some = [sets[s] for s in np.unique(proof.which[blocked])]
    return [polytope.row_prices(np.nan_to_num(np.maximum(unit, 0.0), posinf=0.0)) for unit in some], blocked
