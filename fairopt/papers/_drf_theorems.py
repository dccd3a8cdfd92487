"""DRF section 6.1: small pools on which asset fairness and CEEI violate what DRF keeps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from functools import partial

from .._libraries import optimize
from ..model.cluster import Cluster
from ._claim import Claim, Printed
from ._instance import Instance
from ._ours import SMOOTH, bundles, incentive_shortfall, resource_shares, tasks

ASSET, DRF, CEEI = "asset-fairness", "drf", "ceei"
RTOL = {ASSET: 1e-6, DRF: 1e-6, CEEI: SMOOTH}


def _pool(name: str, where: str, about: str, capacity: Sequence[float], demand: Sequence[Sequence[float]]) -> Instance:
    users = [f"user {n}" for n in range(1, len(demand) + 1)]
    build = partial(Cluster, [capacity], demand, resources=["r1", "r2"], users=users, servers=["pool"])
    return Instance(f"drf-{name}", "DRF", where, about, build)


INSTANCES = (
    _pool("thm1", "6.1.1", "asset fairness violates sharing incentive", (30, 30), [(1, 3), (1, 1)]),
    _pool("thm2", "6.1.1", "asset fairness violates bottleneck fairness", (21, 21), [(3, 2), (4, 1)]),
    _pool("thm3", "6.1.1", "asset fairness violates resource monotonicity: before", (77, 77), [(4, 2), (1, 1)]),
    _pool("thm3-doubled", "6.1.1", "drf-thm3 with twice resource 2", (77, 154), [(4, 2), (1, 1)]),
    _pool("thm4", "6.1.2", "CEEI is not strategy-proof: the truth", (100, 100), [(16, 1), (1, 2)]),
    _pool("thm4-lie", "6.1.2", "drf-thm4 when user 1 lies", (100, 100), [(16, 8), (1, 2)]),
    _pool("thm5", "6.1.2", "CEEI violates population monotonicity", (100, 100), [(4, 1), (1, 16), (16, 1)]),
    _pool("thm5-left", "6.1.2", "drf-thm5 after user 3 left", (100, 100), [(4, 1), (1, 16)]),
    _pool("thm6", "6.1.3", "nothing with SI and PO is resource monotone: before", (12, 12), [(2, 1), (1, 2)]),
    _pool("thm6-quadrupled", "6.1.3", "drf-thm6 with four times resource 2", (12, 48), [(2, 1), (1, 2)]),
)


def claims() -> tuple[Claim, ...]:
    """Claims of theorems 1 to 6."""
    return (*_asset_fairness(), *_resource_monotonicity(), *_strategy(), *_population())


def _asset_fairness() -> tuple[Claim, ...]:
    one = partial(Claim, 11, "DRF", "theorem 1", "drf-thm1")
    two = partial(Claim, 12, "DRF", "theorem 2", "drf-thm2")
    return (
        one("asset fairness: tasks", tasks(ASSET), (6, 12), Printed("6 and 12 tasks", (6, 12))),
        one(
            "asset fairness: bundles",
            bundles(ASSET),
            ((6, 18), (12, 12)),
            Printed("<6,18>, <12,12>", ((6, 18), (12, 12))),
        ),
        one(
            "asset fairness violates sharing incentive by this many tasks",
            incentive_shortfall(ASSET),
            3,
            Printed("user 2 has 12, half of the pool would run 15", 3),
        ),
        one("DRF: sharing incentive violated by", incentive_shortfall(DRF), 0),
        *(one(f"{name}: tasks", tasks(name), (5, 15), rtol=RTOL[name]) for name in (DRF, CEEI)),
        two("asset fairness: tasks", tasks(ASSET), (3, 3), Printed("3 tasks each", (3, 3))),
        two(
            "asset fairness: shares of the bottleneck",
            resource_shares("r1", ASSET),
            (F(3, 7), F(4, 7)),
            Printed("user 1 has 3/7 of resource 1", (F(3, 7), F(4, 7))),
        ),
        *(
            two(f"{name}: tasks, half of the bottleneck each", tasks(name), (F(7, 2), F(21, 8)), rtol=RTOL[name])
            for name in (DRF, CEEI)
        ),
    )


def _resource_monotonicity() -> tuple[Claim, ...]:
    before, after = (partial(Claim, 13, "DRF", "theorem 3", name) for name in ("drf-thm3", "drf-thm3-doubled"))
    equal, four_times = (partial(Claim, 16, "DRF", "theorem 6", name) for name in ("drf-thm6", "drf-thm6-quadrupled"))
    note = "the paper leaves the capacities open (12 and 12 here) and calls user A 'user 1' in the end"
    return (
        before(
            "asset fairness: bundles",
            bundles(ASSET),
            ((44, 22), (33, 33)),
            Printed("<44,22>, <33,33>", ((44, 22), (33, 33))),
        ),
        after(
            "asset fairness: bundles, A falls",
            bundles(ASSET),
            ((42, 21), (35, 35)),
            Printed("<42,21>, <35,35>", ((42, 21), (35, 35))),
        ),
        *(
            when(f"{name}: tasks, the same before and after", tasks(name), (F(77, 8), F(77, 2)), rtol=RTOL[name])
            for when in (before, after)
            for name in (DRF, CEEI)
        ),
        *(equal(f"{name}: tasks", tasks(name), (4, 4), note=note, rtol=RTOL[name]) for name in (DRF, CEEI, ASSET)),
        *(
            four_times(
                f"{name}: tasks, A falls",
                tasks(name),
                (3, 6),
                Printed("A must fall to half of resource 1", (3, 6)),
                note=note,
                rtol=RTOL[name],
            )
            for name in (DRF, CEEI)
        ),
        four_times("asset fairness: tasks", tasks(ASSET), (F(24, 7), F(36, 7)), note=note),
    )


def _strategy() -> tuple[Claim, ...]:
    truth, lie = (partial(Claim, 14, "DRF", "theorem 4", name, rtol=SMOOTH) for name in ("drf-thm4", "drf-thm4-lie"))
    honest, lying = (F(100, 31), F(1500, 31)), (F(25, 6), F(100, 3))
    return (
        truth("CEEI: tasks", tasks(CEEI), honest, Printed("100/31 and 1500/31", honest)),
        truth(
            "CEEI: tasks, in decimals",
            tasks(CEEI),
            honest,
            Printed("about 3.2 and 48.8", (3.2, 48.8), 1),
            note="1500/31 is 48.4",
        ),
        lie("CEEI: tasks when user 1 lies", tasks(CEEI), lying, Printed("25/6 and 100/3", lying)),
        lie("CEEI: tasks when user 1 lies, in decimals", tasks(CEEI), lying, Printed("4.2 and 33.3", (4.2, 33.3), 1)),
        *(when("DRF: tasks, no use to lie", tasks(DRF), lying) for when in (truth, lie)),
    )


def _population() -> tuple[Claim, ...]:
    three, two = (partial(Claim, 15, "DRF", "theorem 5", name, rtol=SMOOTH) for name in ("drf-thm5", "drf-thm5-left"))
    return (
        three(
            "CEEI: tasks of three users",
            tasks(CEEI),
            _ceei_of_three(),
            Printed("<11.3, 5.4, 3.1>", (11.3, 5.4, 3.1), 1),
            note="the rounded point is slightly infeasible, so it is no data",
        ),
        two(
            "CEEI: user 2 falls when user 3 leaves",
            tasks(CEEI),
            (F(500, 21), F(100, 21)),
            Printed("<23.8, 4.8>", (23.8, 4.8), 1),
        ),
        three("DRF: tasks of three users", tasks(DRF), (F(400, 33), F(100, 33), F(100, 33))),
        two("DRF: both rise when user 3 leaves", tasks(DRF), (20, 5)),
    )


def _ceei_of_three() -> tuple[float, ...]:
    """CEEI by its market: `x_n = 1 / (p d_n1 + q d_n2)`, all is spent so `100 (p + q) = 3`, and resource 1 clears."""
    demand = ((4, 1), (1, 16), (16, 1))

    def bought(p: float) -> tuple[float, ...]:
        return tuple(1 / (p * d1 + (0.03 - p) * d2) for d1, d2 in demand)

    def excess(p: float) -> float:
        return sum(d1 * x for (d1, _), x in zip(demand, bought(p), strict=True)) - 100

    # Excess is 20 at the left end and negative at the right one. (It also vanishes at q = 0, resource 2 overdrawn.)
    return bought(optimize.brentq(excess, 0.015, 0.025, xtol=1e-16))
