"""Claims about properties that are in the papers' text rather than in their examples, with instances of our own.

DRF 4.3 (weights), PF's definitions as they must read, DRFH III-D (naive shares), and where max-min of dominant shares
is the bargaining solution of Kalai and Smorodinsky.
"""

from __future__ import annotations

from fractions import Fraction as F
from functools import partial
from itertools import chain

import numpy as np

from ..model.cluster import Cluster
from ._claim import Claim, Compute, Printed
from ._instance import Instance
from ._ours import reading, solve, tasks

#: Servers, users and resources of DRFH's naive shares, and what a server lacks of one resource.
NAIVE, LACK = 10, 100


def _naive() -> Cluster:
    """Server i has 1 unit of resource i and 100 of all others, as user i demands."""
    like = np.full((NAIVE, NAIVE), float(LACK))
    np.fill_diagonal(like, 1.0)
    return Cluster(like, like, resources=[f"R{r}" for r in range(1, NAIVE + 1)])


INSTANCES = (
    Instance(
        "drf-weights",
        "DRF",
        "4.3",
        "the example of 4.1, user B with twice the weight of user A",
        partial(Cluster, [[9, 18]], [[1, 4], [3, 1]], [1, 2], resources=["CPU", "RAM"], users=["A", "B"]),
    ),
    Instance(
        "pf-weights",
        "PF",
        "4",
        "two like users, weights 1 and 2",
        partial(Cluster, [[6]], [[1], [1]], [1, 2], resources=["CPU"]),
    ),
    Instance("drfh-naive", "DRFH", "III-D", "ten servers, each lacks what nine of ten users need", _naive),
    Instance(
        "drf-zeros",
        "DRF",
        "6",
        "three users, two of which demand one resource only",
        partial(Cluster, [[1, 2]], [[1, 0], [1, 1], [0, 1]], resources=["CPU", "RAM"]),
    ),
)


def claims() -> tuple[Claim, ...]:
    """All of them."""
    return tuple(chain(_weights(), _definitions(), _naive_shares(), _bargaining()))


def _weights() -> tuple[Claim, ...]:
    of = partial(Claim, 21, "DRF", "4.3", "drf-weights")
    ratio = Printed("shares in the ratio w_i/w_j", 2)
    return (
        of("DRF: tasks", tasks("drf"), (F(9, 5), F(12, 5))),
        of("equal weights of a user: dominant shares of B and A, ratio", _ratio, 2, ratio),
        of(
            "weights (1, 2) and (1, 1) by resource: tasks",
            _by_resource,
            (F(54, 13), F(18, 13)),
            note="max_j u_ij / w_ij: x_A/9 = y_B/3, and RAM is used up",
        ),
    )


def _ratio(cluster: Cluster) -> float:
    share = solve(cluster, "drf").user_tasks * cluster.dominant_share_per_task
    return float(share[1] / share[0])


def _by_resource(cluster: Cluster) -> object:
    equal = cluster.derived(weight=np.ones(2))
    return solve(equal, "drf", resource_weights=((1.0, 2.0), (1.0, 1.0))).user_tasks


def _definitions() -> tuple[Claim, ...]:
    """The text has the weights of envy and of the equal part wrong or not at all; so they must read."""
    of = partial(Claim, 36, "PF", "4", "pf-weights")
    note = "U_n(a_n) >= U_n((phi_n/phi_m) a_m); without the weights whoever weighs less envies"
    return (
        of("PS-DSF: tasks", tasks("ps-dsf"), (2, 4)),
        of("envy of (phi_n/phi_m) a_m: tasks of user 1 with what user 2 has", _envied(True), 2, note=note),
        of("envy of a_m: tasks of user 1 with what user 2 has", _envied(False), 4, note=note),
        of(
            "sharing incentive: phi_n / sum_m phi_m of the server",
            _part,
            (2, 4),
            note="so it must read: parts of all add up to the server",
        ),
    )


def _envied(weighted: bool) -> Compute:
    def value(cluster: Cluster) -> float:
        bundle = solve(cluster, "ps-dsf").user_tasks[1] * cluster.demand[1]
        part = cluster.weight[0] / cluster.weight[1] if weighted else 1.0
        return float((part * bundle / cluster.demand[0]).min())

    return value


def _part(cluster: Cluster) -> object:
    return cluster.weight / cluster.weight.sum() * cluster.gamma.sum(axis=1)


def _naive_shares() -> tuple[Claim, ...]:
    """On server i nine users need what it lacks, and take nine tenths of it for a ninetieth of their tasks."""
    of = partial(Claim, 24, "DRFH", "III-D", "drfh-naive")
    lack = F(1, LACK)
    elsewhere = (1 + (NAIVE - 2) * lack + lack**2) / NAIVE
    low = (lack + (NAIVE - 1) * elsewhere) / (lack + NAIVE - 1)
    note = f"with m servers and users about 1/m is used: as little as one likes (m = {NAIVE} here)"
    return (
        of("naive per-server DRF: used part of resource 1", reading(_used, "per-server-drf"), low, note=note),
        of("DRFH: used part of resource 1", reading(_used, "drfh"), 1, note=note),
    )


def _used(found: object) -> float:
    return float(found.usage.sum(axis=(0, 1))[0] / found.cluster.pooled_capacity[0])  # type: ignore[attr-defined]


def _bargaining() -> tuple[Claim, ...]:
    """Equal parts of what each could run alone, as large as fits: with positive demands that is DRF on its pool."""
    note = "Kalai-Smorodinsky: x_n / (tasks of n alone) equal; only with positive demands"
    yes = partial(Claim, 2, "DRF", "4.1", "drf-4.1", note=note)
    no = partial(Claim, 2, "DRF", "6", "drf-zeros", note=note)
    return (
        yes("DRF is the bargaining solution of Kalai and Smorodinsky", _kalai_smorodinsky, True),
        no("DRF is the bargaining solution of Kalai and Smorodinsky, with zeros", _kalai_smorodinsky, False),
        no("DRF: tasks", tasks("drf"), (F(1, 2), F(1, 2), F(3, 2))),
    )


def _kalai_smorodinsky(cluster: Cluster) -> bool:
    part = solve(cluster, "drf").user_tasks / cluster.gamma.sum(axis=1)
    fits = (cluster.gamma.sum(axis=1) @ cluster.demand / cluster.pooled_capacity).max()
    return bool(np.allclose(part, 1 / fits, rtol=1e-9))
