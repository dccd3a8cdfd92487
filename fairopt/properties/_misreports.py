"""Lies about demands, servers and task counts, one by one and at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster

Array = NDArray[np.float64]
#: What users can lie about.
REPORTS = ("demand", "eligible", "max_tasks")
#: Whole numbers up to so many times the smallest are counted up and down; others are multiplied by one of these parts.
_COUNTABLE = 1000
_PARTS = (0.25, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 2.0, 4.0)


def misreport(cluster: Cluster, user: int, about: Sequence[str], rng: np.random.Generator) -> Cluster:
    """The cluster as if a user, by number, had reported something else about one of `REPORTS`.

    Of demands: one coordinate, or all of them, anew; whole numbers stay whole numbers.
    """
    what = about[int(rng.integers(len(about)))]
    if what == "demand":
        return cluster.derived(demand=_row(cluster.demand, user, _other_demand(cluster.demand[user], rng)))
    if what == "eligible":
        servers = cluster.eligible[user].copy()
        server = rng.integers(len(servers))
        servers[server] = not servers[server]
        return cluster.derived(eligible=_row(cluster.eligible, user, servers))
    most = cluster.gamma[user].sum() if np.isinf(cluster.max_tasks[user]) else cluster.max_tasks[user]
    reported = float(rng.choice([np.inf, max(1.0, np.floor(most / 2)), np.ceil(most), 2 * np.ceil(most) + 1, 1.0]))
    return cluster.derived(max_tasks=_row(cluster.max_tasks, user, reported))


def lies(cluster: Cluster, about: Sequence[str], rng: np.random.Generator) -> Iterator[tuple[Cluster, int]]:
    """Without end: the cluster after a lie of one user, and who it is."""
    while True:
        for user in rng.permutation(len(cluster.users)).tolist():
            yield misreport(cluster, user, about, rng), user


def differs_only(cluster: Cluster, other: Cluster, users: Sequence[str], about: Sequence[str]) -> bool:
    """Do two clusters differ in nothing but what these users may have said otherwise?"""
    names = ("resources", "users", "servers")
    if any(getattr(cluster, name) != getattr(other, name) for name in names):
        return False
    honest = ~np.isin(cluster.users, users)
    for name in ("capacity", "weight", *REPORTS):
        mine, theirs = getattr(cluster, name), getattr(other, name)
        if not np.array_equal(mine[honest], theirs[honest]) if name in about else not np.array_equal(mine, theirs):
            return False
    return True


def _other_demand(demand: Array, rng: np.random.Generator) -> Array:
    reported = demand.copy()
    r = int(rng.integers(len(reported)))
    if (demand != np.floor(demand)).any() or demand.max() > _COUNTABLE * demand[demand > 0].min():
        return _other_amount(reported, r, rng)
    top = max(2.0, 2 * demand.max())
    kind = rng.integers(4)
    if kind == 0:
        reported[r] = max(reported[r] + rng.choice([-1.0, 1.0]), 0.0)
    elif kind == 1:
        reported[r] = rng.integers(top + 1)
    elif kind == 2:
        reported[r] = demand.max()
    else:
        reported = rng.integers(0, int(top) + 1, len(reported)).astype(float)
    return reported if reported.any() else np.maximum(demand, 1.0)


def _other_amount(demand: Array, r: int, rng: np.random.Generator) -> Array:
    """Measured amounts, such as cores and bytes: more or less of what is needed."""
    parts = rng.choice(_PARTS, len(demand)) if rng.integers(4) == 0 else 1.0
    demand *= parts
    if demand[r] > 0:
        demand[r] *= rng.choice(_PARTS)
    return demand


def _row(table: NDArray[np.generic], row: int, value: object) -> NDArray[np.generic]:
    changed = np.array(table)
    changed[row] = value
    return changed
