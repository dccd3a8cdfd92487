"""DRFH: Wang, Li, Liang, "Dominant Resource Fairness in Cloud Computing Systems with Heterogeneous Servers", 2014.

arXiv 1308.0083. Vectors and numbers that the available text lost are forced by what it says; they count as derived.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from functools import partial

from ..model.cluster import Cluster
from ._claim import Claim, Instance, Printed
from ._ours import dominant_shares, everyone_gains, filled, monopoly_tasks, placement, tasks, used

NAME = "drfh-fig1"
USER1, USER2 = ("user 1", (0.2, 1)), ("user 2", (1, 0.2))


def _instance(
    name: str, where: str, about: str, capacity: Sequence[Sequence[float]], *users: tuple[str, tuple[float, float]]
) -> Instance:
    names, demand = zip(*users, strict=True)
    build = partial(Cluster, capacity, demand, resources=["CPU", "RAM"], users=names, servers=["server 1", "server 2"])
    return Instance(name, "DRFH", where, about, build)


#: CPU, memory and number: of all mixes of the first six types of table I the likeliest with the printed totals
#: 52.75 and 51.32 (the latter of the trace's unrounded numbers).
FIGURE4 = ((0.5, 0.4995, 70), (0.5, 0.2493, 13), (0.5, 0.749, 9), (1, 1, 6), (0.25, 0.2498, 1), (0.5, 0.1241, 1))


def _alone() -> Cluster:
    capacity = [row[:2] for row in FIGURE4 for _ in range(int(row[2]))]
    return Cluster(capacity, [[0.2, 0.3]], resources=["CPU", "RAM"], users=["user 1"])


INSTANCES = (
    Instance("drfh-fig4-alone", "DRFH", "VI, figure 4", "100 of Google's servers, user 1 of the experiment", _alone),
    _instance(NAME, "figure 1", "a high-memory and a high-CPU server, two users", [(2, 12), (12, 2)], USER1, USER2),
    _instance("drfh-fig1-alone", "figure 1", "the two servers of figure 1 for user 1 alone", [(2, 12), (12, 2)], USER1),
    _instance("drfh-division-a", "IV-D", "equal division (a): half of each server", [(1, 6), (6, 1)], USER1, USER2),
    _instance("drfh-division-b1", "IV-D", "equal division (b): the part of user 1", [(1.5, 5.5), (5.5, 1.5)], USER1),
    _instance("drfh-division-b2", "IV-D", "equal division (b): the part of user 2", [(0.5, 6.5), (6.5, 0.5)], USER2),
)


def claims() -> tuple[Claim, ...]:
    """All claims with an exact answer; what its trace-driven experiments show is in docs/simulation.md."""
    return (*_normalised(), *_shared(), *_divisions(), *_whole_tasks())


def _normalised() -> tuple[Claim, ...]:
    of = partial(Claim, 23, "DRFH", "III-A, figure 1", NAME, note="vectors missing in the available text")
    return (
        of(
            "normalised capacities",
            lambda cluster: cluster.capacity / cluster.pooled_capacity,
            ((F(1, 7), F(6, 7)), (F(6, 7), F(1, 7))),
        ),
        of(
            "demands D as shares of the system",
            lambda cluster: cluster.share_per_task,
            ((F(1, 70), F(1, 14)), (F(1, 14), F(1, 70))),
        ),
        of(
            "normalised demands d = D / max D",
            lambda cluster: cluster.share_per_task / cluster.dominant_share_per_task[:, None],
            ((F(1, 5), 1), (1, F(1, 5))),
        ),
    )


def _shared() -> tuple[Claim, ...]:
    naive = partial(Claim, 24, "DRFH", "III-D, figure 2", NAME)
    drfh = partial(Claim, 25, "DRFH", "IV-A, figure 3", NAME)
    ten = Printed("10 tasks each", (10, 10))
    return (
        naive(
            "DRF per server: tasks on server 1, on server 2",
            placement("per-server-drf"),
            ((5, 1), (1, 5)),
            Printed("5 and 1, 1 and 5"),
        ),
        naive("per-server DRF: tasks", tasks("per-server-drf"), (6, 6), Printed("6 tasks each")),
        naive(
            "DRFH gives everyone more than DRF per server",
            everyone_gains(tasks("drfh"), than=tasks("per-server-drf")),
            True,
            Printed("not Pareto optimal"),
        ),
        drfh("DRFH: tasks", tasks("drfh"), (10, 10), ten),
        drfh(
            "DRFH: a server for each",
            placement("drfh"),
            ((10, 0), (0, 10)),
            Printed("server 1 to user 1, server 2 to user 2"),
        ),
        drfh(
            "DRFH: global dominant shares",
            dominant_shares("drfh"),
            (F(5, 7), F(5, 7)),
            note="value missing in the available text",
        ),
        *(drfh(f"{name}: tasks", tasks(name), (10, 10)) for name in ("ps-dsf", "tsf")),
        Claim(25, "DRFH", "IV-A, figure 3", "drfh-fig1-alone", "DRFH of user 1 alone: tasks", tasks("drfh"), (12,)),
    )


def _whole_tasks() -> tuple[Claim, ...]:
    of = partial(Claim, 27, "DRFH", "VI, figure 4", "drfh-fig4-alone")
    note = "on the likeliest mix of servers with the printed totals; 115 mixes have them, and give 106 or 107"
    return (
        of("Best-Fit DRFH, online: tasks", filled("best-fit-drfh"), (106,), note=note),
        of(
            "Best-Fit DRFH, online: used CPU and RAM",
            used("best-fit-drfh"),
            (F(2120, 5275), F(318, 1000) / F(513208, 10**6)),
            Printed("40% of CPU, 62% of RAM", (0.40, 0.62), 2),
            note=note,
        ),
    )


def _divisions() -> tuple[Claim, ...]:
    a, b1, b2 = (partial(Claim, 26, "DRFH", "IV-D", f"drfh-division-{part}") for part in ("a", "b1", "b2"))
    seven = Printed("7 CPU and 7 GB each", (7, 7))
    note = "the paper calls both divisions equal; (b) is not symmetric in tasks"
    return (
        *(part("CPU and GB in all", lambda cluster: cluster.pooled_capacity, (7, 7), seven) for part in (a, b1, b2)),
        a("tasks in it", monopoly_tasks, (6, 6)),
        b1("tasks in it", monopoly_tasks, (7,), note=note),
        b2("tasks in it", monopoly_tasks, (3,), note=note),
    )
