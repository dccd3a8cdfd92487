"""DRF section 7: what its cluster experiments must show when tasks are fluid, and when they are whole."""

from __future__ import annotations

from fractions import Fraction as F
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ._claim import Claim, Printed
from ._enumerate import fairest_whole_tasks
from ._instance import Instance
from ._ours import dominant_shares, solve, tasks
from ._whole import filled, shares

NODES = 48


def _nodes(cpu: float, ram: float, demand: tuple[tuple[float, float], ...], users: tuple[str, ...]) -> partial[Cluster]:
    servers = [f"node{i}" for i in range(1, NODES + 1)]
    return partial(Cluster, [[cpu, ram]] * NODES, demand, resources=["CPU", "RAM"], users=users, servers=servers)


def _phase(number: int, first: tuple[float, float], second: tuple[float, float]) -> Instance:
    about = f"48 nodes of 4 CPU and 14 GB, two jobs, phase {number} of 3"
    return Instance(f"drf-7.1-p{number}", "DRF", "7.1", about, _nodes(4, 14, (first, second), ("job 1", "job 2")))


INSTANCES = (
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


def claims() -> tuple[Claim, ...]:
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
            Printed("CPU shares are equalised", (F(1, 2), F(1, 2))),
        ),
        two(whole + "tasks", fairest_whole_tasks, (48, 96)),
        two(
            online + "shares, who does not fit blocks",
            shares("first-fit-drfh(strict=True)"),
            (F(1, 2), F(1, 2)),
            Printed("CPU shares are equalised", (F(1, 2), F(1, 2))),
        ),
        three(fluid + "tasks", tasks("drf"), (48, 84)),
        three(whole + "tasks", fairest_whole_tasks, (44, 78), note="22 nodes hold 2+0, 26 hold 0+3"),
        three(whole + "shares", _whole_shares, (F(11, 24), F(13, 28))),
        three(
            whole + "shares exactly equal",
            lambda cluster: len(set(_whole_shares(cluster))) == 1,
            False,
            Printed("not exactly equal, by fragmentation", False),
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
    return solve(cluster.select(resources=["CPU"]), "maxmin").user_tasks
