"""Throughput of `solve_many`, `Mechanism.solve` and CVXPY: `python -m benchmarks.many --help`.

One thread, CPU seconds after compilation. Clusters have uniform data, with a tenth of the demands zero. CVXPY has one
problem with capacities, demands and shares as parameters, compiled once and solved by Clarabel; of max-min it solves
only the first level, without certificates. `missed` counts problems of `solve_many` whose certificate misses `tol`;
`worst` is the largest certificate of the others.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.errors import FairoptError  # noqa: E402
from fairopt.mechanisms import Mechanism  # noqa: E402

Shape = tuple[int, int, int]

#: Users, servers, resources: small sizes, and those at which batches gain little.
SHAPES: tuple[Shape, ...] = ((3, 2, 2), (4, 3, 3), (8, 4, 3), (12, 6, 3), (20, 10, 3))
MECHANISMS = (
    *("drf", "drfh", "tsf", "asset-fairness", "per-server-drf", "ceei", "alpha-fair(alpha=0.5)", "alpha-fair(alpha=2)"),
    *("alpha-fair(alpha=8)", "alphapf-vds(alpha=0.5)", "alphapf-vds(alpha=3)", "alphapf-vds(alpha=16)", "ps-dsf"),
)


def drawn(count: int, shape: Shape, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random capacities (problems, servers, resources) and demands (problems, users, resources)."""
    users, servers, resources = shape
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(1, 5, (count, servers, resources)) * users
    demand = rng.uniform(0.25, 5, (count, users, resources)) * (rng.random((count, users, resources)) < 0.9)
    demand[..., 0] += demand.sum(axis=2) == 0
    return capacity, demand


def rate(work: Callable[[], object], count: int) -> float:
    """Problems per CPU second."""
    begun = time.process_time()
    work()
    return count / (time.process_time() - begun)


def one_by_one(mechanism: Mechanism, capacity: np.ndarray, demand: np.ndarray, tol: float) -> None:
    """Solve each problem by `Mechanism.solve`."""
    for c, d in zip(capacity, demand, strict=True):
        try:
            mechanism.solve(fo.Cluster(c, d), tol, throw=False)
        except FairoptError as error:
            print(f"{mechanism}: {error}")


def parametrised(mechanism: Mechanism, capacity: np.ndarray, demand: np.ndarray) -> Callable[[int], object] | None:
    """CVXPY problem with parameters, for mechanisms that are one program on the pool or on servers."""
    import cvxpy as cp

    first = fo.Cluster(capacity[0], demand[0])
    rule = mechanism.criterion(mechanism.prepare(first)[0])
    if rule.scope not in ("pool", "servers"):
        return None
    clusters = [mechanism.prepare(fo.Cluster(c, d))[0] for c, d in zip(capacity, demand, strict=True)]
    users, servers, resources = clusters[0].shape
    tasks, need = cp.Variable((users, servers), nonneg=True), cp.Parameter((users, resources), nonneg=True)
    most, share = cp.Parameter((servers, resources), nonneg=True), cp.Parameter(users, nonneg=True)
    level = cp.multiply(share, cp.sum(tasks, axis=1))
    fits = [tasks.T @ need <= most]
    if np.isinf(rule.alpha):
        goal = cp.min(level)
    elif rule.alpha == 1:
        goal = cp.sum(cp.log(level))
    else:
        goal = cp.sum(cp.power(level, 1 - rule.alpha, approx=False)) / (1 - rule.alpha)
    problem = cp.Problem(cp.Maximize(goal), fits)

    def solve(k: int) -> object:
        need.value, most.value = clusters[k].demand, clusters[k].capacity
        share.value = mechanism.criterion(clusters[k]).share
        return problem.solve(solver="CLARABEL")

    return solve


def row(name: str, shape: Shape, count: int, few: int, tol: float) -> dict[str, object]:
    """Measure a mechanism at one size; `few` problems are solved individually and by CVXPY."""
    (mechanism,) = fo.mechanisms.parse(name)
    capacity, demand = drawn(count, shape)
    fo.solve_many(mechanism, capacity[:2], demand[:2], tol=tol)
    begun = time.process_time()
    found = fo.solve_many(mechanism, capacity, demand, tol=tol)
    many = count / (time.process_time() - begun)
    one_by_one(mechanism, capacity[:2], demand[:2], tol)
    alone = rate(lambda: one_by_one(mechanism, capacity[:few], demand[:few], tol), few)
    program = parametrised(mechanism, capacity[:few], demand[:few])
    by_cvxpy = np.nan
    if program is not None:
        program(0)
        by_cvxpy = rate(lambda: [program(k) for k in range(few)], few)
    worst = np.nanmax(np.where(np.isnan(found.user_tasks[:, 0]), np.nan, found.certificate))
    users, servers, resources = shape
    return {
        "mechanism": str(mechanism),
        "shape": f"{users} x {servers} x {resources}",
        "solve_many": many,
        "solve": alone,
        "CVXPY": by_cvxpy,
        "times": many / alone,
        "missed": len(found.failed),
        "worst": worst,
    }


def table(
    mechanisms: Sequence[str] = MECHANISMS,
    shapes: Sequence[Shape] = SHAPES,
    problems: int = 2000,
    few: int = 50,
    tol: float = 1e-8,
) -> pd.DataFrame:
    """Rows by mechanism and size, printed as they arrive; of large sizes fewer problems are solved."""
    rows: list[dict[str, object]] = []
    for shape in shapes:
        count = max(few, int(problems * min(1.0, (12 / (shape[0] * shape[1])) ** 2)))
        for name in mechanisms:
            rows.append(row(name, shape, count, min(few, count), tol))
            shown = pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1, float_format="{:.4g}".format)
            print(shown, file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    """Print a table, and write it to a file on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mechanisms", nargs="+", default=MECHANISMS)
    parser.add_argument(
        "--shapes", nargs="+", default=["x".join(map(str, shape)) for shape in SHAPES], help="3x2x2 ..."
    )
    parser.add_argument("--problems", type=int, default=2000, help="of solve_many; fewer of large shapes")
    parser.add_argument("--few", type=int, default=50, help="problems solved one by one")
    parser.add_argument("--tol", type=float, default=1e-8)
    parser.add_argument("--csv", help="write the table there too")
    options = parser.parse_args()
    wanted = [tuple(map(int, text.split("x"))) for text in options.shapes]
    shapes = [(users, servers, resources) for users, servers, resources in wanted]
    found = table(options.mechanisms, shapes, options.problems, options.few, options.tol)
    print(found.to_string(index=False, float_format="{:.4g}".format))
    if options.csv:
        found.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
