"""LEC: a lecture on FIFO, max-min, DRF and alpha-fair utilities in shared systems.

Its example of two resources is DRF's (`drf-4.1`); its even split of it is an instance of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ._claim import Claim, Instance, Printed
from ._ours import SMOOTH, dominant_shares, idle, monopoly_tasks, tasks, use

EXAMPLE = "drf-4.1"

INSTANCES = (
    Instance(
        "lec-water-filling",
        "LEC",
        "Water Filling",
        "15 units divided among demands of 2, 3, 6 and 7",
        partial(
            Cluster,
            [[15]],
            [[1]] * 4,
            max_tasks=[2, 3, 6, 7],
            resources=["resource"],
            users=["wants 2", "wants 3", "wants 6", "wants 7"],
            servers=["pool"],
        ),
    ),
    Instance(
        "lec-even-split",
        "LEC",
        "Dominant Resource Fairness",
        "half of 9 CPU and 18 GB, for A or for B alone",
        partial(Cluster, [[4.5, 9]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"], servers=["half"]),
    ),
)


def claims() -> tuple[Claim, ...]:
    """All claims of the lecture."""
    return (*_water_filling(), *_two_resources(), *_alpha_fair())


def _water_filling() -> tuple[Claim, ...]:
    of = partial(Claim, 1, "LEC", "Water Filling", "lec-water-filling")
    return (
        of("max-min: amounts", tasks("maxmin"), (2, 3, 5, 5), Printed("2, 3, 5, 5")),
        of("first round: equal shares", _first_round, (F(15, 4),) * 4, Printed("3.75 each", (3.75,) * 4)),
        of(
            "first round: what those who want less leave",
            lambda cluster: float(np.maximum(_first_round(cluster) - cluster.max_tasks, 0).sum()),
            F(5, 2),
            Printed("2.5", 2.5),
        ),
        of(
            "second round: what the others get on top",
            lambda cluster: (tasks("maxmin")(cluster) - _first_round(cluster))[2:],
            (F(5, 4), F(5, 4)),
            Printed("1.25 each", (1.25, 1.25)),
        ),
    )


def _first_round(cluster: Cluster) -> NDArray[np.float64]:
    return tasks("maxmin")(cluster.replace(max_tasks=None))


def _two_resources() -> tuple[Claim, ...]:
    where = "Dominant Resource Fairness"
    drf, policy = partial(Claim, 2, "LEC", where, EXAMPLE), partial(Claim, 6, "LEC", "Feasibility Region", EXAMPLE)
    split = partial(Claim, 5, "LEC", where, "lec-even-split")
    efficient = partial(Claim, 4, "LEC", "Fairness vs. Efficiency", EXAMPLE, rtol=SMOOTH)
    corner = (F(45, 11), F(18, 11))
    return (
        drf("DRF: tasks", tasks("drf"), (3, 2), Printed("3 and 2 tasks")),
        drf("DRF: idle CPU and GB", idle("drf"), (0, 4), Printed("4 GB wasted")),
        efficient("the point that uses everything", tasks("ceei"), corner, Printed("x=45/11, y=18/11")),
        efficient(
            "CEEI: used part of CPU and RAM",
            use("overall", ["CPU", "RAM"], "ceei"),
            (1, 1),
            Printed("all resources"),
        ),
        split(
            "half the pool: whole tasks of A, of B",
            lambda cluster: np.floor(monopoly_tasks(cluster)),
            (2, 1),
            Printed("2 tasks, 1 task"),
        ),
        split("half the pool: fluid tasks of A, of B", monopoly_tasks, (F(9, 4), F(3, 2))),
        policy(
            "equalising x/9 and y/3 meets the border at",
            tasks("alpha-fair", alpha=math.inf, share=(1 / 9, 1 / 3)),
            (F(54, 13), F(18, 13)),
            Printed("(3, 2)", (3, 2)),
            note="x/9 is A's share of CPU, not its dominant share 4x/18; the point is on the memory face",
        ),
        policy(
            "equalising 4x/18 and 3y/9 meets the border at",
            tasks("drf"),
            (3, 2),
            note="what was meant; DRF section 4.1 has it right",
        ),
        policy(
            "x/9 and y/3 at (3, 2)",
            lambda cluster: tasks("drf")(cluster) / np.array([9, 3]),
            (F(1, 3), F(2, 3)),
            Printed("equal", (F(1, 3), F(1, 3))),
        ),
    )


#: Below it, alpha-fair dominant shares fill CPU and memory; above it only CPU (DERIVED, catalogue item 9).
THRESHOLD = math.log(2) / math.log(5 / 3)


def _alpha_fair() -> tuple[Claim, ...]:
    of = partial(Claim, 9, "LEC", "Alpha-fair Functions", EXAMPLE, rtol=SMOOTH)
    alphas = (0.0, 0.5, 1.0, 1.3, 0.999 * THRESHOLD, 1.001 * THRESHOLD, 2.0, 5.0, 20.0, math.inf)
    return (
        *(
            of(
                f"alpha-fair, alpha={alpha:.6g}: tasks",
                tasks("alpha-fair", alpha=alpha),
                _tasks(alpha),
                note=f"both resources are full up to alpha = ln 2 / ln(5/3) = {THRESHOLD:.5f}",
            )
            for alpha in alphas
        ),
        of(
            "alpha to infinity: dominant shares",
            dominant_shares("alpha-fair", alpha=math.inf),
            (F(2, 3), F(2, 3)),
            Printed("max-min fairness"),
        ),
        of(
            "alpha = 0: sum of dominant shares, the largest",
            _welfare,
            F(10, 11) + F(6, 11),
            Printed("maximum efficiency", F(16, 11)),
        ),
    )


def _welfare(cluster: Cluster) -> float:
    return float(dominant_shares("alpha-fair", alpha=0.0)(cluster).sum())


def _tasks(alpha: float) -> tuple[F | float, F | float]:
    """`u_A = 2 / (1 + 2^(1 - 1/alpha))` with CPU full, `x = 4.5 u_A`, `y = (9 - x)/3`."""
    if alpha <= THRESHOLD:
        return F(45, 11), F(18, 11)
    x = 4.5 * 2 / (1 + 2 ** (1 - 1 / alpha))
    return x, (9 - x) / 3
