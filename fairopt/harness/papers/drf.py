"""DRF: the discrete scheduler, whole tasks by enumeration, and the market of CEEI (`data/drf.toml` has the claims)."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ...base import clock
from ...base.libraries import optimize
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...scheduling.discrete_drf import _decisions, discrete_drf
from ._ours import properties, shares, tasks

#: `_DRAWS`: number of random clusters for theorem 7. `_SEED`: seed of the clusters, always the same.
_DRAWS, _SEED = 20, 2011


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
    """Tasks x of three users in the market equilibrium of CEEI, solved for the price p of resource 1.

    :math:`x_n = 1 / (p d_{n1} + q d_{n2})`; all budgets are spent, so that `100 (p + q) = 3`; and resource 1 clears.
    """
    demand = ((4, 1), (1, 16), (16, 1))

    def bought(p: float) -> tuple[float, ...]:
        return tuple(1 / (p * d1 + (0.03 - p) * d2) for d1, d2 in demand)

    def excess(p: float) -> float:
        return sum(d1 * x for (d1, _), x in zip(demand, bought(p), strict=True)) - 100

    # Excess demand is 20 at the left end of the interval and negative at its right end; the other root, q = 0, violates
    # the capacity of resource 2.
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


def whole_shares_are_equal(cluster: Cluster) -> bool:
    """True if the dominant shares of `fairest_whole_tasks` are exactly equal."""
    return len(set(whole_shares(cluster))) == 1


def fairest_whole_tasks(cluster: Cluster) -> tuple[int, int]:
    """Lexicographic max-min of dominant shares over all placements of whole tasks of two users on identical nodes.

    `most[a]` is the largest number of tasks of the second user beside `a` tasks of the first, on one node at first, and
    after dynamic programming over nodes on all of them.
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


def within_one_max_task(_: object) -> bool:
    r"""True if dominant shares of whole tasks differ by at most the share of the largest task, on random clusters.

    For divisible tasks dominant shares are equal. The scheduler is that of the proof: it serves only the user with the
    lowest share, on the first machine with room; every machine has room for the largest task, :math:`\max_n d_{nr}`.
    """
    rng = np.random.default_rng(_SEED)
    for _ in range(_DRAWS):
        users, machines, resources = rng.integers((2, 1, 2), (5, 6, 4))
        demand = rng.integers(1, 10, (users, resources)).astype(float)
        capacity = demand.max(axis=0) + rng.integers(0, 40, (machines, resources))
        cluster = Cluster(capacity, demand)
        found = shares(cluster, "first-fit-drfh(strict=True)")
        if np.ptp(found) > (demand.max(axis=0) / cluster.pooled_capacity).max() * (1 + 1e-9):
            return False
    return True


def alone_with(_: object, mechanisms: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    """Mechanisms that have all the wanted properties, by the table of properties."""
    return [one for one in mechanisms if all(held is True for held in properties(None, [(one, p) for p in wanted]))]


def decisions_grow_slower(_: object) -> bool:
    """True if the time of a decision grows at most as the square root of the number of users, from 100 to 100,000.

    Times are medians of three runs of 3,000 decisions, without the time to arrange all users at first.
    """
    seconds = []
    for users in (100, 100_000):
        rng = np.random.default_rng(_SEED)
        cluster = Cluster([[1e9, 1e9]], rng.uniform(1, 2, (users, 2)))
        seconds.append(float(np.median([_per_decision(cluster) for _ in range(3)])))
    return bool(seconds[1] / seconds[0] < np.sqrt(1000))


def _per_decision(cluster: Cluster, number: int = 3000) -> float:
    run = _decisions(cluster, range(len(cluster.users)), skip=False)
    next(run)
    begun = clock.cpu()
    for _ in islice(run, number):
        pass
    return (clock.cpu() - begun) / number
