"""Instances of this project with their correct values (`data/counterexamples.toml` has the claims)."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np

from ...model._arrays import Array
from ...model.cluster import Cluster
from ._ours import solve, tasks


def naive() -> Cluster:
    """Counterexample to per-server DRF: server i has 1 unit of resource i and 100 units of each other resource.

    A task of user i demands just the capacity of server i. On server i the nine other users use nine tenths of the
    scarce resource i: at equal dominant shares of 1/10, user i runs 1/10 task, each other user `l / 10` tasks with
    `l = 1/100`. Every user thus runs `(1 + 9 l) / 10` tasks, which is also the utilization of each resource.
    """
    like = np.full((10, 10), 100.0)
    np.fill_diagonal(like, 1.0)
    return Cluster(like, like, resources=[f"R{r}" for r in range(1, 11)])


def priced_apart(alpha: float) -> tuple[float, float]:
    """Closed form of the tasks of two users for large alpha.

    Server 2 runs half a task of user 2, and server 1 exhausts only resource 1.
    """
    ratio = (3 * 0.75 ** (alpha - 1)) ** (1 / alpha)
    return 2.5 / (3 + ratio), 2.5 * ratio / (3 + ratio)


def psdsf_family(x32: float) -> Array:
    """PS-DSF allocations of `found-41`, one for each `x32` (tasks of user 3 on server 2) in [11/51, 4/3].

    The gammas of users 1 and 3 have the same ratio on both servers, so these users can be exchanged between servers.
    All levels on server 1 are equal, `x = (6, 3, 2) s`; resource 1 is exhausted there and resource 2 on server 2, which
    gives `19 s = 14 - x32`. At the ends of the interval user 1 or user 3 has no tasks on server 1.
    """
    s, x12 = (14 - x32) / 19, 5 - 3 * x32
    return np.array([[6 * s - x12, x12], [3 * s, 0.0], [2 * s - x32, x32]])


def in_the_family(cluster: Cluster, x32: F) -> tuple[float, float]:
    """Tasks of user 1 in the allocation `psdsf_family(x32)`, and the residual of the certificate of PS-DSF."""
    from ...mechanisms import get

    allocation = psdsf_family(float(x32))
    certificate, _ = get("ps-dsf").certify(cluster, allocation)
    return float(allocation[0].sum()), certificate.residual


def on_the_segment(cluster: Cluster) -> bool:
    """True if the computed tasks of user 1 under PS-DSF are in [4, 74/17]."""
    return bool(4 - 1e-6 <= tasks(cluster, "ps-dsf")[0] <= 74 / 17 + 1e-6)


def weighted_by_resource(cluster: Cluster) -> Array:
    """Tasks under DRF with weights by resource: (1, 2) of user A and (1, 1) of user B."""
    return tasks(cluster.derived(weight=np.ones(2)), "drf(resource_weights=((1.0, 2.0), (1.0, 1.0)))")


def envied(cluster: Cluster, weighted: bool) -> float:
    """Tasks that user 1 could run with the bundle of user 2, optionally scaled by the ratio of weights."""
    bundle = tasks(cluster, "ps-dsf")[1] * cluster.demand[1]
    part = cluster.weight[0] / cluster.weight[1] if weighted else 1.0
    return float((part * bundle / cluster.demand[0]).min())


def kalai_smorodinsky(cluster: Cluster) -> bool:
    """True if DRF is the Kalai-Smorodinsky solution: the largest equal fractions of monopoly tasks."""
    alone = cluster.gamma.sum(axis=1)
    fits = (alone @ cluster.demand / cluster.pooled_capacity).max()
    return bool(np.allclose(solve(cluster, "drf").arrays.user_tasks / alone, 1 / fits, rtol=1e-9))


#: Initial tasks from which cyclic best responses alternate between two states at infinite alpha.
EVEN = [[F(1, 3), 0], [0, 1], [F(5, 9), 0]]


def rounds_in_turn(cluster: Cluster) -> list[Array]:
    """Tasks after one and after two rounds of cyclic best responses."""
    from ...game.best_responses import best_response  # deferred, as instances do not need CVXPY

    begun = np.array(EVEN, dtype=float)
    return [
        best_response(cluster, np.inf, order="cyclic", start=begun, max_rounds=most, throw=False).tasks
        for most in (1, 2)
    ]


def come_to_rest_in_turn(cluster: Cluster) -> bool:
    """True unless best responses return to the initial state after two rounds."""
    return not np.allclose(rounds_in_turn(cluster)[-1], np.array(EVEN, dtype=float))
