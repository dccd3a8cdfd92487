"""How often the curve of equilibria begins and arrives where demands are zero and task counts bind.

    python tools/curve_starts.py --count 250     # draws of each of four families, 5 x 3 x 3
    python tools/curve_starts.py --show          # the seeds where it did not

Families: lognormal or whole numbers (odd seeds), 30% of the demands zero or none, task counts for half of the users
(.05 to 2 of what they could run alone in the cluster) or for none. The curve is followed to 0.1 and to 64.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # of this checkout, whatever is installed

import fairopt as fo  # noqa: E402

SHAPE, ENDS = (5, 3, 3), (0.1, 64.0)
FAMILIES = {
    "plain": (False, False),
    "zeros": (True, False),
    "counts": (False, True),
    "zeros and counts": (True, True),
}


def drawn(family: str, seed: int) -> fo.Cluster:
    """Draw `seed` of a family."""
    zeros, counts = FAMILIES[family]
    users, servers, resources = SHAPE
    rng = np.random.default_rng([seed, *SHAPE])
    capacity, demand = rng.lognormal(2, 1, (servers, resources)), rng.lognormal(0, 1, (users, resources))
    if seed % 2:
        capacity, demand = np.ceil(capacity), np.ceil(2 * demand)
    if zeros:
        demand *= rng.random(demand.shape) < 0.7
        demand[~demand.any(axis=1), 0] = 1.0
    found = fo.Cluster(capacity, demand)
    if counts:
        part = np.exp(rng.uniform(np.log(0.05), np.log(2), users))
        limit = np.where(rng.random(users) < 0.5, part * found.gamma.sum(axis=1), np.inf)
        found = found.replace(max_tasks=limit)
    return found


def ended(cluster: fo.Cluster) -> dict[float, str]:
    """Why the curve did not come to an end, by end; empty where it did."""
    found = {}
    for end in ENDS:
        curve = fo.game.equilibrium_curve(cluster, [end])
        found[end] = "; ".join(curve.missing)
        if not curve.missing and curve.curves:
            off = max(one.certificate for one in curve.crossings(end))
            found[end] = "" if off <= 1e-8 else f"certificate {off:.1g}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=250, help="draws of each family")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--show", action="store_true", help="print the seeds where the curve was lost, and why")
    options = parser.parse_args()
    rows = []
    for family in options.families:
        begun, why = time.process_time(), Counter[str]()
        for seed in tqdm(range(options.count), desc=family):
            for end, reason in ended(drawn(family, seed)).items():
                kind = "arrived" if not reason else "no start" if "no regular" in reason else "lost"
                why[f"{kind} ({end:g})"] += 1
                if reason and options.show:
                    sys.stdout.write(f"{family} {seed} {end:g}: {reason}\n")
        seconds = (time.process_time() - begun) / options.count
        rows.append({"family": family, "draws": options.count, **dict(sorted(why.items())), "seconds": seconds})
    sys.stdout.write(pd.DataFrame(rows).fillna(0).to_markdown(index=False, floatfmt=".3g") + "\n")


if __name__ == "__main__":
    main()
