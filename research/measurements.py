"""Write the aggregates in `fairopt/harness/papers/data` from a store that holds `alpha_convergence`.

    fairopt sweep alpha_convergence --traces DIR                  # about an hour
    python research/measurements.py [--store DIR]                 # FAIROPT_TRACES names the folder of traces

Claims about time and convergence are judged by them, README.md and docs/alpha.md quote them, and the page shows the
figure. `--accept-older` takes cells of other code, as everywhere; `about.json` says whose code it was.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from fairopt.errors import DataError
from fairopt.harness.papers import pf_measured
from fairopt.harness.report import figures
from fairopt.harness.report.stored import StoredCells, named_medians, reached
from fairopt.report import Results, interval

FOLDER = Path(pf_measured.__file__).parent / "data"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "alpha_convergence.png"
MEASURES = ("utilization", "min_share", "jain", "price_of_fairness")
#: Significant digits of every number in the files.
DIGITS = 6
#: Parts of descriptions that are removed: folders of traces, which are private, and hours, which differ between draws.
_OF_ONE = re.compile(r" \([^()]*/[^()]*\)(?=[: ])| from \d{9,}")


def solved(found: StoredCells) -> pd.DataFrame:
    """Rows by cluster and alpha: seconds of the engine for equilibria, and measures of the equilibria."""
    by = ["cluster", "alpha"]
    cells = found.cells[found.cells["engine"] == "equilibrium"]
    made = named_medians(cells, by, "seconds")
    for measure in MEASURES:
        one = interval(cells, by, measure).drop(columns="n")
        made = made.merge(one.rename(columns={"mean": measure, "half": f"+- {measure}"}), on=by)
    return made


def about(found: StoredCells) -> dict[str, Any]:
    """Provenance of the measurements, without the name of a machine."""
    cells = found.cells
    drawn = cells.drop_duplicates("cluster").set_index("cluster")
    return {
        "experiment": pf_measured.EXPERIMENT,
        "cells": len(cells),
        "draws": int(cells["repetition"].nunique()),
        "code": sorted(cells["code"].unique()),
        "commits": sorted(cells["commit"].dropna().unique()),
        "fairopt": sorted(cells["fairopt"].unique()),
        "python": sorted(cells["python"].unique()),
        "from": f"{cells['finished'].min():%Y-%m-%d}",
        "to": f"{cells['finished'].max():%Y-%m-%d}",
        "cores": int(cells["cores"].max()),
        "threads": int(cells["threads"].max()),
        "seconds": "processor",
        "clusters": {name: _OF_ONE.sub("", str(row["about"])) for name, row in drawn.iterrows()},
    }


def write(found: StoredCells, folder: Path) -> None:
    """Write the three files.

    Raises
    ------
    DataError
        Generators stand in for traces, or draws are missing.
    """
    if any("stand in" in note for note in found.notes):
        raise DataError(f"measurements are of real clusters; {found.notes[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    games = reached(found).drop(columns=["mechanism", "tol"], errors="ignore")  # `alpha` says it already
    for name, frame in {"reached": games, "solved": solved(found)}.items():
        frame.to_csv(folder / f"{name}.csv", index=False, float_format=f"%.{DIGITS}g", lineterminator="\n")
    (folder / "about.json").write_text(json.dumps(about(found), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", type=Path, help="default: results/store")
    parser.add_argument("--accept-older", action="store_true", help="take what other code of fairopt computed")
    asked = parser.parse_args()
    results = Results(asked.store, accept_older=asked.accept_older)
    write(results.of(pf_measured.EXPERIMENT), FOLDER)
    figures.draw(pf_measured.EXPERIMENT, results).savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
