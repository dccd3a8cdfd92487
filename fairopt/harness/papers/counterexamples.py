"""Instances of our own: what is right of them, and what mechanisms do there (`data/counterexamples.toml`)."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np

from ...model._arrays import Array
from ...model.cluster import Cluster
from ._ours import solve, tasks


def naive() -> Cluster:
    """Server i has 1 unit of resource i and 100 of all others, as user i demands.

    Nine users need what it lacks, and take nine tenths of it for a ninetieth of their tasks. With `l = 1/100` the naive
    per-server DRF gives a user `e = (1 + 8 l + l^2) / 10` elsewhere and uses `(l + 9 e) / (l + 9)` of a resource.
    """
    like = np.full((10, 10), 100.0)
    np.fill_diagonal(like, 1.0)
    return Cluster(like, like, resources=[f"R{r}" for r in range(1, 11)])


def priced_apart(alpha: float) -> tuple[float, float]:
    """Large alpha: server 2 serves user 2 alone (1/2 a task); on server 1 only resource 1 is full.

    Hence `3 x1 + x2 = 5/2`. Equal marginal utility per unit of that resource:
    `(x2/x1)^alpha = 3 (gamma21/gamma11)^(alpha-1) = 3 (3/4)^(alpha-1)`.
    """
    ratio = (3 * 0.75 ** (alpha - 1)) ** (1 / alpha)
    return 2.5 / (3 + ratio), 2.5 * ratio / (3 + ratio)


def psdsf_family(x32: float) -> Array:
    """PS-DSF allocations of `found-41`, one for each `x32` (tasks of user 3 on server 2) in [11/51, 4/3].

    Users 1 and 3 have gammas in the ratio 3 on both servers, so who of them sits where is free. All levels on server 1
    are equal, `x = (6, 3, 2) s`; resource 1 is full there and resource 2 on server 2, which gives `19 s = 14 - x32`.
    At the ends user 1, or user 3, has nothing on server 1.
    """
    s, x12 = (14 - x32) / 19, 5 - 3 * x32
    return np.array([[6 * s - x12, x12], [3 * s, 0.0], [2 * s - x32, x32]])


def in_the_family(cluster: Cluster, x32: F) -> tuple[float, float]:
    """User 1's tasks in a member of the family, and the residual of its certificate."""
    from ...mechanisms import get

    allocation = psdsf_family(float(x32))
    certificate, _ = get("ps-dsf").certify(cluster, allocation)
    return float(allocation[0].sum()), certificate.residual


def on_the_segment(cluster: Cluster) -> bool:
    """True if user 1's tasks, as solved here, are from 4 to 74/17."""
    return bool(4 - 1e-6 <= tasks(cluster, "ps-dsf")[0] <= 74 / 17 + 1e-6)


def weighted_by_resource(cluster: Cluster) -> Array:
    """DRF with weights (1, 2) of A and (1, 1) of B by resource."""
    return tasks(cluster.derived(weight=np.ones(2)), "drf(resource_weights=((1.0, 2.0), (1.0, 1.0)))")


def envied(cluster: Cluster, weighted: bool) -> float:
    """Tasks of user 1 with what user 2 has, perhaps in the ratio of weights."""
    bundle = tasks(cluster, "ps-dsf")[1] * cluster.demand[1]
    part = cluster.weight[0] / cluster.weight[1] if weighted else 1.0
    return float((part * bundle / cluster.demand[0]).min())


def kalai_smorodinsky(cluster: Cluster) -> bool:
    """True if DRF gives maximal equal parts of what each user could run alone."""
    alone = cluster.gamma.sum(axis=1)
    fits = (alone @ cluster.demand / cluster.pooled_capacity).max()
    return bool(np.allclose(solve(cluster, "drf").arrays.user_tasks / alone, 1 / fits, rtol=1e-9))


#: Where servers that respond in turn come from and go to, alpha infinite (docs, best responses).
EVEN = [[F(1, 3), 0], [0, 1], [F(5, 9), 0]]


def rounds_in_turn(cluster: Cluster) -> list[Array]:
    """Tasks after one round of responses, and after two."""
    from ...game.best_responses import best_response  # instances load no modelling language

    begun = np.array(EVEN, dtype=float)
    return [
        best_response(cluster, np.inf, order="cyclic", start=begun, max_rounds=most, throw=False).tasks
        for most in (1, 2)
    ]


def come_to_rest_in_turn(cluster: Cluster) -> bool:
    """True if the state after two rounds differs from the first; False where they alternate."""
    return not np.allclose(rounds_in_turn(cluster)[-1], np.array(EVEN, dtype=float))
