"""DRF: the discrete scheduler, whole tasks by enumeration, and CEEI by its market (`data/drf.toml` has the claims)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.libraries import optimize
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...scheduling.discrete_drf import discrete_drf
from ._ours import tasks


def discrete_steps(cluster: Cluster, *ties: str) -> NDArray[np.object_]:
    """Schedule of discrete DRF by step: the user picked, shares of A and B (CPU, RAM, dominant), and totals."""
    return np.asarray(discrete_drf(cluster, ties=ties).to_numpy(dtype=object))


def discrete_beginning(cluster: Cluster, *ties: str) -> tuple[str, ...]:
    """Users picked by the first two steps of discrete DRF."""
    return tuple(map(str, discrete_steps(cluster, *ties)[:2, 0]))


def discrete_end(cluster: Cluster, *ties: str) -> Array:
    """Final usage (CPU, GB) of A and of B."""
    last = discrete_drf(cluster, ties=ties).iloc[-1]
    shares = last[["A CPU", "A RAM", "B CPU", "B RAM"]].to_numpy(dtype=float).reshape(2, 2)
    return np.asarray(shares * cluster.capacity[0])


def ceei_of_three() -> tuple[float, ...]:
    """Market equilibrium of CEEI, solved for the price p of resource 1.

    :math:`x_n = 1 / (p d_{n1} + q d_{n2})`, all budgets are spent so that `100 (p + q) = 3`, and resource 1 clears.
    """
    demand = ((4, 1), (1, 16), (16, 1))

    def bought(p: float) -> tuple[float, ...]:
        return tuple(1 / (p * d1 + (0.03 - p) * d2) for d1, d2 in demand)

    def excess(p: float) -> float:
        return sum(d1 * x for (d1, _), x in zip(demand, bought(p), strict=True)) - 100

    # Excess demand is 20 at the left end and negative at the right one; the root q = 0 violates the capacity of
    # resource 2.
    return bought(optimize.brentq(excess, 0.015, 0.025, xtol=1e-16))


def cpu_alone(cluster: Cluster) -> Array:
    """Tasks under max-min fairness of CPU alone, (users,)."""
    return tasks(cluster.select(resources=["CPU"]), "maxmin")


def ram_of_cpu_alone(cluster: Cluster) -> float:
    """RAM used by max-min fairness of CPU alone."""
    return float(cpu_alone(cluster) @ cluster.demand[:, 1])


def whole_shares(cluster: Cluster) -> tuple[float, float]:
    """Dominant shares of `fairest_whole_tasks`."""
    first, second = fairest_whole_tasks(cluster) * cluster.dominant_share_per_task
    return float(first), float(second)


def whole_share(cluster: Cluster, user: int) -> float:
    """Dominant share of one user under `fairest_whole_tasks`."""
    return whole_shares(cluster)[user]


def whole_shares_are_equal(cluster: Cluster) -> bool:
    """True if the dominant shares of `fairest_whole_tasks` are exactly equal."""
    return len(set(whole_shares(cluster))) == 1


def fairest_whole_tasks(cluster: Cluster) -> tuple[int, int]:
    """Lexicographic max-min of dominant shares over all placements of whole tasks of two users on identical nodes.

    `most[a]` is the largest number of tasks of the second user beside `a` of the first, on one node, and by dynamic
    programming on all.
    """
    demand, capacity = cluster.demand, cluster.capacity[0]
    first = np.arange(int(np.min(capacity / demand[0])) + 1)
    most = one = ((capacity - first[:, None] * demand[0]) / demand[1]).min(axis=1).astype(np.int64)
    for _ in range(1, len(cluster.servers)):
        sums = np.full(len(most) + len(one) - 1, -1)
        for a, b in enumerate(one):
            sums[a : a + len(most)] = np.maximum(sums[a : a + len(most)], most + b)
        most = sums
    share = cluster.dominant_share_per_task
    best = max(range(len(most)), key=lambda a: sorted((a * share[0], int(most[a]) * share[1])))
    return best, int(most[best])
