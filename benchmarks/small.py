"""One small solve with its certificate, in milliseconds of the processor: `python -m benchmarks.small SECTION`.

For other checkouts too (`PYTHONPATH`): it asks for nothing but what the package has always had.
Clusters are drawn uniformly, a tenth of the demands zero and a tenth of the pairs not eligible. Loops are compiled
before; in `times` and `profile` no cluster was solved before. Prints a JSON line per row.

times    by mechanism and shape: the median and the slowest of the clusters, the least of three times each
warm     along ten alphas by `start=`, and the same from nothing
path     `alpha_path` of forty alphas
profile  where the time of a 3 x 2 solve goes: calls of Python functions, and CPU seconds by part of the package
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import fairopt as fo
from fairopt.errors import FairoptError

PACKAGE = Path(fo.__file__).resolve().parent
#: Users and servers, and how many clusters.
SHAPES = {(3, 2): 30, (20, 10): 20, (200, 50): 3}
#: The goals in milliseconds at 3 x 2; at 20 x 10 they are twice as much.
MOST = {
    **dict.fromkeys(("drf", "drfh", "tsf", "asset-fairness(scope=servers)"), 2.0),
    **dict.fromkeys(("ceei", "ceei(scope=servers)", "alpha-fair(alpha=3)", "alphapf-vds(alpha=3)"), 3.0),
    "ps-dsf": 5.0,
}


def drawn(users: int, servers: int, seed: int) -> fo.Cluster:
    """A cluster of two resources."""
    rng = np.random.default_rng(seed)
    demand = rng.uniform(0.25, 5, (users, 2)) * (rng.random((users, 2)) < 0.9)
    demand[:, 0] += demand.sum(axis=1) == 0
    eligible = rng.random((users, servers)) < 0.9
    return fo.Cluster(rng.uniform(1, 5, (servers, 2)) * users, demand, eligible=eligible)


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def fresh(cluster: fo.Cluster) -> fo.Cluster:
    """The same data, nothing of which is known yet."""
    return fo.Cluster(cluster.capacity, cluster.demand, eligible=cluster.eligible)


def times() -> None:
    for (users, servers), count in SHAPES.items():
        for name, most in MOST.items():
            (mechanism,) = fo.mechanisms.parse(name)
            clusters = [drawn(users, servers, seed) for seed in range(count)]
            for cluster in clusters:
                mechanism.solve(cluster)
            found = [min(seconds(partial(mechanism.solve, fresh(cluster))) for _ in range(3)) for cluster in clusters]
            limit = {(3, 2): most, (20, 10): 2 * most}.get((users, servers))
            row = {"shape": f"{users} x {servers}", "mechanism": name, "at most": limit}
            print(json.dumps(row | {"ms": 1e3 * float(np.median(found)), "slowest": 1e3 * max(found)}), flush=True)


def warm() -> None:
    alphas = [float(alpha) for alpha in np.geomspace(1.5, 6, 10)]
    for users, servers in SHAPES:
        cluster = drawn(users, servers, 1)
        for kind in (fo.AlphaFair, fo.AlphaPFVDS):
            cold, started = [], []
            before = kind(1.3).solve(cluster)
            for alpha in alphas:
                cold.append(1e3 * seconds(partial(kind(alpha).solve, cluster)))
                begun = time.process_time()
                before = kind(alpha).solve(cluster, start=before)
                started.append(1e3 * (time.process_time() - begun))
            row = {"shape": f"{users} x {servers}", "mechanism": kind.title}
            least = {"cold ms": float(np.median(cold)), "warm ms": float(np.median(started))}
            print(json.dumps(row | least), flush=True)


def path() -> None:
    for users, servers in ((3, 2), (20, 10)):
        cluster = drawn(users, servers, 1)
        for kind in (fo.AlphaFair, fo.AlphaPFVDS):
            alphas = np.geomspace(0.1, 64, 40)
            found = [seconds(partial(fo.alpha_path, cluster, alphas, mechanism=kind)) for _ in range(4)]
            row = {"shape": f"{users} x {servers}", "mechanism": kind.title, "alphas": 40}
            print(json.dumps(row | {"seconds": min(found[1:])}), flush=True)


def profile() -> None:
    for name in ("drfh", "alpha-fair(alpha=3)", "alphapf-vds(alpha=3)", "ps-dsf"):
        (mechanism,) = fo.mechanisms.parse(name)
        clusters = [drawn(3, 2, seed) for seed in range(20)]
        for cluster in clusters:
            mechanism.solve(cluster)
        clusters, watch = [fresh(cluster) for cluster in clusters], cProfile.Profile()
        watch.enable()
        for cluster in clusters:
            mechanism.solve(cluster)
        watch.disable()
        calls = 0
        parts: defaultdict[str, float] = defaultdict(float)
        for (file, _, _), (count, _, own, _, _) in pstats.Stats(watch).stats.items():  # type: ignore[attr-defined]
            calls += count
            inside = Path(file).is_relative_to(PACKAGE)
            parts[Path(file).relative_to(PACKAGE).parts[0] if inside else "libraries"] += own / len(clusters)
        shown = {part: round(1e3 * own, 3) for part, own in sorted(parts.items(), key=lambda item: -item[1])[:6]}
        row = {"mechanism": name, "calls": calls // len(clusters), "ms": 1e3 * sum(parts.values())}
        print(json.dumps(row | {"by part, ms": str(shown).strip("{}").replace("'", "")}), flush=True)


if __name__ == "__main__":
    for section in sys.argv[1:]:
        try:
            {"times": times, "warm": warm, "path": path, "profile": profile}[section]()
        except FairoptError as error:
            print(json.dumps({"error": str(error)}))
