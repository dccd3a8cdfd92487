"""Measure the game's engine and its best responses: `python -m benchmarks.game --help`.

One thread. Every answer's certificate is computed again and printed, so that a time without an answer shows as such.
"""

from __future__ import annotations

import argparse
import math
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
from benchmarks.families import ALPHAS, FAMILIES, TYPED  # noqa: E402


def mechanism(alpha: float) -> fo.mechanisms.Mechanism:
    """alphaPF-VDS, or PS-DSF at infinity."""
    return fo.PSDSF() if math.isinf(alpha) else fo.AlphaPFVDS(alpha)


def solve(cluster: fo.Cluster, alpha: float, tol: float = 1e-6) -> dict[str, object]:
    """One solve, cold: seconds (all of it, and apart), Newton steps, certificate, peak memory so far in MiB."""
    start = time.perf_counter()
    found = mechanism(alpha).solve(cluster, tol, throw=False)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "build": found.stats.build,
        "solve": found.stats.solve,
        "certify": found.stats.certify,
        "steps": found.stats.rounds,
        "certificate": found.certify().residual,
        "MiB": _peak(),
    }


def engine(
    users: int, servers: int, families: list[str], alphas: list[float], seeds: int
) -> Iterator[dict[str, object]]:
    """The equilibrium engine over families, alphas and seeds."""
    for family in families:
        make = (FAMILIES | TYPED)[family]
        for seed in range(seeds):
            cluster = make(users, servers, np.random.default_rng(seed))
            for alpha in alphas:
                row = {"family": family, "users": users, "servers": servers, "alpha": alpha, "seed": seed}
                yield row | solve(cluster, alpha)


def merging() -> Iterator[dict[str, object]]:
    """Clusters that merge into ten servers, end to end; then the table of all users and servers, judged anew."""
    for family, users, servers in (("typed", 2000, 200), ("typed", 5000, 1000), ("google", 5000, 12_583)):
        cluster = TYPED[family](users, servers, np.random.default_rng(0))
        for alpha in (2.0, 3.0, math.inf):
            begun = time.perf_counter()
            found = mechanism(alpha).solve(cluster, throw=False)
            solved = time.perf_counter()
            found.summary()
            row: dict[str, object] = {"family": family, "users": users, "servers": servers, "alpha": alpha}
            row |= {"seconds": solved - begun, "engine": found.stats.solve, "summary": time.perf_counter() - solved}
            row |= {"certificate": found.certificate.residual, "MiB": _peak()}
            begun = time.perf_counter()
            whole = found.certify().residual
            yield row | {"whole": whole, "table and verdict": time.perf_counter() - begun, "MiB then": _peak()}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def responses(users: int, servers: int, families: list[str], alphas: list[float]) -> Iterator[dict[str, object]]:
    """Rounds of best response to residuals 1e-2, 1e-3 and 1e-6, for each order."""
    for family in families:
        cluster = FAMILIES[family](users, servers, np.random.default_rng(0))
        for alpha in alphas:
            for order in ("cyclic", "random", "over-relaxed", "jacobi", "asynchronous"):
                network = fo.game.Network(loss=0.2, delay=10) if order == "asynchronous" else None
                damping = {"jacobi": 0.2, "asynchronous": 0.1}.get(order)
                start = time.perf_counter()
                found = fo.best_response(
                    cluster, alpha, order=order, damping=damping, network=network, max_rounds=2000, rng=0, throw=False
                )
                assert found.trace is not None
                row: dict[str, object] = {"family": family, "alpha": alpha, "order": order, "damping": damping}
                row |= {f"to {level:g}": found.trace.rounds_to(level) for level in (1e-2, 1e-3, 1e-6)}
                yield row | {"seconds": time.perf_counter() - start, "residual": found.trace.frame["residual"].iloc[-1]}


def main() -> None:
    """Measure, print as it goes, and write a CSV file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["engine", "responses", "merging"])
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--servers", type=int, default=25)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--alphas", default=",".join(map(str, ALPHAS)))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    alphas = [float(alpha) for alpha in chosen.alphas.split(",")]
    families = chosen.families.split(",")
    mechanism(2.0).solve(FAMILIES["lognormal"](5, 3, np.random.default_rng(0)))  # compile before the clock starts
    mechanism(math.inf).solve(FAMILIES["lognormal"](5, 3, np.random.default_rng(0)))
    if chosen.what == "engine":
        rows = engine(chosen.users, chosen.servers, families, alphas, chosen.seeds)
    elif chosen.what == "merging":
        rows = merging()
    else:
        rows = responses(chosen.users, chosen.servers, families, alphas)
    kept = []
    for row in rows:
        kept.append(row)
        print(
            "  ".join(
                f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            ),
            flush=True,
        )
    frame = pd.DataFrame(kept)
    if chosen.what == "engine":
        frame["certified"] = frame["certificate"] <= 1e-6
        frame["to 1e-9"] = frame["certificate"] <= 1e-9
        by = ["family", "alpha"]
        shown = frame.groupby(by).agg(
            seconds=("seconds", "median"), slowest=("seconds", "max"), steps=("steps", "median"),
            certified=("certified", "mean"), nine=("to 1e-9", "mean"),
        )  # fmt: skip
        print(shown.to_string(float_format="{:.3g}".format))
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(chosen.out, index=False)


if __name__ == "__main__":
    main()
