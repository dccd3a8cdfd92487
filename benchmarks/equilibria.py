"""Numbers of equilibria of random clusters by size, by complete enumeration where completeness is proved.

    python -m benchmarks.equilibria --draws 10000 --store equilibria.jsonl
    python -m benchmarks.equilibria --largest --draws 70 --store largest.jsonl     # sizes that take up to a minute

Half of the clusters have small integers as capacities, demands and weights, and half lognormal numbers; alpha is
random. Draw k of a size is deterministic. Each result is a line of the store, and stored ones are not repeated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fairopt as fo
from benchmarks.store import filled
from fairopt.base import clock

SIZES = (
    (2, 2, 2), (3, 2, 2), (2, 2, 3), (3, 2, 3), (3, 2, 4), (4, 2, 3), (4, 3, 2), (3, 3, 3), (4, 3, 3), (5, 3, 3),
    (8, 2, 3), (6, 3, 2), (5, 4, 2),
)  # fmt: skip
LARGEST = (
    (12, 2, 2), (9, 3, 2), (8, 4, 2), (7, 5, 2), (6, 6, 2), (10, 2, 3), (9, 3, 3), (10, 3, 3), (7, 4, 3), (6, 5, 3),
    (6, 4, 4), (9, 4, 2), (8, 4, 3), (7, 5, 3),
)  # fmt: skip
ALPHAS = (0.3, 0.6, 1.5, 2, 3, 4, 6, 8, 16)


def drawn(size: tuple[int, int, int], number: int) -> tuple[fo.Cluster, float]:
    """Random cluster of `size` (users, servers, resources), and an alpha."""
    users, servers, resources = size
    rng = np.random.default_rng([*size, number])
    if number % 2:
        capacity = rng.integers(1, 21, (servers, resources)).astype(float)
        demand = rng.integers(1, 17, (users, resources)).astype(float)
    else:
        capacity, demand = np.exp(rng.normal(size=(servers, resources))), np.exp(rng.normal(size=(users, resources)))
    weight = rng.integers(1, 3, users).astype(float)
    return fo.Cluster(capacity, demand, weight), float(rng.choice(ALPHAS))


def answered(size: tuple[int, int, int], number: int) -> dict[str, Any]:
    """Enumerate the equilibria of a draw: a line of the store."""
    cluster, alpha = drawn(size, number)
    begun = clock.cpu()
    found = fo.game.equilibria(cluster, alpha, rng=0)
    seconds = clock.cpu() - begun
    tasks = np.log(found.user_tasks)
    apart = float(np.expm1(np.ptp(tasks, axis=0).max()))
    stable = sum(radius < 1 for radius in found.radii)
    default = np.log(fo.AlphaPFVDS(alpha).solve(cluster).arrays.user_tasks)
    nearest = int(np.abs(tasks - default).max(axis=1).argmin())
    missed = bool(np.abs(tasks[nearest] - default).max() > 1e-4)
    line = {"size": list(size), "number": number, "alpha": alpha, "indices": list(found.indices)}
    line |= {"complete": found.complete, "seconds": seconds, "apart": apart, "stable": stable}
    return line | {"default": 9 if missed else found.indices[nearest], "searched": "searched" in str(found.tried)}


def table(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """Table of counts by size."""
    frame = pd.DataFrame(lines)
    frame["many"] = frame["indices"].map(len)
    frame["size"] = frame["size"].map(lambda size: " x ".join(map(str, size)))
    frame["continuum"] = frame["indices"].map(lambda indices: 0 in indices)
    rows = []
    for size, own in frame.groupby("size", sort=False):
        isolated = own[~own["continuum"]]
        rows.append(
            {
                "users x servers x resources": size,
                "draws": len(own),
                "complete": int(own["complete"].sum()),
                **{f"{k} equilibria": int((isolated["many"] == k).sum()) for k in (1, 3, 5)},
                "other": int((~isolated["many"].isin([1, 3, 5])).sum()),
                "index 0": int(own["continuum"].sum()),
                "median s": own["seconds"].median(),
                "largest s": own["seconds"].max(),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Draw, enumerate, store, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1300, help="clusters in all; default: 1300")
    parser.add_argument("--largest", action="store_true", help="the largest sizes that take up to about a minute")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw of every size; default: 0")
    parser.add_argument("--store", type=Path, default=Path("equilibria.jsonl"), metavar="FILE")
    options = parser.parse_args()
    sizes = LARGEST if options.largest else SIZES
    todo = [(size, k) for k in range(options.first, options.draws // len(sizes)) for size in sizes]
    lines = filled(options.store, todo, lambda line: (tuple(line["size"]), line["number"]), answered)
    print(table(lines).to_string(index=False, float_format="{:.3f}".format))
    print(*(line for line in lines if len(line["indices"]) > 1), sep="\n")


if __name__ == "__main__":
    main()
