"""DRFH: its linear program (7), non-wasteful allocations, and equal divisions (`data/drfh.toml` has the claims)."""

from __future__ import annotations

import numpy as np

from ...base.libraries import cp
from ...model._arrays import Array
from ...model.cluster import Cluster
from ._ours import monopoly_tasks, tasks

#: `_DRAWS`: number of random clusters for claims about every cluster. `_SEED`: seed of the clusters, always the same.
_DRAWS, _SEED = 40, 1308


def _clusters(zeros: float = 0.0, placement: float = 0.0) -> list[Cluster]:
    """Random clusters of 2 to 4 users, 1 to 3 servers and 2 or 3 resources.

    `zeros` is the fraction of demands that are 0, `placement` the fraction of pairs that are not eligible.
    """
    rng, found = np.random.default_rng(_SEED), []
    for _ in range(_DRAWS):
        users, servers, resources = rng.integers((2, 1, 2), (5, 4, 4))
        capacity = rng.integers(1, 10, (servers, resources)).astype(float)
        demand = rng.integers(1, 10, (users, resources)) * (rng.random((users, resources)) >= zeros)
        demand[demand.sum(axis=1) == 0, 0] = 1
        eligible = rng.random((users, servers)) >= placement
        eligible[:, 0] = True
        found.append(Cluster(capacity, demand, eligible=eligible))
    return found


def program_7(cluster: Cluster) -> float:
    r"""Optimum of (7), :math:`\max g` with :math:`g_{il} \ge 0`, :math:`\sum_l g_{il} = g`, `sum_i g_il d_ir <= c_lr`.

    d are demands relative to the dominant demand of the user, and c capacities relative to the pool.
    """
    ratio = cluster.share_per_task / cluster.dominant_share_per_task[:, None]
    g, level = cp.Variable(cluster.shape[:2], nonneg=True), cp.Variable()
    fits = g.T @ ratio <= cluster.capacity / cluster.pooled_capacity
    placed = cp.multiply(g, ~cluster.eligible) == 0
    return float(cp.Problem(cp.Maximize(level), [cp.sum(g, axis=1) == level, fits, placed]).solve(cp.SCIPY))


def _shares(cluster: Cluster) -> Array:
    return np.asarray(tasks(cluster, "drfh") * cluster.dominant_share_per_task)


def program_7_is_drfh(_: object) -> bool:
    """True if all users have the optimum of (7) under DRFH, on random clusters with positive demands."""
    return all(np.allclose(_shares(one), program_7(one), rtol=1e-6) for one in _clusters())


def program_7_is_the_least(_: object) -> bool:
    """True if the least share under DRFH is the optimum of (7), on random clusters with zero demands and placement."""
    return all(np.isclose(_shares(one).min(), program_7(one), rtol=1e-6) for one in _clusters(0.3, 0.3))


def beyond_7(cluster: Cluster) -> Array:
    """Dominant shares under DRFH minus the optimum of (7), (users,)."""
    return _shares(cluster) - program_7(cluster)


def non_wasteful(_: object) -> tuple[bool, bool]:
    """Whether all bundles proportional to demands are non-wasteful, and whether all other bundles waste something.

    A bundle is non-wasteful if it runs fewer tasks without a small part of any of its resources.
    """
    rng = np.random.default_rng(_SEED)
    proportional, others = list[bool](), list[bool]()
    for _ in range(_DRAWS):
        demand, bundle = rng.integers(1, 10, (2, 3)).astype(float)
        for found, one in ((proportional, bundle[0] * demand), (others, bundle)):
            if found is others and np.ptp(one / demand) == 0:
                continue
            less = [(one - 1e-3 * np.eye(3)[r] * one) / demand for r in range(3)]
            found.append(all(part.min() < (one / demand).min() for part in less))
    return all(proportional), not any(others)


def equal_divisions(cluster: Cluster) -> tuple[bool, int]:
    """Compare the tasks of user 1 under mixtures of the divisions (a) and (b) of section IV-D.

    Returns whether all mixtures give user 1 half of the pool, and how many different results the tasks have.
    """
    other = np.array([[1.5, 5.5], [5.5, 1.5]])
    parts = [weight * other + (1 - weight) * cluster.capacity for weight in np.linspace(0, 0.3, 5)]
    half = all(np.allclose(part.sum(axis=0), cluster.pooled_capacity) for part in parts)
    return half, len({float(round(monopoly_tasks(cluster.replace(capacity=part))[0], 9)) for part in parts})
