"""CPU milliseconds of a solve of alphaPF-VDS, by selection and size, and of the curve alone.

    python -m benchmarks.selections --sizes 3x2x2 5x3x3

Means over uniform, lognormal and whole-number draws in equal parts, at alpha = 3.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import fairopt as fo
from fairopt.game.selection import SELECTIONS

SIZES = ("3x2x2", "3x2x3", "5x3x3", "6x5x3", "20x10x3", "60x25x3")
ALPHA = 3.0


def drawn(size: tuple[int, int, int], number: int) -> fo.Cluster:
    """Draw `number` of a size (users, servers, resources), of three families in turn."""
    users, servers, resources = size
    rng = np.random.default_rng([number, *size])
    capacity, demand = (servers, resources), (users, resources)
    if number % 3 == 0:
        return fo.Cluster(rng.uniform(50, 100, capacity), rng.uniform(0.5, 1.5, demand))
    if number % 3 == 1:
        return fo.Cluster(rng.lognormal(2, 1, capacity), rng.lognormal(0, 1, demand), weight=rng.integers(1, 4, users))
    return fo.Cluster(rng.integers(1, 21, capacity).astype(float), rng.integers(1, 13, demand).astype(float))


def _seconds(what: Callable[[fo.Cluster], object], size: tuple[int, int, int], draws: int) -> float:
    """CPU seconds of one call, after what first calls compile and import."""
    clusters = [drawn(size, number) for number in range(draws)]
    for users in (3, 8):
        for number in range(3):
            what(drawn((users, 5, size[2]), number))
    begun = time.process_time()
    for cluster in clusters:
        what(cluster)
    return (time.process_time() - begun) / draws


def main() -> None:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help="users x servers x resources")
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--select", nargs="*", default=list(SELECTIONS))
    options = parser.parse_args()
    ways: dict[str, Callable[[fo.Cluster], object]] = {
        select: lambda cluster, select=select: fo.AlphaPFVDS(ALPHA, select).solve(cluster)  # type: ignore[misc]
        for select in options.select
    }
    ways["equilibrium_curve"] = lambda cluster: fo.game.equilibrium_curve(cluster, [ALPHA])
    rows = {}
    for text in options.sizes:
        users, servers, resources = map(int, text.split("x"))
        rows[text] = {
            name: 1e3 * _seconds(way, (users, servers, resources), options.draws) for name, way in ways.items()
        }
        print(rows[text], flush=True)
    print(pd.DataFrame(rows).to_markdown(floatfmt=".3g"))


if __name__ == "__main__":
    main()
