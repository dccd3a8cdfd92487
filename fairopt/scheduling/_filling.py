"""Pools of divisible tasks: validation, order of users, and water filling above existing shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.errors import DataError
from ..model._arrays import Array
from ..model.cluster import Cluster


def ordered(cluster: Cluster, given: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """User names in the given order, by default that of the cluster; raise `DataError` unless each occurs once."""
    names = cluster.users if given is None else tuple(np.atleast_1d(np.array(given, dtype=object)).ravel())
    if not all(isinstance(name, str) for name in names) or sorted(names) != sorted(cluster.users):
        known, got = ", ".join(cluster.users), ", ".join(map(str, names))
        raise DataError(f"{what} must name every user once, in any order: {known}; got {got}")
    return names


def pool_of(cluster: Cluster, who: str) -> Cluster:
    """Pool all servers; raise `DataError` if a user can run no task or has a limit, which `who` does not support."""
    pool = cluster.pool()
    for n in np.flatnonzero(~pool.runnable).tolist():
        name = pool.users[n]
        raise DataError(f"user {name!r} needs a resource that no server has; leave the user out", ("users", n))
    for n in np.flatnonzero(np.isfinite(pool.max_tasks)).tolist():
        raise DataError(f"user {pool.users[n]!r} has a task count, which {who} does not support; drop max_tasks")
    return pool


def normalised(pool: Cluster) -> Array:
    """Share of every resource per unit of dominant share, D, (users, resources)."""
    return pool.share_per_task / pool.dominant_share_per_task[:, None]


def highest(demand: Array, have: Array, weight: Array, part: float) -> float:
    """Largest M with `sum_n max(phi_n M, have_n) D_nr <= part` for every resource r.

    D is `demand`, (users, resources), and phi is `weight`, (users,), as is `have`.

    If the first j users in the order of `have / phi` have ratios of at most M, the sum is `M A_r + B_r`: `A_r` is the
    sum of `phi_n D_nr` over the first j users, and `B_r` the sum of `have_n D_nr` over the other users.
    """
    ratio = have / weight
    order = np.argsort(ratio, kind="stable")
    rising = np.cumsum((weight[:, None] * demand)[order], axis=0)
    kept = (have[:, None] * demand)[order]
    kept = np.cumsum(kept[::-1], axis=0)[::-1] - kept  # sums over the users that follow each user in the order
    # On piece j the first j + 1 users have ratios of at most M, and M is at most the next ratio. The solution is on the
    # first piece on which the bound by capacity is at most the next ratio.
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(rising > 0, (part - kept) / rising, np.inf)
    ends = np.append(ratio[order][1:], np.inf)
    piece = (reach <= ends[:, None]).argmax(axis=0)
    return float(reach[piece, np.arange(demand.shape[1])].min())
