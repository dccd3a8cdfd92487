"""Measure the native engine of alpha-fair welfare: `python -m benchmarks.concave --help`.

One thread. Every answer's certificate is computed again and printed, so that a time without an answer shows as such.
The peers run in the same process, in turn with it: Clarabel called directly (exponential cones at alpha = 1, power
cones otherwise), CVXPY with Clarabel, and CVXPY with QOCO where that is installed. Their allocations are judged by the
same certificate, at their own prices.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import clarabel  # noqa: E402 - threads are chosen first
import cvxpy as cp  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import fairopt as fo  # noqa: E402
from benchmarks.families import FAMILIES, typed  # noqa: E402
from fairopt.certificates import certify  # noqa: E402
from fairopt.engines.reference.program import ClusterProgram  # noqa: E402
from fairopt.model.criterion import Criterion  # noqa: E402
from fairopt.model.polytope import Polytope  # noqa: E402

ALPHAS = (0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0, 8.0, 64.0, 500.0)


def placed(cluster: fo.Cluster, density: float, rng: np.random.Generator) -> fo.Cluster:
    """The same cluster with placement at random: every pair with probability `density`, at least one per user."""
    users, servers = cluster.shape[:2]
    eligible = rng.random((users, servers)) < density
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    return cluster.replace(eligible=eligible)


def solve(cluster: fo.Cluster, alpha: float, tol: float = 1e-6) -> dict[str, object]:
    """One solve, cold: seconds (all of it, CPU, and apart), Newton steps, certificate, peak memory so far in MiB."""
    start, cpu = time.perf_counter(), time.process_time()
    found = fo.AlphaFair(alpha).solve(cluster, tol, throw=False)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "seconds": seconds,
        "cpu": cpu,
        "solve": found.stats.solve,
        "engine": found.stats.engine,
        "steps": found.stats.rounds,
        "certificate": found.certify().residual,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def direct(cluster: fo.Cluster, alpha: float) -> dict[str, object]:
    """Clarabel without a modelling language: seconds (of the solver alone; all and CPU), gap.

    In the units in which it got furthest: tasks as they are at alpha = 1, shares near 1 otherwise.
    """
    rule = fo.AlphaFair(alpha).criterion(cluster)
    polytope = Polytope(cluster, rule.limits(cluster))
    pairs, users = len(polytope.gamma), len(polytope.users)
    size = np.ones(users) if alpha == 1 else np.asarray(polytope.tasks.sum(axis=1)).ravel() / users
    shares = sp.diags(1 / size) @ polytope.tasks
    factor = np.exp(alpha * np.log(rule.weight) + (1 - alpha) * np.log(rule.share * size))
    # Variables: fractions and gains; rows: capacity, fractions >= 0, then one cone of three rows per user.
    one, zero = sp.eye(users), sp.csr_matrix((users, users))
    none, slope = sp.csr_matrix((users, pairs)), (1 - alpha) * one
    if alpha == 1:  # (gain, 1, share) in the exponential cone
        rows, constants, cone = [(none, -one), (none, zero), (-shares, zero)], (0, 1, 0), clarabel.ExponentialConeT
        cones = [cone() for _ in range(users)]
    elif alpha < 1:  # share^(1-alpha) >= 1 + (1-alpha) gain
        rows, constants = [(-shares, zero), (none, zero), (none, -slope)], (0, 1, 1)
        cones = [clarabel.PowerConeT(1 - alpha) for _ in range(users)]
    else:  # (1 + (1-alpha) gain)^(1/alpha) share^(1-1/alpha) >= 1
        rows, constants = [(none, -slope), (-shares, zero), (none, zero)], (1, 0, 1)
        cones = [clarabel.PowerConeT(1 / alpha) for _ in range(users)]
    order = np.arange(3 * users).reshape(3, users).T.ravel()
    cone_rows = sp.vstack([sp.hstack(row) for row in rows]).tocsr()[order]
    capacity = sp.hstack([polytope.use, sp.csr_matrix((polytope.use.shape[0], users))])
    positive = sp.hstack([-sp.eye(pairs), sp.csr_matrix((pairs, users))])
    matrix = sp.vstack([capacity, positive, cone_rows]).tocsc()
    rhs = np.concatenate([np.ones(polytope.use.shape[0]), np.zeros(pairs), np.repeat(constants, users)[order]])
    linear = np.concatenate([np.zeros(pairs), -factor / factor.max()])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    all_cones = [clarabel.NonnegativeConeT(polytope.use.shape[0] + pairs), *cones]
    start, cpu = time.perf_counter(), time.process_time()
    empty = sp.csc_matrix((pairs + users, pairs + users))
    answer = clarabel.DefaultSolver(empty, linear, matrix, rhs.astype(float), all_cones, settings).solve()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    tasks = polytope.allocation(polytope.inside(np.asarray(answer.x)[:pairs]))
    prices = polytope.unit_prices(np.maximum(np.asarray(answer.z)[: polytope.use.shape[0]], 0))
    reached = certify(cluster, tasks, rule, prices)[0].residual
    return {"direct": seconds, "direct cpu": cpu, "direct gap": reached, "direct status": str(answer.status)}


def modelled(cluster: fo.Cluster, alpha: float) -> dict[str, object]:
    """CVXPY with Clarabel at its own tolerances: seconds, gap."""
    mechanism = fo.AlphaFair(alpha)
    rule = mechanism.criterion(cluster)
    polytope = Polytope(cluster, rule.limits(cluster))
    start = time.perf_counter(), time.process_time()
    program = ClusterProgram(polytope, rule)
    formulation = mechanism.formulate(program)
    problem = cp.Problem(formulation.objective, list(formulation.constraints.values()))
    capacity = formulation.constraints["capacity"]
    return _through_cvxpy(
        problem, program.fraction, capacity, polytope, rule, start, "cvxpy", "CLARABEL", max_threads=1
    )


def by_second_order_cones(cluster: fo.Cluster, alpha: float) -> dict[str, object]:
    """CVXPY with QOCO: `sum_n share_n^(1-alpha)`, which CVXPY writes in second-order cones, in units as in `direct`.

    alpha = 1 is no second-order cone: QOCO says so, and the gap is infinite.
    """
    rule = fo.AlphaFair(alpha).criterion(cluster)
    polytope = Polytope(cluster, rule.limits(cluster))
    size = np.asarray(polytope.tasks.sum(axis=1)).ravel() / len(polytope.users)
    factor = np.exp(alpha * np.log(rule.weight) + (1 - alpha) * np.log(rule.share * size))
    start = time.perf_counter(), time.process_time()
    fraction = cp.Variable(len(polytope.gamma), nonneg=True)
    capacity = polytope.use @ fraction <= 1
    share = sp.diags(1 / size) @ polytope.tasks @ fraction
    gain = cp.log(share) if alpha == 1 else cp.power(share, 1 - alpha) / (1 - alpha)
    problem = cp.Problem(cp.Maximize((factor / factor.max()) @ gain), [capacity])
    return _through_cvxpy(problem, fraction, capacity, polytope, rule, start, "qoco", "QOCO")


def _through_cvxpy(
    problem: cp.Problem,
    fraction: cp.Variable,
    capacity: cp.Constraint,
    polytope: Polytope,
    rule: Criterion,
    start: tuple[float, float],
    name: str,
    solver: str,
    **options: object,
) -> dict[str, object]:
    try:
        problem.solve(solver=solver, **options)
    except cp.error.SolverError:
        return {name: time.perf_counter() - start[0], f"{name} gap": np.inf}
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    tasks = polytope.allocation(polytope.inside(fraction.value))
    prices = polytope.unit_prices(np.maximum(capacity.dual_value, 0))
    reached = certify(polytope.cluster, tasks, rule, prices)[0].residual
    return {name: seconds, f"{name} cpu": cpu, f"{name} gap": reached}


def rows(chosen: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row per family, alpha and seed; peers in turn with the engine."""
    for family in chosen.families.split(","):
        make = typed if family == "typed" else FAMILIES[family]
        for seed in range(chosen.seeds):
            rng = np.random.default_rng(seed)
            cluster = make(chosen.users, chosen.servers, rng)
            if chosen.density < 1:
                cluster = placed(cluster, chosen.density, rng)
            for alpha in map(float, chosen.alphas.split(",")):
                row: dict[str, object] = {"family": family, "alpha": alpha, "seed": seed}
                row |= solve(cluster, alpha, chosen.tol)
                if "direct" in chosen.peers:
                    row |= direct(cluster, alpha)
                if "cvxpy" in chosen.peers:
                    row |= modelled(cluster, alpha)
                if "qoco" in chosen.peers:
                    row |= by_second_order_cones(cluster, alpha)
                yield row


def main() -> None:
    """Measure, print as it goes, and write a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--density", type=float, default=1.0)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--alphas", default=",".join(map(str, ALPHAS)))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--peers", default="", help="some of direct, cvxpy, qoco, with commas")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if "qoco" in chosen.peers and "QOCO" not in cp.installed_solvers():
        parser.error("QOCO is not installed (pip install qoco)")
    for alpha in (0.5, 1.0):  # compile before the clock starts
        fo.AlphaFair(alpha).solve(FAMILIES["lognormal"](40, 10, np.random.default_rng(0)))
    kept = []
    for row in rows(chosen):
        kept.append(row)
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    frame = pd.DataFrame(kept)
    frame["certified"] = frame["certificate"] <= chosen.tol
    shown = frame.groupby(["family", "alpha"]).agg(
        seconds=("seconds", "median"), slowest=("seconds", "max"), steps=("steps", "median"),
        certified=("certified", "mean"), native=("engine", lambda names: (names == "native").mean()),
    )  # fmt: skip
    print(shown.to_string(float_format="{:.3g}".format))
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
