"""PF: figure 1, whose demand vectors are lost, and its correct allocations (`data/pf.toml` has the claims)."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np

from ...model._arrays import Array
from ...model.cluster import Cluster
from ._ours import beyond_corner, solve, tasks

#: Further parameters (a1, a2, a4, b) of `figure1` that the text admits, including corners of their set.
OTHERS: tuple[tuple[float, float, float, float], ...] = (
    (0, 0, 0, 6.25),
    (1.6, 1, 0.5, 6),
    (1, 1, 0, 3.8),
    (0.3, 0.7, 0.1, 4.5),
)


def figure1(a1: float = 1, a2: float = 1, a4: float = 0.5, b: float = 5, variant: bool = False) -> Cluster:
    """Cluster of figure 1 for parameters that the text admits; in the `variant` user 4 demands [1, 0.5, 0]."""
    return Cluster(
        capacity=[[12, 4, 75], [8, 16, 0]],
        demand=[[a1, 1, b], [a2, 1 / 3, b], [0.25, 1, 0], [1, 0.5, 0] if variant else [a4, 1, 0]],
        resources=["CPU", "RAM", "bandwidth"],
        users=[f"user {n}" for n in range(1, 5)],
        servers=["server 1", "server 2"],
    )


def figure2() -> Cluster:
    """Cluster of figure 2, the variant of figure 1."""
    return figure1(variant=True)


def virtual_shares(cluster: Cluster, *pairs: tuple[int, int]) -> list[float]:
    """Virtual dominant shares under PS-DSF of (user, server) pairs, counted from 1."""
    shares = solve(cluster, "ps-dsf").arrays.virtual_dominant_shares
    return [shares[n - 1, i - 1] for n, i in pairs]


def bottlenecks(cluster: Cluster) -> list[int]:
    """Indices, from 1, of resources that limit all users, each alone, on all usable servers (definition 2)."""
    users, servers = np.nonzero(cluster.usable)
    needed = cluster.demand[users]
    parts = np.divide(needed, cluster.capacity[servers], out=np.zeros_like(needed), where=needed > 0)
    return [r + 1 for r in range(parts.shape[1]) if (parts[:, r] >= parts.max(axis=1) * (1 - 1e-12)).all()]


def is_psdsf(cluster: Cluster) -> bool:
    """True if the certificate of PS-DSF passes: no user gains tasks unless a user with a smaller share loses tasks."""
    return solve(cluster, "ps-dsf").certificate.passes(1e-6)


def maxmin_ram(cluster: Cluster) -> Array:
    """Tasks under max-min fairness of RAM, the bottleneck, (users,)."""
    placed = cluster.replace(eligible=cluster.usable)  # users that need bandwidth cannot use the RAM of server 2
    return tasks(placed.select(resources=["RAM"]), "cmmf")


def is_maxmin_ram(cluster: Cluster, mechanism: str) -> bool:
    """True if a mechanism yields the max-min allocation of RAM."""
    return bool(np.allclose(tasks(cluster, mechanism), maxmin_ram(cluster), rtol=1e-6))


def uses_more_ram(cluster: Cluster, better: str, than: tuple[str, ...]) -> bool:
    """True if a mechanism uses more RAM than every mechanism in `than`, and no less of the CPU of server 2."""

    def used(mechanism: str) -> tuple[float, float]:
        found = solve(cluster, mechanism)
        return float(found.utilization["RAM"]), float(found.used_parts.loc["server 2", "CPU"])

    ram, cpu = used(better)
    return all(ram > other * 1.01 and cpu >= of * (1 - 1e-6) for other, of in map(used, than))


def elsewhere(cluster: Cluster, mechanism: str, variant: bool) -> list[Array]:
    """Tasks for further admissible demands, an array (users,) for each choice in `OTHERS`."""
    return [tasks(figure1(*choice, variant), mechanism) for choice in OTHERS]


def variant_tasks(alpha: float) -> tuple[F | float, ...]:
    """Tasks of the four users in the variant under alphaPF-VDS.

    Up to a threshold of alpha, CPU and RAM of server 2 are exhausted, and beyond it only CPU.
    """
    return 2, 6, *beyond_corner(alpha, 1.5, (F(96, 7), F(32, 7)), 32, 4)


def variant_ram(alpha: float) -> F | float:
    """Utilization of RAM on server 2 by the tasks `variant_tasks`."""
    _, _, x3, x4 = variant_tasks(alpha)
    return (x3 + x4 / 2) / 16


#: Alphas from nearly utilitarian to max-min, with a finer grid around 1.
_ALPHAS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0)
_STARTS = 4


def best_responses_end_here(cluster: Cluster) -> bool:
    """True if best responses converge to the closed-form tasks from random starts, for all alphas."""
    from ...game.best_responses import best_response  # deferred, as instances do not need CVXPY

    rng = np.random.default_rng(5)
    for alpha in (*_ALPHAS, math.inf):
        right = np.array(variant_tasks(alpha) if cluster == figure2() else (2, 6, 8, 8), dtype=float)
        for _ in range(_STARTS):
            split = rng.dirichlet(np.ones(len(cluster.users)), len(cluster.servers)).T
            start = cluster.gamma * split * rng.uniform()
            found = best_response(cluster, alpha, start=start, tol=1e-8, max_rounds=3000, throw=False)
            if not np.allclose(found.arrays.user_tasks, right, rtol=1e-5):
                return False
    return True
