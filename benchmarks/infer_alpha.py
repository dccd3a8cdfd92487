"""How well `infer_alpha` finds alpha in tasks with noise: `python -m benchmarks.infer_alpha --help`.

Clusters are drawn uniformly, solved at a known alpha, and every user's tasks multiplied with exp(noise), noise normal
with the given standard deviation. Of all observations: the quantiles of the nearest alpha; how often the interval (95%)
covers the true one, and how often it would with plus and minus t standard errors of the sensitivity alone; how often it
is open ("at least", "at most"); the median width of the others as a factor `high / low`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402
from scipy import special  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.harness.infer_alpha import AlphaInferred, InferenceOptions  # noqa: E402

SHAPE = (12, 5, 3)
ALPHAS = (1.0, 2.0, 4.0, 16.0)
NOISE = (0.01, 0.05)
#: Half as many alphas to begin with as by default, none below 0.2, and four digits.
OPTIONS = InferenceOptions(smallest=0.2, count=17, minima=2, accuracy=1e-4)


def drawn(seed: int, shape: tuple[int, int, int] = SHAPE) -> fo.Cluster:
    """A cluster of (users, servers, resources)."""
    users, servers, resources = shape
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(1, 5, (servers, resources)) * users, rng.uniform(0.25, 5, (users, resources)))


def observed(
    cluster: fo.Cluster, mechanism: str, alpha: float, noise: float, rng: np.random.Generator
) -> AlphaInferred:
    """What is inferred from one observation with noise."""
    tasks = fo.mechanisms.get(mechanism, alpha=alpha).solve(cluster, 1e-8).user_tasks
    seen = tasks * np.exp(noise * rng.standard_normal(len(tasks)))
    return fo.infer_alpha(cluster, seen, mechanism, options=OPTIONS)


def linear(found: AlphaInferred, alpha: float) -> bool:
    """Would t standard errors around the nearest alpha cover the true one? Nothing bounds it at infinity."""
    if not found.standard_error < np.inf:
        return True
    t = float(special.stdtrit(len(found.residuals) - 1, 0.975))
    return bool(abs(np.log(found.alpha / alpha)) <= t * found.standard_error)


def row(found: list[AlphaInferred], alpha: float) -> dict[str, object]:
    """One line of the table."""
    closed = [one.high / one.low for one in found if not one.flat]
    quantiles = np.quantile([min(one.alpha, 1e4) for one in found], [0.05, 0.5, 0.95])
    return {
        "5%": quantiles[0],
        "median": quantiles[1],
        "95%": quantiles[2],
        "covered": np.mean([one.low <= alpha <= one.high for one in found]),
        "by standard errors": np.mean([linear(one, alpha) for one in found]),
        "open": np.mean([one.flat for one in found]),
        "width": float(np.median(closed)) if closed else math.nan,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.infer_alpha", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--mechanisms", nargs="+", default=["alphapf-vds", "alpha-fair"])
    parser.add_argument("--alphas", nargs="+", type=float, default=list(ALPHAS))
    parser.add_argument("--noise", nargs="+", type=float, default=list(NOISE))
    parser.add_argument("--clusters", type=int, default=50, help="each with its own noise")
    parser.add_argument("--out", help="a CSV file")
    options = parser.parse_args(arguments)
    rows = []
    for mechanism in options.mechanisms:
        for alpha in options.alphas:
            for noise in options.noise:
                begun = time.process_time()
                found = [
                    observed(drawn(seed), mechanism, alpha, noise, np.random.default_rng([seed, 1]))
                    for seed in range(options.clusters)
                ]
                seconds = (time.process_time() - begun) / options.clusters
                rows.append(
                    {"mechanism": mechanism, "alpha": alpha, "noise": noise, **row(found, alpha), "seconds": seconds}
                )
                print(rows[-1], file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    if options.out:
        frame.to_csv(options.out, index=False)
    print(frame.to_markdown(index=False, floatfmt=".3g"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
