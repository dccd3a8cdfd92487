"""DRF: Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, "Dominant Resource Fairness", NSDI 2011.

Here the example of sections 4 and 5; `_drf_theorems` has section 6 and `_drf_experiments` section 7.
"""

from __future__ import annotations

from fractions import Fraction as F
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..model.cluster import Cluster
from ..scheduling.discrete_drf import discrete_drf
from . import _drf_experiments, _drf_theorems
from ._claim import Claim, Printed
from ._instance import Instance
from ._ours import SMOOTH, bundles, dominant_shares, tasks, use

EXAMPLE = Instance(
    "drf-4.1",
    "DRF",
    "4.1",
    "9 CPU and 18 GB for A (1 CPU, 4 GB a task) and B (3 CPU, 1 GB)",
    partial(Cluster, [[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"], servers=["pool"]),
)
INSTANCES = (EXAMPLE, *_drf_theorems.INSTANCES, *_drf_experiments.INSTANCES)


def table1() -> pd.DataFrame:
    """Table 1, whose body the available text lacks: every decision of the discrete scheduler, ties to B first."""
    return discrete_drf(EXAMPLE.build(), ties=("B", "A"))


def claims() -> tuple[Claim, ...]:
    """All claims of the paper that have an exact answer."""
    return (*_fluid(), *_discrete(), *_drf_theorems.claims(), *_drf_experiments.claims())


def _fluid() -> tuple[Claim, ...]:
    at41, at51 = partial(Claim, 2, "DRF", "4.1", EXAMPLE.name), partial(Claim, 3, "DRF", "5.1", EXAMPLE.name)
    at52 = partial(Claim, 4, "DRF", "5.2", EXAMPLE.name, rtol=SMOOTH)
    shares, product = (F(2, 3), F(2, 3)), (F(45, 11), F(18, 11))
    return (
        at41("DRF: tasks", tasks("drf"), (3, 2), Printed("x=3, y=2", (3, 2))),
        at41(
            "DRF: (CPU, GB) of A and of B",
            bundles("drf"),
            ((3, 12), (6, 2)),
            Printed("<3 CPU, 12 GB>, <6 CPU, 2 GB>", ((3, 12), (6, 2))),
        ),
        at41("DRF: dominant shares", dominant_shares("drf"), shares, Printed("2/3 each", shares)),
        at41("DRF: used part of CPU", use("overall", ["CPU"], "drf"), 1, Printed("CPU saturates", 1)),
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
        at52("CEEI: tasks", tasks("ceei"), product, Printed("x=45/11, y=18/11", product)),
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
    end = Printed("A <3 CPU, 12 GB>, B <6 CPU, 2 GB>", ((3, 12), (6, 2)))
    return (
        of(
            "discrete DRF, ties to B: who, shares and totals, step by step",
            _steps,
            steps,
            note="the table's body is missing from the available text; the text fixes its beginning and its end",
        ),
        of("discrete DRF, ties to B: (CPU, GB) of A and of B in the end", partial(_end, ("B", "A")), end.value, end),
        of(
            "discrete DRF, ties to A: the same end",
            partial(_end, ("A", "B")),
            end.value,
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
