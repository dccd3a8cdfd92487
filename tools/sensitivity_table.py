"""Derivatives against differences of certified solves: mechanism x family.

    python tools/sensitivity_table.py --count 1000      # clusters in all; appends to results/sensitivity.csv
    python tools/sensitivity_table.py --print           # the table of what there is

Every cluster has one mechanism of each kind (the game, a global program, max-min) and a dozen of its data changed by
1e-5, both ways, solved to 1e-9. `right`: within 1e-4 where both sides agree; `noticed`: NaN where they do not;
`careful`: NaN where they do; `jump`: tasks jumped, or the solver met another equilibrium. It may be interrupted, and
goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # of this checkout, whatever is installed

from families import FAMILIES, draw  # noqa: E402
from sensitivity.differences import compared  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.errors import FairoptError  # noqa: E402

FIELDS = ["kind", "mechanism", "family", "seed", "by", "of", "verdict", "error"]
MAXMIN = (fo.DRF(), fo.DRFH(), fo.TSF(), fo.AssetFairness("servers"), fo.TaskMaxMin())


def mechanisms(rng: np.random.Generator) -> dict[str, fo.mechanisms.Mechanism]:
    """One of each kind, at random."""
    alpha = round(float(np.exp(rng.uniform(np.log(0.3), np.log(16)))), 3)
    share = str(rng.choice(["dominant", "asset", "task"]))
    scope = str(rng.choice(["servers", "pool"]))
    return {
        "game": fo.AlphaPFVDS(alpha),
        "global": fo.AlphaFair(alpha, share, scope),  # type: ignore[arg-type]
        "max-min": MAXMIN[int(rng.integers(len(MAXMIN)))],
    }


def rows(family: str, seed: int, data: int) -> list[list[object]]:
    """What there is to say of one cluster."""
    rng = np.random.default_rng([seed, *family.encode()])
    cluster = draw(family, seed, 6, 4, 4)
    found: list[list[object]] = []
    for kind, mechanism in mechanisms(rng).items():
        head = [kind, str(mechanism), family, seed]
        try:
            compare = compared(mechanism, cluster, rng, data)
        except FairoptError as error:
            found.append([*head, "", str(error)[:60], type(error).__name__, np.nan])
            continue
        found += [[*head, one.by, one.of, one.verdict, one.error] for one in compare]
    return found


def table(path: Path) -> None:
    """Verdicts by kind, family and data, errors, and what is wrong."""
    frame = pd.read_csv(path)
    parts = [frame.pivot_table(index=by, columns="verdict", values="seed", aggfunc="count", fill_value=0)
             for by in ("kind", "family", "by")]  # fmt: skip
    errors = frame[frame.verdict == "right"].groupby("kind").error.describe(percentiles=[0.5, 0.99, 0.999])
    parts += [errors, frame[frame.verdict.isin(["wrong", "missed"])]]
    sys.stdout.write("\n\n".join(part.to_string() for part in parts) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--data", type=int, default=12, help="data of every cluster that change")
    parser.add_argument("--families", nargs="*", default=["plain", "nice", *FAMILIES])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "sensitivity.csv")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    if options.print:
        table(options.out)
        return
    options.out.parent.mkdir(exist_ok=True)
    done = set()
    if options.out.exists():
        done = set(map(tuple, pd.read_csv(options.out)[["family", "seed"]].drop_duplicates().itertuples(index=False)))
    cells = [(options.families[k % len(options.families)], k // len(options.families)) for k in range(options.count)]
    with options.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(FIELDS)
        for family, seed in tqdm([cell for cell in cells if cell not in done], unit="cluster"):
            writer.writerows(rows(family, seed, options.data))
            file.flush()
    table(options.out)


if __name__ == "__main__":
    main()
