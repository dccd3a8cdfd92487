"""Write `fairopt/harness/papers/data/judged-PAPER.csv`: intervals by which statements on simulations are judged.

    fairopt reproduce drf --explain FIGURE --traces DIR --out DIR     # for every figure: minutes
    python research/verdicts.py drf --store DIR/store                 # FAIROPT_TRACES names the folder of traces

`fairopt claims` derives verdicts from these files. `--accept-older` takes cells of other code, as everywhere.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from fairopt import papers
from fairopt.errors import DataError
from fairopt.harness.papers import _judged
from fairopt.harness.report import judging
from fairopt.report import Results

FOLDER = Path(_judged.__file__).parent / "data"
#: Significant digits of every number in the files.
DIGITS = 6


def compact(one: papers.Judged, setups: pd.DataFrame) -> pd.DataFrame:
    """Set-ups in the format of the files: `statement`, `setup` (JSON), `mean`, `half`, `n`."""
    by = [axis.name for axis in one.assumptions if axis.name in setups]
    texts = [json.dumps(dict(zip(by, row, strict=True))) for row in setups[by].to_numpy().tolist()]
    return setups[["mean", "half", "n"]].assign(statement=one.statement, setup=texts)


def write(paper: str, results: Results, folder: Path = FOLDER) -> Path:
    """Evaluate all statements of a paper.

    Raises
    ------
    DataError
        Generators stand in for traces.
    """
    parts = []
    for one in papers.judged(paper):
        found = results.of(judging.wide(one.experiment))
        if stand_ins := [note for note in found.notes if "stand in" in note]:
            raise DataError(f"verdicts are on real traces; {stand_ins[0]}")
        parts.append(compact(one, judging.evaluate(one, found)))
    path = folder / f"judged-{paper.lower()}.csv"
    pd.concat(parts).to_csv(path, index=False, float_format=f"%.{DIGITS}g", lineterminator="\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("papers", nargs="+", help="drf, drfh, ...")
    parser.add_argument("--store", type=Path, help="default: results/store")
    parser.add_argument("--accept-older", action="store_true", help="take what other code of fairopt computed")
    asked = parser.parse_args()
    results = Results(asked.store, accept_older=asked.accept_older)
    for paper in asked.papers:
        write(paper.upper(), results)


if __name__ == "__main__":
    main()
