"""Growth of cost with the size of clusters (`make guard`); exit status 1 if it exceeds its limits.

CPU seconds and peak memory of a solve, in a separate process, are measured for every mechanism with a native engine on
several shapes, and for rounds of the distributed game, at one size and at four times that size, with the exponents of
their growth. Measurements above the limits are repeated. Two rows are measured in parallel, each with the CPU time of
its own process.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402 - threads are chosen first
from apart import apart, cost  # noqa: E402

import fairopt as fo  # noqa: E402

#: Distributed game, on servers of three types.
ROUNDS, PLAYED = "30 rounds, alpha=3", "users, 30 servers"
#: Half of the users with task limits below their level; and one server per user, all of similar size.
COUNTED, PINNED = "task counts, 30 servers", "a server a user"
#: Proportional users of 50 classes; and distinct users.
ALIKE, DIFFERENT = "users of 50 kinds", "users, 2 servers"
#: As many servers as users, three per user, where fill-in grows fastest.
EVEN, COUPLED = "3 of as many servers", ("drfh", "ceei(scope=servers)", "alphapf-vds(alpha=3)", "ps-dsf")
#: Few users, for a mechanism that solves a problem without each user.
WITHOUT = "few users, 3 servers"
SHAPES = {
    "google-like users": (500, 2000), "10 users, servers": (150, 600), "3 servers a user": (100, 400),
    PLAYED: (500, 2000), COUNTED: (150, 600), PINNED: (100, 400), ALIKE: (20_000, 80_000), DIFFERENT: (15_000, 60_000),
    EVEN: (400, 1600), WITHOUT: (12, 48),
}  # fmt: skip
#: Mechanisms of shapes that are measured for these only.
ALONE = {
    PLAYED: (ROUNDS, "alphapf-vds(alpha=3)"), COUNTED: ("drfh", "tsf"), PINNED: ("drfh", "tsf"), DIFFERENT: ("ps-dsf",),
    ALIKE: COUPLED, EVEN: COUPLED, WITHOUT: ("partial-allocation",),
}  # fmt: skip
#: Mechanisms without a native engine, restricted to one resource, without default parameters, or for few users only.
LEFT_OUT = ("cmmf", "concave-game", "maxmin", "partial-allocation")
VARIANTS = ("alphapf-vds(alpha=3)", "alphapf-vds(alpha=64)", "asset-fairness(scope=servers)", "ceei(scope=servers)")
#: Largest exponents of CPU seconds and memory; growth below the floors (s, MiB) is not detectable.
MOST, FLOOR = (1.7, 1.3), (0.02, 8.0)
#: Exponents of shapes where only users grow, where tables of users and servers grow quadratically in memory, and where
#: there is a problem for each user.
OF_SHAPE = {ALIKE: (1.3, 1.3), DIFFERENT: (1.3, 1.3), EVEN: (1.7, 2.0), WITHOUT: (1 + 1.3, 1.3)}
#: Limit of CPU seconds of a solve.
LIMIT = 12
#: Known exceptions, with the measured exponent of CPU seconds.
KNOWN = {
    (PLAYED, "alphapf-vds(alpha=3)"): "2.3",  # the interior point stops there, and the homotopy starts
}


def cluster(shape: str, size: int) -> fo.Cluster:
    """Cluster of a shape, deterministic."""
    if shape == "google-like users":
        return fo.open_source(f"google-like?users={size}&servers=12583&seed=5").cluster
    if shape == PLAYED:
        return fo.open_source(f"bitbrains-like?vms={size}&servers=30&seed=5").cluster
    rng = np.random.default_rng(7)
    if shape == COUNTED:
        capacity, demand = (np.exp(0.5 * rng.standard_normal((k, 4))) for k in (30, size))
        unit = demand / (share := (demand / capacity.sum(axis=0)).max(axis=1))[:, None]
        level = (capacity.sum(axis=0) / unit.sum(axis=0)).min() / share  # common level in tasks, without task limits
        return fo.Cluster(
            capacity, demand, max_tasks=np.where(np.arange(size) % 2, rng.uniform(0.3, 1.2, size) * level, np.inf)
        )
    if shape == PINNED:
        capacity = np.stack([np.full(size, 32.0), 65_842_000.0 + rng.integers(400, size=size)], axis=1)
        return fo.Cluster(capacity, [[0.1, 1e6]] * size, eligible=np.eye(size, dtype=bool))
    if shape in (ALIKE, DIFFERENT):
        capacity = rng.lognormal(0, 0.5, (10 if shape == ALIKE else 2, 3))  # the same for every size
        return fo.Cluster(capacity, np.resize(rng.lognormal(0, 0.5, (50 if shape == ALIKE else size, 3)), (size, 3)))
    users = {"10 users, servers": 10, EVEN: size}.get(shape, 2 * size)
    capacity, demand = rng.gamma(4, 0.25, (size, 2)) + 0.05, rng.gamma(2, 0.5, (users, 2)) + 0.05
    if users == 10:
        return fo.Cluster(capacity, demand)
    eligible = np.zeros((users, size), dtype=bool)
    for row in eligible:
        row[rng.choice(size, 3, replace=False)] = True
    return fo.Cluster(capacity, demand, eligible=eligible)


def solve(name: str, data: fo.Cluster) -> None:
    """Solve with a mechanism, or play rounds of the distributed game."""
    if name == ROUNDS:
        fo.best_response(data, 3, max_rounds=30, throw=False)
    else:
        fo.mechanisms.parse(name)[0].solve(data)


def solved(shape: str, size: int, name: str) -> tuple[float, float]:
    """CPU seconds and MiB of a solve, beyond those of a smaller one."""
    data = cluster(shape, size)
    solve(name, cluster(shape, size // 4))
    return cost(lambda: solve(name, data))[1:]


def row(shape: str, name: str) -> tuple[str, bool]:
    """Row of the table, and whether it is within the limits."""
    best = np.full((2, 2), np.inf)  # CPU seconds and MiB of both sizes
    for _ in range(1 if (shape, name) in KNOWN else 3):  # repetition excludes the effects of a busy machine
        for k, size in enumerate(SHAPES[shape]):
            found = apart(lambda size=size: solved(shape, size, name), LIMIT)
            if isinstance(found, str):
                return f"{size}: {found}", False
            best[k] = np.minimum(best[k], found)
        small, large = np.maximum(best, FLOOR)
        powers = np.log(large / small) / math.log(4)
        if good := bool((powers <= OF_SHAPE.get(shape, MOST)).all()):
            break
    shown = [f"{size:5}: {seconds:6.3f} s {more:5.0f} MiB"
             for size, (seconds, more) in zip(SHAPES[shape], best, strict=True)]  # fmt: skip
    return "   ".join((*shown, "powers {:4.1f} {:4.1f}".format(*powers))), good


def main() -> int:
    """Print the table, with excesses marked."""
    names = [name for name in (*fo.mechanisms.names(), *VARIANTS) if name not in LEFT_OUT]
    cells = [(shape, name) for shape in SHAPES for name in ALONE.get(shape, names)]
    for shape, name in cells:  # imports and compiled loops are loaded once, and shared by forked processes
        solve(name, cluster(shape, SHAPES[shape][0]))
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)  # a solve in memory that earlier ones have left free would seem to need none
    amiss = 0
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), get_context("fork")) as pool:
        for (shape, name), (text, good) in zip(cells, pool.map(row, *zip(*cells, strict=True)), strict=True):
            known = KNOWN.get((shape, name))
            amiss += not good and known is None
            mark = f"  (known: {known})" if known else "" if good else "  TOO MUCH"
            print(f"{shape:18} {name:30} {text}{mark}", flush=True)
    return int(amiss > 0)


if __name__ == "__main__":
    sys.exit(main())
