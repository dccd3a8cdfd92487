"""Exact answers, heuristics, and what can be run of the peers' own code, on the jobs of Soroush, Gavel and POP.

    python -m benchmarks.accelerators                     # the table of docs/peers.md without the peers' code
    python -m benchmarks.accelerators --peers DIR         # DIR has checkouts named gavel, Soroush and POP

Times are CPU seconds of one thread from the list of jobs to the answer. `least`, `mean` and `below .9` are levels
relative to those of max-min, over jobs; `error` is the certificate of an answer by fairopt. Peers' code gets Clarabel
where it asks for ECOS, and HiGHS for GLPK; `CVXPY` is a formulation of our own, of which max-min finds the first level.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.peers import limited

import cvxpy as cp  # isort: skip - threads are chosen first
import numpy as np  # isort: skip

import fairopt as fo  # isort: skip
from fairopt.harness.papers import accelerators as jobs  # isort: skip
from fairopt.model._arrays import Array  # isort: skip

Solve = Callable[[fo.Cluster], Array]
PRIORITIES = (1, 2, 4, 8)


def different(number: int) -> fo.Cluster:
    """Soroush's jobs with rates that differ by up to a tenth, so that no two are alike."""
    cluster = jobs.published(number, PRIORITIES, several=True)
    return cluster.replace(rate=cluster.rate * np.random.default_rng(0).uniform(0.9, 1.1, cluster.rate.shape))


def modelled(alpha: float, solver: str, cluster: fo.Cluster) -> Array:
    """Tasks by CVXPY: the first level of max-min, or proportional fairness."""
    tasks = cp.Variable(cluster.rate.shape, nonneg=True)
    scale = cluster.demand[:, 0] / (cluster.rate @ cluster.capacity[:, 0]) * cluster.capacity.sum() / cluster.weight
    level = cp.multiply(cp.sum(cp.multiply(cluster.rate, tasks), axis=1), scale)
    goal = cluster.weight @ cp.log(level) if alpha == 1 else cp.min(level)
    rows = [cluster.demand[:, 0] @ tasks <= cluster.capacity[:, 0], cp.sum(tasks, axis=1) <= cluster.max_tasks]
    cp.Problem(cp.Maximize(goal), rows).solve(solver=solver)
    return np.asarray(tasks.value)


def theirs(name: str, *folders: Path) -> Any:
    """Module of a peer's checkout."""
    sys.path[:0] = map(str, folders)
    return import_module(name)


def gavel_own(folder: Path, cluster: fo.Cluster) -> Array:
    """Tasks by Gavel's `max_min_fairness_water_filling`."""
    module = theirs("max_min_fairness_water_filling", folder / "gavel" / "scheduler" / "policies")
    ours, solve = {"ECOS": "CLARABEL", "GLPK_MI": "HIGHS"}, cp.Problem.solve
    cp.Problem.solve = lambda self, solver, **_: solve(self, solver=ours[solver])
    rate = {n: dict(zip(cluster.servers, row, strict=True)) for n, row in enumerate(cluster.rate)}
    scale, weight = dict(enumerate(cluster.demand[:, 0])), dict(enumerate(cluster.weight))
    workers = dict(zip(cluster.servers, cluster.capacity[:, 0], strict=True))
    found = module.MaxMinFairnessWaterFillingPolicyWithPerf().get_allocation(rate, scale, weight, workers)
    return np.array([[found[n][name] for name in cluster.servers] for n in rate])


def soroush_own(folder: Path, module: str, options: dict[str, Any], cluster: fo.Cluster) -> Array:
    """Tasks by a heuristic of Soroush's `alg`."""
    needed = folder / "Soroush" / "cluster_scheduling", folder, folder / "gavel" / "scheduler"
    names = [user.rpartition(", ")[0] for user in cluster.users]
    scale = cluster.demand[:, 0].astype(int).tolist()
    every = {
        n: SimpleNamespace(job_type=name, scale_factor=scale[n], job_id=n, priority_weight=1.0)
        for n, name in enumerate(names)
    }
    rates = {
        server: {(name, scale[n]): {"null": cluster.rate[n, i]} for n, name in enumerate(names)}
        for i, server in enumerate(cluster.servers)
    }
    problem = theirs("scripts.problem", *needed).Problem(
        dict(zip(cluster.servers, cluster.capacity[:, 0], strict=True)), job_dict=every, oracle_throughputs=rates,
        priority_mapping=dict(enumerate(cluster.weight)),
    )  # fmt: skip
    found, _ = theirs(f"alg.{module}", *needed).get_rates(problem, priority_aware=True, return_matrix=True, **options)
    return np.asarray(found)


def pop_own(folder: Path, cluster: fo.Cluster) -> Array:
    """Levels (users,) by the `max_min_fairness_packed` of POP, which lists all pairs of jobs."""
    here = folder / "POP" / "cluster_scheduling" / "scheduler"
    pair, policies = theirs("job_id_pair", here).JobIdPair, theirs("policies.max_min_fairness", here)
    kinds = [user.rpartition(", ")[0] for user in cluster.users]
    together = jobs.pair_rates()
    rate = {pair(n, None): dict(zip(jobs.GPUS, row, strict=True)) for n, row in enumerate(cluster.rate)}
    each = dict.fromkeys(rate, 1)
    rate |= {
        pair(n, m): {gpu: together.get((kinds[n], kinds[m], gpu), (0.0, 0.0)) for gpu in jobs.GPUS}
        for n in range(len(kinds)) for m in range(n + 1, len(kinds))
    }  # fmt: skip
    workers = dict(zip(jobs.GPUS, cluster.capacity[:, 0], strict=True))
    policy, work = policies.MaxMinFairnessPolicyWithPacking(solver="HIGHS"), np.zeros(len(kinds))
    column = policy._proportional_policy.get_throughputs
    policy._proportional_policy.get_throughputs = lambda *given: column(*given).ravel()  # which NumPy 2 converts
    found = policy.get_allocation(rate, each, each, workers)
    for job, amounts in found.items():
        for k, one in enumerate(job.singletons()):
            work[one[0]] += sum(amounts[gpu] * np.atleast_1d(rate[job][gpu])[k] for gpu in jobs.GPUS)
    return np.asarray(work / (cluster.rate @ cluster.capacity[:, 0]) * cluster.capacity.sum())


def ours(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> Array:
    """Tasks by a mechanism of fairopt, which raises if its certificate does not hold."""
    return mechanism.solve(cluster).tasks


#: Fairness by alpha; `alone` is the normalisation of Gavel.
NASH, CUBIC = (fo.AlphaFair(alpha=alpha, share="alone") for alpha in (1, 3))


def methods(folder: Path | None) -> dict[str, tuple[Callable[[], fo.Cluster], dict[str, Solve]]]:
    """Cases: how jobs are listed, and what answers."""
    listed = partial(jobs.published, priorities=PRIORITIES, several=True)
    exact: dict[str, Solve] = {"fairopt, all levels": partial(ours, fo.TSF())}
    smooth: dict[str, Solve] = {f"fairopt, alpha = {one.alpha}": partial(ours, one) for one in (NASH, CUBIC)}
    smooth["CVXPY, alpha = 1"] = partial(modelled, 1, "CLARABEL")
    first: dict[str, Solve] = {f"CVXPY, {name}": partial(modelled, np.inf, name) for name in ("HIGHS", "CLARABEL")}
    own: dict[str, Solve] = {}
    if folder is not None:
        own["adaptive water filling, Soroush's code"] = partial(
            soroush_own, folder, "adapt_waterfiller", {"num_iter_approx_water": 1, "num_iter_adapt_water": 10}
        )
        own["water filling, Soroush's code"] = partial(
            soroush_own, folder, "approx_waterfiller", {"num_iter": 1, "throughput_aware": True}
        )
    gavel: dict[str, Solve] = {} if folder is None else {"water filling, Gavel's code": partial(gavel_own, folder)}
    pop: dict[str, Solve] = {} if folder is None else {"first level, POP's code": partial(pop_own, folder)}
    pairs: dict[str, Solve] = {"fairopt, all levels": jobs.paired_levels}
    pairs |= {f"POP-{parts}": partial(jobs.paired_levels, parts=parts) for parts in (2, 4, 8)}
    alike = partial(jobs.published, priorities=(1,), several=False)
    quick: dict[str, Solve] = {**jobs.HEURISTICS}
    return {
        "Soroush, 8,192 jobs": (partial(listed, 8192), exact | quick | smooth | first | own),
        "Soroush, 8,192 different jobs": (partial(different, 8192), exact | smooth | {"pop": jobs.pop}),
        "Soroush, 256 jobs": (partial(listed, 256), exact | quick | first | gavel),
        "Gavel's test, 300 jobs": (partial(jobs.flat_test, 300), exact | first | gavel),
        "POP's figure 2, 2,048 jobs in pairs": (partial(alike, 2048), pairs),
        "POP's figure 2, 128 jobs in pairs": (partial(alike, 128), pairs | pop),
    }


def answered(solve: Solve, draw: Callable[[], fo.Cluster]) -> Array:
    """Answer from the list of jobs."""
    return solve(draw())


def error(cluster: fo.Cluster, name: str, answer: Array) -> str:
    """Certificate of tasks by fairopt; levels in pairs are judged where they are solved."""
    if answer.ndim == 1 or not name.startswith("fairopt"):
        return ""
    by = next((one for one in (NASH, CUBIC) if name.endswith(f"alpha = {one.alpha}")), fo.TSF())
    return f"{fo.Allocation.of(cluster, answer, criterion=by, throw=False).certificate.residual:.0e}"


def main() -> None:
    """Measure all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder with checkouts of gavel, Soroush and POP")
    parser.add_argument("--only", nargs="*", help="beginnings of cases")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of an answer")
    asked = parser.parse_args()
    for mechanism in (fo.TSF(), NASH, CUBIC):  # compilation precedes the measurement
        for small in (different(64), jobs.flat_test(40)):
            mechanism.solve(small)
    print("| jobs | by | CPU s | least | mean | below .9 | error |", "|---" * 7 + "|", sep="\n")
    for case, (draw, every) in methods(asked.peers).items():
        if asked.only and not case.startswith(tuple(asked.only)):
            continue
        cluster = draw()
        fair: Array | None = None
        for name, solve in every.items():
            seconds, answer = limited(partial(answered, solve, draw), asked.limit)
            row = [case, name, seconds]
            if answer is not None:
                levels = answer if answer.ndim == 1 else jobs.levels(cluster, answer)
                fair = levels if name == next(iter(every)) else fair
                numbers = ("", "", "") if fair is None else (f"{one:.3g}" for one in jobs.distance(levels, fair))
                row += [*numbers, error(cluster, name, answer)]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
