"""What a small cell of a sweep takes, and what of it a batch could save: `python -m benchmarks.cells`.

Median milliseconds of 100 cells, once warm, 3 users x 2 servers: all of it, its solve, the certificate in that,
measures; and what `solve_many` takes for the same problems at once, with its own certificate.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pandas as pd

import fairopt as fo
from fairopt import harness
from fairopt.harness.clusters import build
from fairopt.harness.run import run

_EXPERIMENT = """
title = "small cells"
source = "benchmark"
about = "small cells"
repetitions = 100

[clusters]
small = "lognormal?users=3&servers=2&resources=2"

[[grid]]
mechanisms = ["drf", "drfh", "tsf", "ps-dsf", "alphapf-vds", "alpha-fair"]
alphas = [3]
"""


def table() -> pd.DataFrame:
    """A row per mechanism, milliseconds a cell."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "small.toml")
        file.write_text(_EXPERIMENT)
        experiment = harness.load(file)
        assert isinstance(experiment, harness.Experiment)
        cells = harness.cells(experiment)
    found = {}
    for name in dict.fromkeys(cell.mechanism for cell in cells):
        mine = [cell for cell in cells if cell.mechanism == name]
        clusters = [build(cell.origin, cell.seed, cell.repetition, None)[0] for cell in mine]
        run(mine[0])
        rows = pd.DataFrame([run(cell) for cell in mine])
        mechanism = mine[0].solver
        fo.solve_many(mechanism, clusters)
        begun = time.process_time()
        fo.solve_many(mechanism, clusters)
        batch = time.process_time() - begun
        parts = {
            "cell": rows["elapsed"].median(),
            "solve": rows["seconds"].median(),
            "of it certificate": rows["certify"].median(),
        }
        found[name] = parts | {"measures": rows["measuring"].median(), "in a batch": batch / len(mine)}
    return 1e3 * pd.DataFrame(found).T.rename_axis("mechanism")


if __name__ == "__main__":
    print(table().to_string(float_format="%.2f"))
