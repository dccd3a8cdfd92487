"""Measure lexicographic max-min: `python -m benchmarks.maxmin --help`.

One thread. Certificates are computed again and printed, so that a time without an answer shows as such. The engine
`ipx` solves the linear program of the first level alone, by the interior point of HiGHS without crossover, as the peer.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import highspy  # noqa: E402 - threads are chosen first
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import fairopt as fo  # noqa: E402
from benchmarks.families import FAMILIES, typed  # noqa: E402
from fairopt.model.polytope import Polytope  # noqa: E402


def placed(users: int, servers: int, density: float, rng: np.random.Generator) -> fo.Cluster:
    """No two servers alike, every user on about `density servers` of them at random, at least one."""
    eligible = rng.random((users, servers)) < density
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    spread = np.exp(0.5 * rng.standard_normal((servers, 4))), np.exp(0.5 * rng.standard_normal((users, 4)))
    return fo.Cluster(100 * spread[0], spread[1], eligible=eligible)


def skewed(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """2.5 servers per user, capacities over three decades: many levels."""
    cluster = placed(users, servers, 2.5 / servers, rng)
    return cluster.replace(capacity=cluster.capacity * 10 ** rng.uniform(-1.5, 1.5, (servers, 1)))


def solve(cluster: fo.Cluster, engine: str, tol: float) -> dict[str, object]:
    """One solve, cold: seconds of the wall and of the processor, and the certificate computed again."""
    begun, used = time.perf_counter(), time.process_time()
    found = fo.DRFH().solve(cluster, tol, engine=engine, throw=False)
    row: dict[str, object] = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}
    level = found.criterion.levels(found.user_tasks)[cluster.runnable]
    again = time.perf_counter()
    row |= {"certificate": found.certify().residual, "certify": time.perf_counter() - again}
    levels = 1 + int((np.diff(np.sort(np.log(level))) > 1e-6).sum())
    row |= {"levels": levels, "steps": found.stats.rounds, "solver": found.stats.solver}
    return row | {"MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def ipx(cluster: fo.Cluster) -> dict[str, object]:
    """The first level by HiGHS IPX without crossover."""
    criterion = fo.DRFH().criterion(cluster)
    polytope = Polytope(cluster, criterion.limits(cluster))
    own = criterion.restrict(polytope.users)
    users, pairs = len(polytope.users), len(polytope.gamma)
    unit = 1 / (polytope.reach * own.share / own.weight).min()
    levels = sp.diags(own.share / own.weight * unit) @ polytope.tasks
    rows = sp.vstack(
        [
            sp.hstack([polytope.use, sp.csr_matrix((polytope.use.shape[0], 1))]),
            sp.hstack([-levels, sp.csr_matrix(np.ones((users, 1)))]),
        ]
    ).tocsc()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = pairs + 1, rows.shape[0]
    model.col_cost_ = np.append(np.zeros(pairs), -1.0)
    model.col_lower_, model.col_upper_ = np.zeros(pairs + 1), np.full(pairs + 1, np.inf)
    model.row_lower_ = np.full(rows.shape[0], -np.inf)
    model.row_upper_ = np.append(np.ones(polytope.use.shape[0]), np.zeros(users))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("solver", "ipx"), ("run_crossover", "off"), ("threads", 1), ("output_flag", False)):
        solver.setOptionValue(option, value)
    solver.passModel(model)
    begun, used = time.perf_counter(), time.process_time()
    solver.run()
    info = solver.getInfo()
    return {
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - used,
        "levels": 1,
        "steps": info.ipm_iteration_count,
        "solver": "HiGHS IPX, first level only",
    }


def main() -> None:
    """Measure, print as it goes, and write a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000x200", help="users x servers, separated by commas")
    parser.add_argument("--density", default="1,2.5", help="part of the servers for each user; above 1: how many")
    parser.add_argument("--families", default="", help=f"instead: skewed, typed, {', '.join(FAMILIES)}")
    parser.add_argument("--engines", default="native", help="native, declarative, ipx")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    solve(placed(60, 20, 1.0, np.random.default_rng(0)), "native", 1e-6)  # compile before the clock starts
    solve(placed(60, 20, 0.1, np.random.default_rng(0)), "native", 1e-6)
    solve(placed(300, 80, 1.0, np.random.default_rng(0)), "native", 1e-6)  # some pairs only, single precision
    kept = []
    for size in chosen.sizes.split(","):
        users, servers = map(int, size.split("x"))
        for family in (chosen.families or chosen.density).split(","):
            for seed in range(chosen.seeds):
                rng = np.random.default_rng(seed)
                if not chosen.families:
                    part = float(family)
                    cluster = placed(users, servers, part if part <= 1 else part / servers, rng)
                else:
                    make = {"skewed": skewed, "typed": typed}.get(family) or FAMILIES[family]
                    cluster = make(users, servers, rng)
                for engine in chosen.engines.split(","):
                    row: dict[str, object] = {"size": size, "family": family, "seed": seed, "engine": engine}
                    row |= ipx(cluster) if engine == "ipx" else solve(cluster, engine, chosen.tol)
                    kept.append(row)
                    shown = (f"{key} {v:.3g}" if isinstance(v, float) else f"{key} {v}" for key, v in row.items())
                    print("  ".join(shown), flush=True)
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(kept).to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
