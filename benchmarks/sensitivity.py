"""CPU seconds of sensitivities, all measures by all data, beside those of the solve.

    python -m benchmarks.sensitivity --seeds 5

Medians and the largest of a shape's draws. `undefined` is the part of derivatives that are NaN, of the worst draw.
Draws that are not solved to the tolerance, or not well enough to say how they move, are left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pandas as pd

import fairopt as fo
from fairopt.errors import NotConverged, SolverError

Draw = Callable[[np.random.Generator], fo.Cluster]
MECHANISMS = (fo.AlphaPFVDS(3.0), fo.AlphaFair(3.0), fo.AlphaFair(0.5), fo.DRFH(), fo.TSF())


def dense(rng: np.random.Generator) -> fo.Cluster:
    """Anybody may run anywhere, and most may be split at will."""
    return fo.Cluster(rng.uniform(1, 100, (200, 4)), rng.lognormal(size=(1000, 4)))


def half(rng: np.random.Generator) -> fo.Cluster:
    """Users may run on half of the servers."""
    return fo.Cluster(
        rng.uniform(1, 100, (100, 3)), rng.lognormal(size=(600, 3)), eligible=rng.random((600, 100)) < 0.5
    )


def sparse(rng: np.random.Generator) -> fo.Cluster:
    """Users may run on a twentieth of the servers."""
    eligible = rng.random((1000, 200)) < 0.05
    eligible[:, 0] |= ~eligible.any(axis=1)
    return fo.Cluster(rng.uniform(1, 100, (200, 4)), rng.lognormal(size=(1000, 4)), eligible=eligible)


def zeros(rng: np.random.Generator) -> fo.Cluster:
    """Three in ten demands are zero, and one in ten capacities."""
    demand = rng.lognormal(size=(400, 4)) * (rng.random((400, 4)) < 0.7)
    demand[:, 0] += demand.sum(axis=1) == 0
    return fo.Cluster(rng.uniform(1, 100, (80, 4)) * (rng.random((80, 4)) < 0.9), demand)


def limits(rng: np.random.Generator) -> fo.Cluster:
    """Half of the users have few tasks."""
    count = np.where(rng.random(500) < 0.5, rng.uniform(0.1, 4, 500), np.inf)
    return fo.Cluster(rng.uniform(1, 100, (100, 3)), rng.lognormal(size=(500, 3)), max_tasks=count)


def typed(rng: np.random.Generator) -> fo.Cluster:
    """Many users on ten types of servers, as in Google's trace; two in five may run on half of the types."""
    capacity = rng.choice([0.25, 0.5, 0.75, 1.0], (10, 2)) * rng.integers(5, 3000, 10)[:, None]
    eligible = (rng.random((3000, 10)) < 0.5) | (rng.random(3000) > 0.4)[:, None]
    eligible[:, 0] |= ~eligible.any(axis=1)
    return fo.Cluster(capacity, rng.lognormal(-4, 1, (3000, 2)), eligible=eligible)


SHAPES: dict[str, Draw] = {
    "1000 x 200 x 4": dense,
    "600 x 100 x 3, half of the servers": half,
    "1000 x 200 x 4, 5% of the servers": sparse,
    "400 x 80 x 4, zeros": zeros,
    "500 x 100 x 3, task counts": limits,
    "3000 x 10 x 2, typed": typed,
}


def measured(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> tuple[float, float, float, int]:
    """Seconds of the solve and of the sensitivities, the part that is NaN, and how many servers are left."""
    begun = time.process_time()
    found = mechanism.solve(cluster)
    solved = time.process_time()
    sensitivity = found.sensitivity()
    table = sensitivity.measures
    ended = time.process_time()
    if not sensitivity.derivatives.finite:
        table = table.drop("alpha", level="by")
    pools = len(sensitivity.derivatives.pooling.first)
    return solved - begun, ended - solved, float(table.isna().to_numpy().mean()), pools


def main() -> None:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args()
    for mechanism in MECHANISMS:  # what first calls compile and import
        measured(mechanism, zeros(np.random.default_rng(0)))
    rows = []
    for shape in options.shapes:
        for mechanism in MECHANISMS:
            draws = []
            for seed in range(options.seeds):
                with suppress(NotConverged, SolverError):
                    draws.append(measured(mechanism, SHAPES[shape](np.random.default_rng([seed, 7]))))
            solve, seconds, undefined, pools = np.array(draws).T
            rows.append(
                {
                    "users x servers x resources": shape,
                    "mechanism": str(mechanism),
                    "draws": len(draws),
                    "solve": np.median(solve),
                    "sensitivities": np.median(seconds),
                    "largest": seconds.max(),
                    "of its solve, largest": (seconds / solve).max(),
                    "undefined": undefined.max(),
                    "servers left": f"{int(pools.min())} to {int(pools.max())}",
                }
            )
        sys.stdout.write(f"{shape}: done\n")
    sys.stdout.write(pd.DataFrame(rows).round(3).to_markdown(index=False) + "\n")


if __name__ == "__main__":
    main()
