"""Convergence of the distributed game by order, alpha and cluster: rounds, messages, numbers sent and seconds.

    python -m benchmarks.games --draws 5 --store games.jsonl            # FAIROPT_TRACES: the folder of traces
    python -m benchmarks.games --only 2000x60 --alphas 1 3 --draws 1 --rounds 60 --store games.jsonl

Draw k of a cluster is deterministic. Each game is a line of the store, and stored ones are not repeated.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fairopt as fo
from benchmarks.store import filled
from fairopt.model.merging import merge
from fairopt.workloads import open_source

SOURCES = {
    "20x10": "lognormal?users=20&servers=10",
    "zeros": "lognormal?users=20&servers=10&density=0.5",
    "60x25 sparse": "lognormal?users=60&servers=25&density=0.15",
    "60x25": "lognormal?users=60&servers=25",
    "100x20": "lognormal?users=100&servers=20",
    "Bitbrains": "bitbrains?vms=100&servers=20",
    "Google": "google?users=60",
    "2000x60": "bitbrains-like?vms=2000&servers=60",
}
ALPHAS = (0.2, 0.5, 0.9, 1, 1.1, 2, 8, math.inf)
ORDERS = ("cyclic", "over-relaxed", "elastic")
KEYS = ("cluster", "alpha", "draw", "order")


def drawn(name: str, draw: int) -> fo.Cluster:
    """Draw a cluster; for `zeros` 40% of demands are 0, and for `Google` proportional users and servers are merged."""
    rng = np.random.default_rng([41, draw])
    cluster = open_source(SOURCES[name], rng=rng).cluster
    if name == "zeros":
        demand = cluster.demand * (rng.random(cluster.demand.shape) < 0.6)
        demand[~demand.any(axis=1), 0] = 1.0
        cluster = cluster.replace(demand=demand)
    return merge(cluster).cluster if name == "Google" else cluster


def played(name: str, alpha: float, draw: int, order: str, rounds: int) -> dict[str, Any]:
    """Play one game: a line of the store."""
    found = fo.best_response(drawn(name, draw), alpha, order=order, max_rounds=rounds, throw=False)
    assert found.trace is not None
    line: dict[str, Any] = dict(zip(KEYS, (name, alpha, draw, order), strict=True)) | {"most": rounds}
    for level in (1e-3, 1e-6):
        first = found.trace.rounds_to(level) if level > 1e-6 or not found.flagged else None
        then = found.trace.frame.loc[first] if first else dict.fromkeys(("messages", "numbers", "seconds"))
        line |= {f"{what} {level:g}": then[what] for what in ("messages", "numbers", "seconds")}
        line[f"rounds {level:g}"] = first
    return line | {"seconds": float(found.trace.frame["seconds"].iloc[-1])}


def table(lines: pd.DataFrame) -> pd.DataFrame:
    """Medians, where games that do not converge count as the slowest."""
    late = lines.fillna(dict.fromkeys([name for name in lines if str(name).startswith("rounds")], math.inf))
    by = late.groupby(["cluster", "alpha", "order"], sort=False)
    return pd.DataFrame(
        {
            "1e-3": by["rounds 0.001"].median(),
            "1e-6": by["rounds 1e-06"].median(),
            "worst": by["rounds 1e-06"].max(),
            "reached": by["rounds 1e-06"].apply(lambda rounds: f"{np.isfinite(rounds).sum()} of {len(rounds)}"),
            "messages": by["messages 1e-06"].median(),
            "numbers": by["numbers 1e-06"].median(),
            "CPU s": by["seconds"].sum(),
        }
    )


def slower(lines: pd.DataFrame, than: float = 1.5) -> pd.DataFrame:
    """Games in which an order takes more than 1.5 times the rounds of `cyclic` to a residual of 1e-6."""
    rounds = lines.pivot_table("rounds 1e-06", ["cluster", "alpha", "draw"], "order", dropna=False).dropna(
        subset="cyclic"
    )
    return rounds[rounds.fillna(math.inf)["elastic"] > than * rounds["cyclic"]]


def main() -> None:
    """Play the games that the store lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=[name for name in SOURCES if name != "2000x60"], choices=SOURCES)
    parser.add_argument("--alphas", type=float, nargs="*", default=ALPHAS)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--store", type=Path, required=True)
    asked = parser.parse_args()
    games = [
        (name, float(alpha), draw, order, asked.rounds)
        for draw in range(asked.first, asked.first + asked.draws)
        for name in asked.only
        for alpha in asked.alphas
        for order in ORDERS
    ]
    lines = filled(asked.store, games, lambda line: (*(line[key] for key in KEYS), asked.rounds), played)
    frame = pd.DataFrame(lines)
    print(table(frame).to_markdown(floatfmt=".3g"))
    print(slower(frame).to_markdown())


if __name__ == "__main__":
    main()
