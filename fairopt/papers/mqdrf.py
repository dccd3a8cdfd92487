"""MQDRF: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing".

Besides what the claims show, its text errs in passing: equation (1) sums over `i = 1..r` instead of users, (2) runs
over the wrong index, figure 1's user 2 needs "1 GB time" instead of 1 CPU, and figure 5 is figure 3.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction as F
from functools import partial
from itertools import chain
from typing import Any

from ..model.cluster import Cluster
from ._claim import Claim, Compute, Instance, Printed
from ._ours import TOL, dominant_shares, everyone_gains, filled, gain_from_lying, reading, resource_shares, tasks, use

_ARRIVING = ((0.01, 0.02), (0.02, 0.01), (0.01, 0.01))
#: `DK_1 = 0.4` follows from the experiment; the paper gives no other, so these only have to sum to at most 1.
SHARES = (0.4, 0.3, 0.3)


def _dynamic(present: int) -> Instance:
    users = [f"user {n}" for n in range(1, present + 1)]
    build = partial(Cluster, [[1, 1]], _ARRIVING[:present], resources=["CPU", "RAM"], users=users, servers=["server"])
    about = f"one server (1, 1), users 1 to {present} there"
    return Instance(f"mqdrf-dynamic-{present}", "MQDRF", "Dynamic allocation", about, build)


INSTANCES = (
    Instance(
        "mqdrf-fig1",
        "MQDRF",
        "2.1, figure 1",
        "one server of 2 CPU and 5 GB, a memory- and a CPU-heavy user",
        partial(
            Cluster,
            [[2, 5]],
            [[0.2, 1], [1, 0.2]],
            resources=["CPU", "RAM"],
            users=["user 1", "user 2"],
            servers=["server"],
        ),
    ),
    *(_dynamic(present) for present in (1, 2, 3)),
)


def claims() -> tuple[Claim, ...]:
    """All claims with numbers, and the false ones."""
    return (*_figure1(), *_arrivals(), *_errors())


def _figure1() -> tuple[Claim, ...]:
    of = partial(Claim, 30, "MQDRF", "2.1, figure 1", "mqdrf-fig1")
    demand = ((F(1, 10), F(1, 5)), (F(1, 2), F(1, 25)))
    return (
        of(
            "normalised demands",
            lambda cluster: cluster.share_per_task,
            demand,
            Printed("(0.1, 0.2), (0.5, 0.04)"),
        ),
        of("DRF: tasks", tasks("drf"), (F(10, 3), F(4, 3))),
        of("DRF: dominant shares", dominant_shares("drf"), (F(2, 3), F(2, 3))),
        of("DRF: used part of CPU and RAM", use("overall", ["CPU", "RAM"], "drf"), (1, F(18, 25))),
    )


def _arrivals() -> tuple[Claim, ...]:
    rows = (
        (1, "0 s", 20, (F(1, 5), F(2, 5)), Printed("20% of CPU, 40% of memory", (0.2, 0.4))),
        (2, "100 s", 20, (F(2, 5), F(1, 5)), None),
        (3, "300 s", 40, (F(2, 5), F(2, 5)), None),
    )
    online = Claim(
        31,
        "MQDRF",
        "Dynamic allocation",
        "mqdrf-dynamic-3",
        "online, as they come: whole tasks of each",
        filled("mqdrf(shares=(0.4,0.3,0.3), sizes=(1,1,1))", come=(0.0, 100.0, 300.0)),
        (20, 20, 40),
        note="tasks outlast the experiment, and stay when a cap falls",
    )
    return (*chain.from_iterable(_arrival(*row) for row in rows), online)


def _arrival(present: int, time: str, count: int, shares: tuple[F, F], printed: Printed | None) -> tuple[Claim, Claim]:
    """The newest user in level 1; everyone else a level further for every arrival since."""
    of = partial(Claim, 31, "MQDRF", "Dynamic allocation", f"mqdrf-dynamic-{present}")
    queue: dict[str, Any] = {"shares": SHARES, "sizes": (1, 1, 1), "levels": tuple(range(present, 0, -1))}
    note = "0.4 = DK_1/N_1 read as a cap per user; DK_2 and DK_3 are not given (0.3 here)"
    newest = reading(lambda found: found.arrays.user_tasks[-1], "mqdrf", **queue)
    fixed_share = reading(
        lambda found: found.arrays.usage.sum(axis=1)[-1] / found.cluster.pooled_capacity, "mqdrf", **queue
    )
    return (
        of(f"from {time}: tasks of the newest user", newest, count, note=note),
        of(f"from {time}: its share of CPU and RAM", fixed_share, shares, printed, note=note),
    )


def _errors() -> tuple[Claim, ...]:
    alone, level, three = (
        partial(Claim, 32, "MQDRF", where, f"mqdrf-dynamic-{present}")
        for present, where in ((1, "theorem 3"), (2, "equation (5)"), (3, "3, property (1)"))
    )
    one_user = tasks("mqdrf", shares=(0.4,), sizes=(1,))
    two_users: dict[str, Any] = {"shares": (0.8,), "sizes": (2,)}
    level_cpu = resource_shares("CPU", "mqdrf", **two_users)
    fig1 = partial(Claim, 32, "MQDRF", "abstract, conclusion", "mqdrf-fig1")
    sp = partial(Claim, 32, "MQDRF", "theorem 2", "mqdrf-dynamic-1")
    return (
        alone("MQDRF: tasks of user 1 alone under the cap", one_user, (20,)),
        alone("tasks of user 1 that would fit", tasks("drf"), (50,)),
        alone(
            "MQDRF is Pareto efficient",
            _not(everyone_gains(tasks("drf"), than=one_user)),
            False,
            Printed("satisfies PE", True),
            note="a hard cap leaves 30 of 50 tasks unused with nobody else there",
        ),
        level(
            "CPU share of a full level, DK=0.8 and N=2",
            lambda cluster: level_cpu(cluster).sum(),
            F(3, 5),
            Printed("at most DK/N = 0.4 as typeset", 0.4),
            note="theorem 1 and the experiment need the cap per user; both agree for N = 1 only",
        ),
        level(
            "dominant shares in a full level, DK=0.8 and N=2",
            dominant_shares("mqdrf", **two_users),
            (F(2, 5), F(2, 5)),
            Printed("DK/N each (theorem 1)", (0.4, 0.4)),
        ),
        three("DRF: three users have dominant shares of", dominant_shares("drf"), (F(2, 5),) * 3),
        three(
            "sharing incentive means 1/2 of everything for each of three users",
            lambda cluster: bool((dominant_shares("drf")(cluster) >= 0.5 * (1 - TOL)).all()),
            False,
            Printed("1/2 of all resources", True),
            note="1/n is meant",
        ),
        *(
            fig1(
                f"DRF violates strategy-proofness: {user} gains by a lie",
                _gains(user, "drf"),
                False,
                Printed("DRF violates SP", True),
                note="DRF, DRFH and LEC have it right: it is strategy-proof; here by a grid of lies",
            )
            for user in ("user 1", "user 2")
        ),
        sp(
            "MQDRF: largest gain of user 1 by a lie",
            gain_from_lying("user 1", "mqdrf", shares=(0.4,), sizes=(1,)),
            0,
            Printed("satisfies SP"),
        ),
    )


def _not(holds: Callable[[Cluster], bool]) -> Compute:
    return lambda cluster: not holds(cluster)


def _gains(user: str, mechanism: str) -> Compute:
    gain = gain_from_lying(user, mechanism)
    return lambda cluster: gain(cluster) > 1e-6
