"""How cost grows with users N, servers K, resources M, placement and alpha: `python -m benchmarks.growth --help`.

One thread, every solve in a process of its own, so that its peak memory is its own; seconds of the processor, cold but
compiled. One of the sizes is varied, the others stay; `growth` is the power of it by which a row's seconds exceed those
of the row before. Certificates are computed again.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402

import fairopt as fo  # noqa: E402

#: What stays: users, servers, resources, part of the servers that a user may run on.
BASE = {"N": 400, "K": 80, "M": 4, "density": 1.0}
VARIED: dict[str, tuple[float, ...]] = {
    "N": (100, 200, 400, 800, 1600),
    "K": (20, 40, 80, 160, 320),
    "M": (1, 2, 4, 8),
    "density": (0.03, 0.1, 0.3, 1.0),
}
ALPHAS = (0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0, 5.0, 8.0, 16.0, 64.0, math.inf)
MECHANISMS = (
    "alphapf-vds(alpha=1)",
    "alphapf-vds(alpha=2)",
    "alphapf-vds(alpha=8)",
    "ps-dsf",
    "alpha-fair(alpha=1)",
    "alpha-fair(alpha=3)",
    "drfh",
)


def lognormal(size: dict[str, float], rng: np.random.Generator) -> fo.Cluster:
    """No two servers or users alike, of any number of resources; placement at random."""
    users, servers, resources = int(size["N"]), int(size["K"]), int(size["M"])
    eligible = rng.random((users, servers)) < size["density"]
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    capacity, demand = (np.exp(0.5 * rng.standard_normal((count, resources))) for count in (servers, users))
    return fo.Cluster(100 * capacity, demand, eligible=eligible if size["density"] < 1 else None)


def solve(mechanism: str, size: dict[str, float], seed: int) -> dict[str, object]:
    """One solve."""
    solver = fo.mechanisms.parse(mechanism)[0]
    solver.solve(lognormal({"N": 12, "K": 4, "M": size["M"], "density": 1.0}, np.random.default_rng(0)), throw=False)
    cluster = lognormal(size, np.random.default_rng(seed))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = solver.solve(cluster, 1e-6, throw=False)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row: dict[str, object] = {"seconds": seconds, "steps": found.stats.rounds, "engine": found.stats.engine}
    return row | {"certificate": found.certify().residual, "MiB more": (peak - before) // 1024}


def rows(mechanisms: list[str], varied: list[str], seeds: int) -> Iterator[dict[str, object]]:
    """One row per mechanism, size and seed; for `alpha`, the game alone."""
    cases = [(name, key, BASE | {key: value}) for name in mechanisms for key in varied if key != "alpha"
             for value in VARIED[key]]  # fmt: skip
    if "alpha" in varied:
        names = ["ps-dsf" if math.isinf(alpha) else f"alphapf-vds(alpha={alpha:g})" for alpha in ALPHAS]
        cases += [(name, "alpha", BASE) for name in names]
    context = multiprocessing.get_context("spawn")
    for name, key, size in cases:
        for seed in range(seeds):
            with context.Pool(1) as pool:  # a process of its own
                found = pool.apply(solve, (name, size, seed))
            value = size[key] if key != "alpha" else math.nan
            yield {"mechanism": name, "varied": key, "value": value, "seed": seed} | found


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Medians over seeds, the worst certificate, and the growth from row to row."""
    by = ["mechanism", "varied", "value"]
    shown = frame.groupby(by, sort=False, dropna=False).agg(
        seconds=("seconds", "median"), steps=("steps", "median"), certificate=("certificate", "max"),
        MiB=("MiB more", "max"),
    ).reset_index()  # fmt: skip
    same = (shown[["mechanism", "varied"]] == shown[["mechanism", "varied"]].shift()).all(axis=1)
    ratio = np.log(shown["seconds"] / shown["seconds"].shift()) / np.log(shown["value"] / shown["value"].shift())
    return shown.assign(growth=ratio.where(same))


def main() -> None:
    """Measure, print as it goes, and write a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mechanisms", default=";".join(MECHANISMS), help="separated by semicolons")
    parser.add_argument("--varied", default=",".join((*VARIED, "alpha")))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    kept = []
    for row in rows(chosen.mechanisms.split(";"), chosen.varied.split(","), chosen.seeds):
        kept.append(row)
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    frame = pd.DataFrame(kept)
    print(table(frame).to_string(index=False, float_format="{:.3g}".format))
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
