"""PF: Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao, "An Efficient and Fair Multi-Resource Allocation Mechanism
for Heterogeneous Servers", TPDS 2018, arXiv 1712.10114 (alphaPF-VDS; PS-DSF is from ICC 2017, arXiv 1611.00404).

The demand vectors of figure 1 are lost. What the text states about the example forces

    d1 = [a1, 1, b],  d2 = [a2, 1/3, b],  d3 = [1/4, 1, 0],  d4 = [a4, 1, 0],
    15/4 < b <= 25/4,  0 <= a1 <= 4b/15,  0 <= a2 <= 1,  0 <= a4 <= 1/2,

and none of the tasks below depends on what is left open: the claims check that over several choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction as F
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster
from ._claim import Claim, Compute, Instance, Printed, Value
from ._ours import SMOOTH, monopoly_tasks, reading, solve, tasks, use

NAME, VARIANT = "pf-fig1", "pf-fig1-variant"

#: Other admissible (a1, a2, a4, b), among them corners of the admissible set.
OTHERS: tuple[tuple[float, float, float, float], ...] = (
    (0, 0, 0, 6.25),
    (1.6, 1, 0.5, 6),
    (1, 1, 0, 3.8),
    (0.3, 0.7, 0.1, 4.5),
)


def figure1(a1: float = 1, a2: float = 1, a4: float = 0.5, b: float = 5, variant: bool = False) -> Cluster:
    """Figure 1 with any admissible choice of what is not identified; `variant`: user 4 demands [1, 0.5, 0] instead."""
    return Cluster(
        capacity=[[12, 4, 75], [8, 16, 0]],
        demand=[[a1, 1, b], [a2, 1 / 3, b], [0.25, 1, 0], [1, 0.5, 0] if variant else [a4, 1, 0]],
        resources=["CPU", "RAM", "bandwidth"],
        users=[f"user {n}" for n in range(1, 5)],
        servers=["server 1", "server 2"],
    )


INSTANCES = (
    Instance(NAME, "PF", "2.2, figure 1", "two servers, one without bandwidth, four users; RAM is scarce", figure1),
    Instance(VARIANT, "PF", "2.3, figure 2", "pf-fig1 with d4 = [1, 0.5, 0]", partial(figure1, variant=True)),
)

BASE_TASKS: dict[str, tuple[Value, ...]] = {
    "ps-dsf": (2, 6, 8, 8),
    "drfh": (3, 3, 8, 8),
    "tsf": (F(5, 3), 5, F(25, 3), F(25, 3)),
}
VARIANT_TASKS: dict[str, tuple[Value, ...]] = {
    "ps-dsf": (2, 6, F(32, 3), F(16, 3)),
    "drfh": (3, 3, F(32, 5), F(32, 5)),
    "tsf": (F(64, 37), F(192, 37), F(320, 37), F(256, 37)),
}


def claims() -> tuple[Claim, ...]:
    """All claims about the example; the trace-driven experiments need simulation."""
    return (*_base(), *_variant(), *_free_parameters(), *_alpha(), *_played())


def _gamma(cluster: Cluster) -> NDArray[np.float64]:
    return cluster.gamma


def _virtual_shares(pairs: Sequence[tuple[int, int]]) -> Compute:
    return reading(lambda found: [found.arrays.virtual_dominant_shares[n - 1, i - 1] for n, i in pairs], "ps-dsf")


def _base() -> tuple[Claim, ...]:
    of = partial(Claim, 33, "PF", "2.2, figure 1", NAME)
    gamma, half = ((4, 0), (12, 0), (4, 16), (4, 16)), F(1, 2)
    ram = "max-min on RAM, the bottleneck: tasks"
    return (
        of("gamma: tasks alone on each server", _gamma, gamma, Printed("4, 12, 4, 4; 16, 16")),
        of("y: tasks on all servers, alone", monopoly_tasks, (4, 12, 20, 20), Printed("4, 12, 20, 20")),
        of(ram, _maxmin_ram, BASE_TASKS["ps-dsf"], Printed("2, 6, 8, 8", (2, 6, 8, 8))),
        of("PS-DSF: tasks", tasks("ps-dsf"), BASE_TASKS["ps-dsf"], Printed("2, 6, 8, 8", (2, 6, 8, 8))),
        of(
            "PS-DSF: virtual dominant shares (1,1), (2,1), (3,2), (4,2)",
            _virtual_shares([(1, 1), (2, 1), (3, 2), (4, 2)]),
            (half,) * 4,
        ),
        of("PS-DSF: virtual dominant shares (3,1), (4,1)", _virtual_shares([(3, 1), (4, 1)]), (2, 2)),
        of("DRFH: tasks", tasks("drfh"), BASE_TASKS["drfh"], Printed("3, 3, 8, 8", (3, 3, 8, 8))),
        of("TSF: tasks", tasks("tsf"), BASE_TASKS["tsf"], Printed("5/3, 5, 25/3, 25/3")),
        of("TSF: task shares", lambda cluster: tasks("tsf")(cluster) / cluster.gamma0.sum(axis=1), (F(5, 12),) * 4),
        *(
            of(
                f"{name} is bottleneck fair",
                _is_maxmin_ram(name),
                name == "ps-dsf",
                Printed("yes" if name == "ps-dsf" else "no"),
            )
            for name in BASE_TASKS
        ),
    )


def _maxmin_ram(cluster: Cluster) -> NDArray[np.float64]:
    placed = cluster.replace(eligible=cluster.usable)  # who lacks bandwidth on server 2 must not get its RAM either
    return solve(placed.select(resources=["RAM"]), "cmmf").arrays.user_tasks


def _is_maxmin_ram(mechanism: str) -> Compute:
    return lambda cluster: bool(np.allclose(tasks(mechanism)(cluster), _maxmin_ram(cluster), rtol=1e-6))


def _variant() -> tuple[Claim, ...]:
    of = partial(Claim, 33, "PF", "2.3, figure 2", VARIANT)
    gamma = ((4, 0), (12, 0), (4, 16), (8, 8))
    shares = (F(1, 2), F(1, 2), F(8, 3), F(2, 3), F(2, 3), F(2, 3))
    ram = {"ps-dsf": F(5, 6), "drfh": F(3, 5), "tsf": F(107, 148)}  # tsf: all RAM in use but the 4 GB of server 1
    return (
        of("gamma: tasks alone on each server", _gamma, gamma, Printed("4, 12, 4, 8; 16, 8")),
        of(
            "PS-DSF: tasks",
            tasks("ps-dsf"),
            VARIANT_TASKS["ps-dsf"],
            Printed("2, 6, 32/3, 16/3"),
        ),
        of(
            "PS-DSF: virtual dominant shares (1,1), (2,1), (3,1), (4,1), (3,2), (4,2)",
            _virtual_shares([(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2)]),
            shares,
            Printed("1/2, 1/2, 8/3, 2/3, 2/3, 2/3"),
        ),
        *(of(f"{name}: tasks", tasks(name), VARIANT_TASKS[name], note="a bar of figure 2") for name in ("drfh", "tsf")),
        *(
            of(f"{name}: used part of CPU and RAM of server 2", use("server 2", ["CPU", "RAM"], name), (1, ram[name]))
            for name in ram
        ),
        *(of(f"{name}: used part of RAM of server 1", use("server 1", ["RAM"], name), 1) for name in ram),
    )


def _free_parameters() -> tuple[Claim, ...]:
    def elsewhere(mechanism: str, variant: bool) -> Compute:
        return lambda cluster: [tasks(mechanism)(figure1(*choice, variant)) for choice in OTHERS]

    return tuple(
        Claim(
            33,
            "PF",
            "figure 1",
            name,
            f"{mechanism}: tasks for {len(OTHERS)} other choices of the lost demands",
            elsewhere(mechanism, name == VARIANT),
            (right,) * len(OTHERS),
        )
        for name, known in ((NAME, BASE_TASKS), (VARIANT, VARIANT_TASKS))
        for mechanism, right in known.items()
    )


#: Below it, alphaPF-VDS fills CPU and RAM of server 2 of the variant; above it only CPU (DERIVED, catalogue item 34).
THRESHOLD = math.log(2) / math.log(1.5)


def _alpha() -> tuple[Claim, ...]:
    base, variant = (partial(Claim, 34, "PF", "3.2, 4", name, rtol=SMOOTH) for name in (NAME, VARIANT))
    alphas = (0.5, 1.0, 1.5, 0.999 * THRESHOLD, 1.001 * THRESHOLD, 2.0, 3.0, 10.0, 30.0, math.inf)
    note = f"CPU and RAM of server 2 are full up to alpha = ln 2 / ln 1.5 = {THRESHOLD:.5f}"
    return (
        *(
            base(
                f"alphaPF-VDS, alpha={alpha:.6g}: tasks",
                tasks("alphapf-vds", alpha=alpha),
                (2, 6, 8, 8),
                note="bottleneck fair for every alpha",
            )
            for alpha in alphas
        ),
        *(
            variant(
                f"alphaPF-VDS, alpha={alpha:.6g}: tasks",
                tasks("alphapf-vds", alpha=alpha),
                (2, 6, *_server2(alpha)),
                note=note,
            )
            for alpha in alphas
        ),
        *(
            variant(
                f"alphaPF-VDS, alpha={alpha:g}: used part of RAM of server 2",
                use("server 2", ["RAM"], "alphapf-vds", alpha=alpha),
                _ram_of_server2(alpha),
            )
            for alpha in (1.0, 3.0, math.inf)
        ),
    )


def _server2(alpha: float) -> tuple[F | float, F | float]:
    """`x3 = 32 / (1 + 2^(1 - 1/alpha))` with CPU full, `x4 = 8 - x3/4`."""
    if alpha <= THRESHOLD:
        return F(96, 7), F(32, 7)
    x3 = 32 / (1 + 2 ** (1 - 1 / alpha))
    return x3, 8 - x3 / 4


def _ram_of_server2(alpha: float) -> F | float:
    x3, x4 = _server2(alpha)
    return (x3 + x4 / 2) / 16


#: From nearly efficient to max-min, dense around 1.
_ALPHAS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0)
_STARTS = 4


def _played() -> tuple[Claim, ...]:
    """Ends of best responses in turn; tasks are known in closed form, so that nothing of ours is taken."""
    note = (
        f"{len(_ALPHAS) + 1} alphas from 0.1 to infinity, {_STARTS} random starts each; elsewhere observed, not proved"
    )
    return tuple(
        Claim(
            34,
            "PF",
            "5.2",
            name,
            "alphaPF-VDS: best responses from anywhere end at the equilibrium here",
            partial(_ends_at, known=known),
            True,
            Printed("globally convergent"),
            note=note,
        )
        for name, known in ((NAME, lambda alpha: (8, 8)), (VARIANT, _server2))
    )


def _ends_at(cluster: Cluster, known: Callable[[float], Sequence[F | float]]) -> bool:
    from ..game.dynamics.distributed import best_response  # instances load no modelling language

    rng = np.random.default_rng(5)
    for alpha in (*_ALPHAS, math.inf):
        right = np.array([2.0, 6.0, *map(float, known(alpha))])
        for _ in range(_STARTS):
            split = rng.dirichlet(np.ones(len(cluster.users)), len(cluster.servers)).T
            start = cluster.gamma * split * rng.uniform()
            found = best_response(cluster, alpha, start=start, tol=1e-8, max_rounds=3000, throw=False)
            if not np.allclose(found.arrays.user_tasks, right, rtol=SMOOTH):
                return False
    return True
