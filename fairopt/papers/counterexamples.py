"""Small instances found while checking the papers: what mechanisms do not satisfy, exactly (catalogue, section H)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ._claim import Claim, Compute, Instance, Printed
from ._ours import (
    SMOOTH,
    TOL,
    Numbers,
    everyone_gains,
    incentive_shortfall,
    monopoly_tasks,
    reading,
    resource_shares,
    solve,
    tasks,
)

Matrix = Sequence[Sequence[float]]
#: Servers, users and resources of DRFH's naive shares, and what a server lacks of one resource.
NAIVE, LACK = 10, 100


def _instance(item: int, about: str, capacity: Matrix, demand: Matrix, barred: int | None = None) -> Instance:
    """`barred`: a user (from 1) kept off server 2."""
    numbers = range(1, len(demand) + 1)
    build = partial(
        Cluster,
        capacity,
        demand,
        eligible=[[True, n != barred] for n in numbers],
        resources=["r1", "r2"],
        users=[f"user {n}" for n in numbers],
        servers=["server 1", "server 2"],
    )
    return Instance(f"found-{item}", "found here", f"item {item}", about, build)


_FOUND = (
    _instance(37, "DRFH violates sharing incentive, without constraints", [(6, 1), (1, 2)], [(1, 2), (1, 1)]),
    _instance(38, "PS-DSF is not Pareto optimal, without constraints", [(2, 2), (1, 2)], [(3, 2), (1, 4)]),
    _instance(39, "TSF violates bottleneck fairness of the pool", [(1, 2), (3, 1)], [(1, 3), (2, 2)]),
    _instance(40, "TSF violates sharing incentive as in PF", [(10, 10), (100, 1)], [(1, 1), (1, 0.01)], barred=2),
    _instance(41, "PS-DSF is not unique", [(9, 6), (14, 5)], [(1, 1), (3, 1), (2, 3)], barred=2),
)


def claims() -> tuple[Claim, ...]:
    """All of them derived by hand, apart from what PF's table 1 says about TSF."""
    return (*_sharing_incentive(), *_pareto(), *_bottleneck(), *_not_unique(), *_of_properties())


def _item(number: int) -> partial[Claim]:
    return partial(Claim, number, "found here", "", f"found-{number}")


def _half(cluster: Cluster) -> NDArray[np.float64]:
    return monopoly_tasks(cluster) / 2


def _sharing_incentive() -> tuple[Claim, ...]:
    free, barred = _item(37), _item(40)
    pf = partial(Claim, 40, "PF", "table 1", "found-40")
    tsf = incentive_shortfall("tsf")
    return (
        free("uniform division: tasks", _half, (F(3, 4), 1)),
        *(
            free(f"{name}: tasks", tasks(name), right)
            for name, right in (("drfh", (F(2, 3), F(4, 3))), ("ps-dsf", (1, 1)), ("tsf", (F(6, 7), F(8, 7))))
        ),
        *(
            free(f"{name}: sharing incentive violated by (tasks)", incentive_shortfall(name), right)
            for name, right in (("drfh", F(1, 12)), ("ps-dsf", 0), ("tsf", 0))
        ),
        barred("y: tasks on all servers, placement ignored", lambda cluster: cluster.gamma0.sum(axis=1), (11, 110)),
        barred("uniform division: tasks", _half, (F(11, 2), 5)),
        *(
            barred(f"{name}: tasks", tasks(name), right)
            for name, right in (("tsf", (1, 10)), ("drfh", (1, 10)), ("ps-dsf", (F(11, 2), F(11, 2))))
        ),
        barred("tsf: sharing incentive violated by (tasks)", tsf, F(9, 2)),
        barred("ps-dsf: sharing incentive violated by (tasks)", incentive_shortfall("ps-dsf"), 0),
        pf(
            "TSF satisfies sharing incentive",
            lambda cluster: tsf(cluster) <= TOL,
            False,
            Printed("yes", True),
            note="it must rest on another benchmark, in the TSF paper (text not available)",
        ),
    )


def _pareto() -> tuple[Claim, ...]:
    of = _item(38)
    dominating = (F(2, 3), F(2, 3))
    drfh = tasks("drfh")
    vds = {alpha: tasks("alphapf-vds", alpha=alpha) for alpha in (1.0, 4.0, 10.0)}
    return (
        of("PS-DSF: tasks", tasks("ps-dsf"), (F(2, 3), F(1, 2))),
        *(of(f"{name}: tasks", tasks(name), dominating) for name in ("drfh", "tsf")),
        of("PS-DSF: a feasible allocation gives someone more and nobody less", _dominated(tasks("ps-dsf")), True),
        of("alphaPF-VDS, alpha=1: tasks", vds[1.0], (F(4, 5), F(3, 5)), rtol=SMOOTH),
        of("alphaPF-VDS, alpha=1: dominated by DRFH", _dominated(vds[1.0]), False),
        *(
            of(f"alphaPF-VDS, alpha={alpha:g}: tasks", vds[alpha], _priced_apart(alpha), rtol=SMOOTH)
            for alpha in (4.0, 10.0)
        ),
        *(
            of(f"alphaPF-VDS, alpha={alpha:g}: DRFH gives everyone more", everyone_gains(drfh, than=vds[alpha]), True)
            for alpha in (4.0, 10.0)
        ),
    )


def _dominated(compute: Numbers) -> Compute:
    """Does DRFH's allocation give someone more tasks, by a hundredth at least, and nobody less?"""

    def decide(cluster: Cluster) -> bool:
        mine, other = compute(cluster), tasks("drfh")(cluster)
        return bool((other >= mine * (1 - 1e-7)).all() and (other > mine * 1.01).any())

    return decide


def _priced_apart(alpha: float) -> tuple[float, float]:
    """Large alpha: server 2 serves user 2 alone (1/2 a task); on server 1 only resource 1 is full.

    Hence `3 x1 + x2 = 5/2`. Equal marginal utility per unit of that resource:
    `(x2/x1)^alpha = 3 (gamma21/gamma11)^(alpha-1) = 3 (3/4)^(alpha-1)`.
    """
    ratio = (3 * 0.75 ** (alpha - 1)) ** (1 / alpha)
    return 2.5 / (3 + ratio), 2.5 * ratio / (3 + ratio)


def _bottleneck() -> tuple[Claim, ...]:
    of = _item(39)
    rows = (("tsf", (F(3, 5), F(3, 5)), (F(3, 5), F(2, 5))), ("drfh", (F(1, 2), F(3, 4)), (F(1, 2), F(1, 2))))
    return (
        of("resource 2 is dominant for both", lambda cluster: cluster.dominant_resource + 1, (2, 2)),
        *(of(f"{name}: tasks", tasks(name), right) for name, right, _ in rows),
        *(of(f"{name}: shares of resource 2", resource_shares("r2", name), shares) for name, _, shares in rows),
    )


def psdsf_family(x32: float) -> NDArray[np.float64]:
    """PS-DSF allocations of `found-41`, one for each `x32` (tasks of user 3 on server 2) in [11/51, 4/3].

    Users 1 and 3 have gammas in the ratio 3 on both servers, so who of them sits where is free. All levels on server 1
    are equal, `x = (6, 3, 2) s`; resource 1 is full there and resource 2 on server 2, which gives `19 s = 14 - x32`.
    At the ends user 1, or user 3, has nothing on server 1.
    """
    s, x12 = (14 - x32) / 19, 5 - 3 * x32
    return np.array([[6 * s - x12, x12], [3 * s, 0.0], [2 * s - x32, x32]])


def _not_unique() -> tuple[Claim, ...]:
    of = _item(41)
    # The ends of the segment, and between them the two values that the catalogue's random starts reached.
    statement = "user 1's tasks in a PS-DSF allocation ({}), and the certificate's residual"
    members = {F(11, 51): F(74, 17), F(101, 147): F(206, 49), F(5, 6): F(79, 19), F(4, 3): F(4)}
    note = "catalogue: 4.1579 to 4.2041 by start; by hand a whole segment from 4 to 74/17 = 4.3529 passes"
    solved = tasks("ps-dsf")
    return (
        *(of(statement.format(right), _certified(x32), (right, 0), note=note) for x32, right in members.items()),
        of(
            "tasks as solved here, relative to user 1",
            lambda cluster: solved(cluster) / solved(cluster)[0],
            (1, F(1, 2), F(1, 3)),
        ),
        of(
            "user 1 as solved here is on the segment from 4 to 74/17",
            lambda cluster: bool(4 - 1e-6 <= solved(cluster)[0] <= 74 / 17 + 1e-6),
            True,
            note=note,
        ),
    )


def _certified(x32: F) -> Compute:
    def read(cluster: Cluster) -> tuple[float, float]:
        from ..mechanisms import get

        allocation = psdsf_family(float(x32))
        certificate, _ = get("ps-dsf").certify(cluster, allocation)
        return float(allocation[0].sum()), certificate.residual

    return read


def _naive() -> Cluster:
    """Server i has 1 unit of resource i and 100 of all others, as user i demands."""
    like = np.full((NAIVE, NAIVE), float(LACK))
    np.fill_diagonal(like, 1.0)
    return Cluster(like, like, resources=[f"R{r}" for r in range(1, NAIVE + 1)])


_OWN = (
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
    Instance(
        "pf-cycle",
        "PF",
        "5.2",
        "two servers that respond in turn, alpha infinite: they alternate for ever",
        partial(Cluster, [[2, 1, 1], [1, 1, 2]], [[1, 3, 0], [0, 1, 2], [3, 0, 1]], resources=["R1", "R2", "R3"]),
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


def _of_properties() -> tuple[Claim, ...]:
    """All of them."""
    return tuple(chain(_weights(), _definitions(), _in_turn(), _naive_shares(), _bargaining()))


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
    share = solve(cluster, "drf").arrays.user_tasks * cluster.dominant_share_per_task
    return float(share[1] / share[0])


def _by_resource(cluster: Cluster) -> object:
    equal = cluster.derived(weight=np.ones(2))
    return solve(equal, "drf", resource_weights=((1.0, 2.0), (1.0, 1.0))).arrays.user_tasks


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
        bundle = solve(cluster, "ps-dsf").arrays.user_tasks[1] * cluster.demand[1]
        part = cluster.weight[0] / cluster.weight[1] if weighted else 1.0
        return float((part * bundle / cluster.demand[0]).min())

    return value


def _part(cluster: Cluster) -> object:
    return cluster.weight / cluster.weight.sum() * cluster.gamma.sum(axis=1)


def _in_turn() -> tuple[Claim, ...]:
    """By the conditions of each response, in fractions (docs, best responses)."""
    even, odd = ((F(1, 3), 0), (0, 1), (F(5, 9), 0)), ((F(2, 7), F(1, 21)), (F(1, 7), F(6, 7)), (F(4, 7), F(2, 7)))
    of = partial(Claim, 34, "PF", "5.2", "pf-cycle")
    note = (
        "global convergence is claimed of the centralized algorithm (abstract, 5.1); the distributed one is a heuristic"
    )
    return (
        of("servers in turn, alpha infinite: tasks after one round and two", partial(_rounds, even), (odd, even)),
        of(
            "servers in turn, alpha infinite, come to an equilibrium from anywhere",
            lambda cluster: not np.allclose(_rounds(even, cluster)[-1], np.array(even, dtype=float)),
            False,
            Printed("a simple heuristic"),
            note=note,
        ),
    )


def _rounds(start: object, cluster: Cluster) -> list[NDArray[np.float64]]:
    from ..game.dynamics.distributed import best_response  # instances load no modelling language

    begun = np.array(start, dtype=float)
    return [
        best_response(cluster, np.inf, order="cyclic", start=begun, max_rounds=most, throw=False).tasks
        for most in (1, 2)
    ]


def _naive_shares() -> tuple[Claim, ...]:
    """On server i nine users need what it lacks, and take nine tenths of it for a ninetieth of their tasks."""
    of = partial(Claim, 24, "DRFH", "III-D", "drfh-naive")
    lack = F(1, LACK)
    elsewhere = (1 + (NAIVE - 2) * lack + lack**2) / NAIVE
    low = (lack + (NAIVE - 1) * elsewhere) / (lack + NAIVE - 1)
    note = f"with m servers and users about 1/m is used: as little as one likes (m = {NAIVE} here)"
    return (
        of("naive per-server DRF: used part of resource 1", reading(_used_part, "per-server-drf"), low, note=note),
        of("DRFH: used part of resource 1", reading(_used_part, "drfh"), 1, note=note),
    )


def _used_part(found: object) -> float:
    return float(found.arrays.usage.sum(axis=(0, 1))[0] / found.cluster.pooled_capacity[0])  # type: ignore[attr-defined]


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
    part = solve(cluster, "drf").arrays.user_tasks / cluster.gamma.sum(axis=1)
    fits = (cluster.gamma.sum(axis=1) @ cluster.demand / cluster.pooled_capacity).max()
    return bool(np.allclose(part, 1 / fits, rtol=1e-9))


INSTANCES = (*_OWN, *_FOUND)
