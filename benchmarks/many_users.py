"""Thousands of users on a few types of servers: `python -m benchmarks.many_users --help`.

One thread, seconds of the processor with merging, certificate and splitting; loops are compiled before. `growth` is the
power of the number of users by which a row's seconds exceed those of the row before. Certificates are computed again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.workloads import alibaba_like, google_like  # noqa: E402

MECHANISMS = (
    "drfh",
    "tsf",
    "asset-fairness(scope=servers)",
    "alpha-fair(alpha=3)",
    "alphapf-vds(alpha=0.5)",
    "alphapf-vds(alpha=1)",
    "alphapf-vds(alpha=3)",
    "alphapf-vds(alpha=8)",
    "alphapf-vds(alpha=64)",
    "ps-dsf",
)
#: Up to so many users times servers certificates are computed again, from the whole table.
MOST = 200_000_000


def google(users: int, rng: np.random.Generator) -> fo.Cluster:
    """Ten types, 2 resources, a few percent of zero demands."""
    return google_like(rng, users, 12_583).cluster


def alibaba(users: int, rng: np.random.Generator) -> fo.Cluster:
    """27 kinds of nodes, 3 resources: most users need no GPU, some need certain models."""
    return alibaba_like(rng, users, 1_500).cluster


def limited(users: int, rng: np.random.Generator) -> fo.Cluster:
    """The same with finite tasks."""
    return alibaba_like(rng, users, 1_500, max_tasks=True).cluster


def thirty(users: int, rng: np.random.Generator) -> fo.Cluster:
    """Thirty types, 6 resources, weights over two decades, placement by type."""
    kind = rng.integers(30, size=3_000)
    allowed = rng.random((users, 30)) < 0.5
    allowed[np.arange(users), kind[rng.integers(len(kind), size=users)]] = True
    capacity = np.exp(0.5 * rng.standard_normal((30, 6)))[kind]
    demand = 0.05 * np.exp(0.5 * rng.standard_normal((users, 6)))
    return fo.Cluster(capacity, demand, weight=10 ** rng.uniform(-1, 1, users), eligible=allowed[:, kind])


FAMILIES: dict[str, Callable[[int, np.random.Generator], fo.Cluster]] = {
    "google": google,
    "alibaba": alibaba,
    "limited": limited,
    "thirty": thirty,
}


def cases(families: list[str], users: list[int], seed: int) -> Iterator[tuple[str, fo.Cluster]]:
    """Names and clusters; real users of Google's trace, as many as there are, where the traces are at hand."""
    for family in families:
        if family == "google 2011":
            yield family, fo.workloads.open_source("google").cluster
        else:
            for count in users:
                yield family, FAMILIES[family](count, np.random.default_rng(seed))


def measured(name: str, cluster: fo.Cluster, tol: float) -> dict[str, object]:
    """One solve."""
    mechanism = fo.mechanisms.parse(name)[0]
    few = cluster.select(cluster.users[:40], cluster.servers)
    mechanism.solve(few, tol, throw=False).certify()  # compiles
    start = time.process_time()
    found = mechanism.solve(cluster, tol, throw=False)
    seconds = time.process_time() - start
    row: dict[str, object] = {"mechanism": name, "users": len(cluster.users), "seconds": seconds}
    small = cluster.shape[0] * cluster.shape[1] <= MOST  # or its table takes gigabytes
    residual = (found.certify() if small else found.certificate).residual
    return row | {"steps": found.stats.rounds, "certificate": residual, "by": found.stats.solver}


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """With the growth from row to row."""
    same = (frame[["family", "mechanism"]] == frame[["family", "mechanism"]].shift()).all(axis=1)
    ratio = np.log(frame["seconds"] / frame["seconds"].shift()) / np.log(frame["users"] / frame["users"].shift())
    return frame.assign(growth=ratio.where(same & (frame["users"] != frame["users"].shift())))


def main() -> None:
    """Measure, print as it goes, and write a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mechanisms", nargs="+", default=MECHANISMS)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=[*FAMILIES, "google 2011"])
    parser.add_argument("--users", nargs="+", type=int, default=[2_000, 5_000, 10_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    kept = []
    for name in chosen.mechanisms:
        for family, cluster in cases(chosen.families, chosen.users, chosen.seed):
            row = {"family": family, **measured(name, cluster, chosen.tol)}
            kept.append(row)
            print("  ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()), flush=True)
    frame = table(pd.DataFrame(kept))
    print(frame.to_string(index=False, float_format="{:.3g}".format))
    if chosen.out is not None:
        frame.to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
