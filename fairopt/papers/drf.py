"""DRF: Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, "Dominant Resource Fairness", NSDI 2011.

The example of sections 4 and 5; section 6.1, small pools on which asset fairness and CEEI violate what DRF keeps; and
section 7, what its cluster experiments must show when tasks are fluid, and when they are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, pd
from ..model.cluster import Cluster
from ..scheduling.discrete_drf import discrete_drf
from ._claim import Claim, Instance, Printed
from ._ours import (
    SMOOTH,
    bundles,
    dominant_shares,
    filled,
    incentive_shortfall,
    resource_shares,
    shares,
    solve,
    tasks,
    use,
)

EXAMPLE = Instance(
    "drf-4.1",
    "DRF",
    "4.1",
    "9 CPU and 18 GB for A (1 CPU, 4 GB a task) and B (3 CPU, 1 GB)",
    partial(Cluster, [[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"], servers=["pool"]),
)
ASSET, DRF, CEEI = "asset-fairness", "drf", "ceei"
RTOL = {ASSET: 1e-6, DRF: 1e-6, CEEI: SMOOTH}
NODES = 48
Counts = NDArray[np.int64]


def table1() -> pd.DataFrame:
    """Table 1, whose body the available text lacks: every decision of the discrete scheduler, ties to B first."""
    return discrete_drf(EXAMPLE.build(), ties=("B", "A"))


def claims() -> tuple[Claim, ...]:
    """All claims of the paper that have an exact answer."""
    return (*_fluid(), *_discrete(), *_theorems(), *_experiments())


def _fluid() -> tuple[Claim, ...]:
    at41, at51 = partial(Claim, 2, "DRF", "4.1", EXAMPLE.name), partial(Claim, 3, "DRF", "5.1", EXAMPLE.name)
    at52 = partial(Claim, 4, "DRF", "5.2", EXAMPLE.name, rtol=SMOOTH)
    shares, product = (F(2, 3), F(2, 3)), (F(45, 11), F(18, 11))
    return (
        at41("DRF: tasks", tasks("drf"), (3, 2), Printed("x=3, y=2")),
        at41(
            "DRF: (CPU, GB) of A and of B",
            bundles("drf"),
            ((3, 12), (6, 2)),
            Printed("<3 CPU, 12 GB>, <6 CPU, 2 GB>"),
        ),
        at41("DRF: dominant shares", dominant_shares("drf"), shares, Printed("2/3 each")),
        at41("DRF: used part of CPU", use("overall", ["CPU"], "drf"), 1, Printed("CPU saturates")),
        at51(
            "asset fairness: tasks",
            tasks("asset-fairness"),
            (F(63, 25), F(54, 25)),
            Printed("x=2.52, y=2.16", (2.52, 2.16), 2),
        ),
        at51(
            "asset fairness: (CPU, GB) of A and of B",
            bundles("asset-fairness"),
            ((F(63, 25), F(252, 25)), (F(162, 25), F(54, 25))),
            Printed("2.5 CPU, 10.1 GB; 6.5 CPU, 2.2 GB", ((2.5, 10.1), (6.5, 2.2)), 1),
        ),
        at52("CEEI: tasks", tasks("ceei"), product, Printed("x=45/11, y=18/11")),
        at52(
            "CEEI: (CPU, GB) of A and of B",
            bundles("ceei"),
            ((F(45, 11), F(180, 11)), (F(54, 11), F(18, 11))),
            Printed("4.1 CPU, 16.4 GB; 4.9 CPU, 1.6 GB", ((4.1, 16.4), (4.9, 1.6)), 1),
        ),
        Claim(8, "DRF", "4.1", EXAMPLE.name, "max-min of task counts", tasks("task-maxmin"), (F(9, 4), F(9, 4))),
    )


def _discrete() -> tuple[Claim, ...]:
    of = partial(Claim, 7, "DRF", "4.2, table 1", EXAMPLE.name)
    steps = (("B", _row(0, 1)), ("A", _row(1, 1)), ("A", _row(2, 1)), ("B", _row(2, 2)), ("A", _row(3, 2)))
    end = ((3, 12), (6, 2))
    return (
        of(
            "discrete DRF, ties to B: who, shares and totals, step by step",
            _steps,
            steps,
            note="the table's body is missing from the available text; the text fixes its beginning and its end",
        ),
        of(
            "discrete DRF, ties to B: (CPU, GB) of A and of B in the end",
            partial(_end, ("B", "A")),
            end,
            Printed("A <3 CPU, 12 GB>, B <6 CPU, 2 GB>"),
        ),
        of(
            "discrete DRF, ties to A: the same end",
            partial(_end, ("A", "B")),
            end,
            note="by other decisions: A, B, A, B, A",
        ),
    )


def _row(a: int, b: int) -> tuple[F, ...]:
    """Shares when A runs a tasks and B runs b: A's and B's (CPU, RAM, dominant), then the totals."""
    return F(a, 9), F(4 * a, 18), F(4 * a, 18), F(3 * b, 9), F(b, 18), F(3 * b, 9), F(a + 3 * b, 9), F(4 * a + b, 18)


def _steps(cluster: Cluster) -> NDArray[np.object_]:
    return np.asarray(discrete_drf(cluster, ties=("B", "A")).to_numpy(dtype=object))


def _end(ties: tuple[str, ...], cluster: Cluster) -> NDArray[np.float64]:
    last = discrete_drf(cluster, ties=ties).iloc[-1]
    shares = last[["A CPU", "A RAM", "B CPU", "B RAM"]].to_numpy(dtype=float).reshape(2, 2)
    return np.asarray(shares * cluster.capacity[0])


def _pool(name: str, where: str, about: str, capacity: Sequence[float], demand: Sequence[Sequence[float]]) -> Instance:
    users = [f"user {n}" for n in range(1, len(demand) + 1)]
    build = partial(Cluster, [capacity], demand, resources=["r1", "r2"], users=users, servers=["pool"])
    return Instance(f"drf-{name}", "DRF", where, about, build)


_THEOREMS = (
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


def _theorems() -> tuple[Claim, ...]:
    """Claims of theorems 1 to 6."""
    return (*_asset_fairness(), *_resource_monotonicity(), *_strategy(), *_population())


def _asset_fairness() -> tuple[Claim, ...]:
    one = partial(Claim, 11, "DRF", "theorem 1", "drf-thm1")
    two = partial(Claim, 12, "DRF", "theorem 2", "drf-thm2")
    return (
        one("asset fairness: tasks", tasks(ASSET), (6, 12), Printed("6 and 12 tasks")),
        one(
            "asset fairness: bundles",
            bundles(ASSET),
            ((6, 18), (12, 12)),
            Printed("<6,18>, <12,12>"),
        ),
        one(
            "asset fairness violates sharing incentive by this many tasks",
            incentive_shortfall(ASSET),
            3,
            Printed("user 2 has 12, half of the pool would run 15"),
        ),
        one("DRF: sharing incentive violated by", incentive_shortfall(DRF), 0),
        *(one(f"{name}: tasks", tasks(name), (5, 15), rtol=RTOL[name]) for name in (DRF, CEEI)),
        two("asset fairness: tasks", tasks(ASSET), (3, 3), Printed("3 tasks each")),
        two(
            "asset fairness: shares of the bottleneck",
            resource_shares("r1", ASSET),
            (F(3, 7), F(4, 7)),
            Printed("user 1 has 3/7 of resource 1"),
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
            Printed("<44,22>, <33,33>"),
        ),
        after(
            "asset fairness: bundles, A falls",
            bundles(ASSET),
            ((42, 21), (35, 35)),
            Printed("<42,21>, <35,35>"),
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
                Printed("A must fall to half of resource 1"),
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
        truth("CEEI: tasks", tasks(CEEI), honest, Printed("100/31 and 1500/31")),
        truth(
            "CEEI: tasks, in decimals",
            tasks(CEEI),
            honest,
            Printed("about 3.2 and 48.8", (3.2, 48.8), 1),
            note="1500/31 is 48.4",
        ),
        lie("CEEI: tasks when user 1 lies", tasks(CEEI), lying, Printed("25/6 and 100/3")),
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


def _nodes(cpu: float, ram: float, demand: tuple[tuple[float, float], ...], users: tuple[str, ...]) -> partial[Cluster]:
    servers = [f"node{i}" for i in range(1, NODES + 1)]
    return partial(Cluster, [[cpu, ram]] * NODES, demand, resources=["CPU", "RAM"], users=users, servers=servers)


def _phase(number: int, first: tuple[float, float], second: tuple[float, float]) -> Instance:
    about = f"48 nodes of 4 CPU and 14 GB, two jobs, phase {number} of 3"
    return Instance(f"drf-7.1-p{number}", "DRF", "7.1", about, _nodes(4, 14, (first, second), ("job 1", "job 2")))


_EXPERIMENTS = (
    _phase(1, (1, 10), (1, 1)),
    _phase(2, (2, 4), (1, 3)),
    _phase(3, (1, 7), (1, 4)),
    Instance(
        "drf-7.2",
        "DRF",
        "7.2",
        "48 nodes of 8 CPU and 6 GB; four users with small tasks, four with large ones",
        _nodes(
            8,
            6,
            ((1, 0.5),) * 4 + ((2, 2),) * 4,
            tuple(chain((f"small {n}" for n in range(1, 5)), (f"large {n}" for n in range(1, 5)))),
        ),
    ),
)


def _experiments() -> tuple[Claim, ...]:
    """Claims of sections 7.1 and 7.2 that need no simulation."""
    one, two, three = (partial(Claim, 18, "DRF", "7.1", f"drf-7.1-p{number}") for number in (1, 2, 3))
    fluid = "DRF, fluid on the pool: "
    whole = "whole tasks per node, fairest by enumeration: "
    cpu_only = partial(Claim, 19, "DRF", "7.2", "drf-7.2")
    online = "First-Fit DRFH, online: "
    block = "at 138 tasks of job 2 job 1 is lowest again, and its 49th task fits nowhere"
    pack = "the experiment runs whole tasks: one of job 1 and three of job 2 fill every node"
    return (
        one(fluid + "tasks", tasks("drf"), (F(448, 9), F(1280, 9))),
        one(fluid + "dominant shares", dominant_shares("drf"), (F(20, 27), F(20, 27)), note=pack),
        one(whole + "tasks", fairest_whole_tasks, (48, 144)),
        one(
            whole + "RAM of job 1",
            lambda cluster: _whole_shares(cluster)[0],
            F(5, 7),
            Printed("about 70% of RAM", 0.7, 1),
            note=pack,
        ),
        one(
            whole + "CPU of job 2",
            lambda cluster: _whole_shares(cluster)[1],
            F(3, 4),
            Printed("about 75% of CPU", 0.75, 2),
            note=pack,
        ),
        one(
            online + "shares, who does not fit is skipped",
            shares("first-fit-drfh"),
            (F(5, 7), F(3, 4)),
            Printed("about 70%, about 75%", (0.7, 0.75), 1),
        ),
        one(online + "tasks, who does not fit blocks", filled("first-fit-drfh(strict=True)"), (48, 138), note=block),
        two(fluid + "tasks", tasks("drf"), (48, 96)),
        two(
            fluid + "dominant shares",
            dominant_shares("drf"),
            (F(1, 2), F(1, 2)),
            Printed("CPU shares are equalised"),
        ),
        two(whole + "tasks", fairest_whole_tasks, (48, 96)),
        two(
            online + "shares, who does not fit blocks",
            shares("first-fit-drfh(strict=True)"),
            (F(1, 2), F(1, 2)),
            Printed("CPU shares are equalised"),
        ),
        three(fluid + "tasks", tasks("drf"), (48, 84)),
        three(whole + "tasks", fairest_whole_tasks, (44, 78), note="22 nodes hold 2+0, 26 hold 0+3"),
        three(whole + "shares", _whole_shares, (F(11, 24), F(13, 28))),
        three(
            whole + "shares exactly equal",
            lambda cluster: len(set(_whole_shares(cluster))) == 1,
            False,
            Printed("not exactly equal, by fragmentation"),
        ),
        cpu_only("fair in CPU alone: tasks", _cpu_only, (48,) * 4 + (24,) * 4),
        cpu_only(
            "fair in CPU alone: GB used of 288",
            lambda cluster: _cpu_only(cluster) @ cluster.demand[:, 1],
            288,
            note="nothing is over-committed in total, so the over-commitment of figure 9 is one of nodes",
        ),
    )


def _whole_shares(cluster: Cluster) -> tuple[float, float]:
    first, second = fairest_whole_tasks(cluster) * cluster.dominant_share_per_task
    return float(first), float(second)


def _cpu_only(cluster: Cluster) -> NDArray[np.float64]:
    return solve(cluster.select(resources=["CPU"]), "maxmin").arrays.user_tasks


def fairest_whole_tasks(cluster: Cluster) -> tuple[int, int]:
    """Leximin of dominant shares over all ways to place whole tasks of two users on identical nodes.

    `most[a]`: the most tasks of the second user beside `a` of the first, for one node and then, node by node, for all.
    """
    one = _beside(cluster.demand, cluster.capacity[0])
    most = one
    for _ in range(1, len(cluster.servers)):
        sums = np.full(len(most) + len(one) - 1, -1)
        for a, b in enumerate(one):
            sums[a : a + len(most)] = np.maximum(sums[a : a + len(most)], most + b)
        most = sums
    share = cluster.dominant_share_per_task
    best = max(range(len(most)), key=lambda a: sorted((a * share[0], int(most[a]) * share[1])))
    return best, int(most[best])


def _beside(demand: NDArray[np.float64], capacity: NDArray[np.float64]) -> Counts:
    first = int(np.min(capacity / demand[0]))
    left = capacity - np.arange(first + 1)[:, None] * demand[0]
    return np.asarray((left / demand[1]).min(axis=1).astype(np.int64))


INSTANCES = (EXAMPLE, *_THEOREMS, *_EXPERIMENTS)
