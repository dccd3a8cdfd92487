"""Comparison with HiGHS, Clarabel and QOCO on the same problems in the same run.

    python -m benchmarks.peers                       # all of it, the table of docs/peers.md
    python -m benchmarks.peers --only "DRFH 10 x 300" --limit 120

Times are CPU seconds of one thread for a whole call, including merging and certification by fairopt, and the
compilation by CVXPY; HiGHS receives matrices. Peers that exceed the limit are terminated. They solve the merged
cluster, with variables relative to monopoly tasks of pairs. In brackets are the certificate of fairopt, and the
deviation of a peer's lowest level (simplex: any level; CEEI: any user's tasks) from it. `pip install qoco` adds QOCO.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from functools import partial

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import cvxpy as cp  # noqa: E402 - threads are chosen first
import highspy  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import fairopt as fo  # noqa: E402
from benchmarks.families import google, lognormal  # noqa: E402
from fairopt.model._arrays import Array  # noqa: E402
from fairopt.model.polytope import Polytope  # noqa: E402

Peer = Callable[["Problem"], Array]
#: Relative price of a level above which it is fixed, since no optimum raises it.
PRICED = 1e-5


def three_servers(users: int, servers: int, rng: np.random.Generator) -> fo.Cluster:
    """Cluster whose users are eligible on three servers."""
    eligible = np.argsort(rng.random((users, servers)), axis=1) < 3
    return lognormal(users, servers, rng).replace(eligible=eligible)


#: Mechanisms, families, and numbers of users and servers.
PROBLEMS: dict[str, tuple[fo.mechanisms.Mechanism, Callable[..., fo.Cluster], int, int]] = {
    "DRFH 10 x 300": (fo.DRFH(), lognormal, 10, 300),
    "DRFH 10 x 3,000": (fo.DRFH(), lognormal, 10, 3000),
    "DRFH 200 x 2,000": (fo.DRFH(), lognormal, 200, 2000),
    "DRFH 1,000 x 200": (fo.DRFH(), lognormal, 1000, 200),
    "DRFH 1,000 x 200, three servers a user": (fo.DRFH(), three_servers, 1000, 200),
    "DRFH 2,000 x 10 types of Google's": (fo.DRFH(), google, 2000, 12_583),
    "CEEI 10 x 3,000": (fo.CEEI(scope="servers"), lognormal, 10, 3000),
    "CEEI 200 x 50": (fo.CEEI(scope="servers"), lognormal, 200, 50),
}


class Problem:
    """Problem on the merged cluster: levels `levels @ z`, `use @ z <= 1`, `z >= 0`, and fairopt's solution if given."""

    def __init__(self, mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster, ours: fo.Allocation | None) -> None:
        merged = fo.merge(cluster)
        criterion = mechanism.criterion(merged.cluster)
        polytope = Polytope(merged.cluster, criterion.limits(merged.cluster))
        own = criterion.restrict(polytope.users)
        level = own.share / own.weight
        self.proportional = criterion.alpha == 1
        self.use: sp.csr_matrix = polytope.use
        self.weight: Array = own.weight
        best = polytope.reach * own.weight / own.weight.sum() * level  # a partition
        if ours is not None:
            best = np.bincount(merged.user_of, merged.task_size * ours.arrays.user_tasks)[polytope.users] * level
        self.levels: sp.csr_matrix = sp.diags(level / best.min()) @ polytope.tasks  # units near 1 suit the solvers
        self.best: Array = best / best.min()

    def off(self, found: Array, every: bool) -> float:
        """Largest relative deviation of a level from that of fairopt, or that of the lowest level."""
        return float(abs(found / self.best - 1).max() if every else abs(found.min() - 1))


def simplex(problem: Problem, every: bool = True) -> Array:
    """Levels by HiGHS: a sequence of linear programs, warm-started by the primal simplex method.

    Without `every` only the first level, by the interior point method without crossover.
    """
    users, pairs = problem.levels.shape
    rows = sp.block_array([[problem.use, None], [problem.levels, -np.ones((users, 1))]]).tocsc()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = pairs + 1, rows.shape[0]
    model.col_cost_ = np.append(np.zeros(pairs), -1.0)
    model.col_lower_, model.col_upper_ = np.zeros(pairs + 1), np.full(pairs + 1, np.inf)
    first = problem.use.shape[0]
    model.row_lower_ = np.append(np.full(first, -np.inf), np.zeros(users))
    model.row_upper_ = np.append(np.ones(first), np.full(users, np.inf))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, str | int] = {"threads": 1, "output_flag": False}
    options |= {"solver": "simplex", "simplex_strategy": 4} if every else {"solver": "ipx", "run_crossover": "off"}
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(model)
    rising = np.ones(users, dtype=bool)
    while True:
        solver.run()
        point = solver.getSolution()
        found = problem.levels @ np.asarray(point.col_value[:pairs])
        price = abs(np.asarray(point.row_dual[first:])) * rising
        held = np.flatnonzero(price > PRICED * price.sum())
        rising[held] = False
        if not every or not len(held) or not rising.any():
            return np.asarray(found)
        for n in held:
            solver.changeCoeff(first + int(n), pairs, 0.0)
            solver.changeRowBounds(first + int(n), point.col_value[pairs] * (1 - 1e-9), np.inf)


def modelled(problem: Problem, solver: str) -> Array:
    """Levels by CVXPY: the first level of max-min, or proportional fairness."""
    z = cp.Variable(problem.use.shape[1], nonneg=True)
    levels = problem.levels @ z
    goal = problem.weight @ cp.log(levels) if problem.proportional else cp.min(levels)
    cp.Problem(cp.Maximize(goal), [problem.use @ z <= 1]).solve(solver=solver)
    return np.asarray(levels.value)


#: Peers, and whether they find the levels of all users; QOCO has no exponential cones.
PEERS: dict[str, tuple[Peer, bool]] = {
    "HiGHS ipm": (lambda problem: simplex(problem, every=False), False),
    "HiGHS simplex": (simplex, True),
    "Clarabel": (lambda problem: modelled(problem, "CLARABEL"), False),
    "QOCO": (lambda problem: modelled(problem, "QOCO"), False),
}


def limited(call: Callable[[], Array], seconds: int) -> tuple[str, Array | None]:
    """CPU seconds of a call in a separate process, with its result; None if it fails or exceeds the limit."""
    here, there = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        begun = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(begun) + seconds, int(begun) + seconds))
        found = call()
        there.send((time.process_time() - begun, found))

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    there.close()
    try:
        used, found = here.recv()
    except EOFError:
        child.join()
        return f"> {seconds}" if child.exitcode and child.exitcode < 0 else "failed", None
    child.join()
    return f"{used:.2g}", found


def row(name: str, limit: int) -> dict[str, str]:
    """Seconds of fairopt with its certificate, and of each peer with the deviation of its levels."""
    mechanism, draw, users, servers = PROBLEMS[name]
    cluster = draw(users, servers, np.random.default_rng(0))
    begun = time.process_time()
    ours = mechanism.solve(cluster, throw=False)
    found = {"": name, "fairopt": f"{time.process_time() - begun:.2g} ({ours.certificate.residual:.0e})"}
    problem = Problem(mechanism, cluster, ours)
    for peer, (solve, every) in PEERS.items():
        if (problem.proportional and peer != "Clarabel") or (peer == "QOCO" and peer not in cp.installed_solvers()):
            continue
        used, levels = limited(partial(solve, problem), limit)
        far = None if levels is None else problem.off(levels, every or problem.proportional)
        found[peer] = used if far is None else f"{used} ({far:.0e})"
    return found


def main() -> None:
    """Measure all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=PROBLEMS, help="these problems")
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds of a peer")
    asked = parser.parse_args()
    for mechanism in (fo.DRFH(), fo.CEEI(scope="servers")):  # compilation precedes the measurement
        for users, servers in ((10, 300), (300, 80)):
            mechanism.solve(lognormal(users, servers, np.random.default_rng(0)))
    found = [row(name, asked.limit) for name in asked.only]
    print(pd.DataFrame(found).fillna("").to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
