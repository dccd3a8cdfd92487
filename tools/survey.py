"""From a stored survey of properties to what docs show: docs/survey.csv, and its counterexamples.

    fairopt properties --trials 20000 --seconds 120 --seed 1 --store DIR    # hours; goes on where it ended
    python tools/survey.py DIR                                              # then `make readme`

Every counterexample is verified again before it is written to docs/witnesses/found.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from fairopt import properties
from fairopt.errors import FairoptError
from fairopt.properties._survey import Outcome

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "survey.csv"
FOUND = ROOT / "docs" / "witnesses" / "found"


def keep(outcomes: list[Outcome]) -> list[str]:
    """Write table and counterexamples; those that could not be verified."""
    wrong, kept = [], []
    FOUND.mkdir(parents=True, exist_ok=True)
    for path in FOUND.glob("*.json"):
        path.unlink()
    for one in outcomes:
        if one.witness is not None:
            old = one.witness
            try:
                now = properties.verify(old.mechanism, old.property, *old.instance)
            except FairoptError as error:
                wrong.append(f"{one.cell.name}: {error}")
                continue
            now.save(FOUND / f"{one.cell.name}.json")
            one = replace(one, witness=now)
        kept.append(one)
    table = properties.frame(kept).sort_values(["mechanism", "property", "conditions"])
    known(table).to_csv(TABLE, index=False, lineterminator="\n")
    return wrong


def known(table: pd.DataFrame) -> pd.DataFrame:
    """With counterexamples that other searches found, where this one found none."""
    table = table.set_index(["mechanism", "property", "conditions"])
    for path in sorted(FOUND.parent.glob("*.json")):
        found = properties.Witness.load(path)
        at = (found.mechanism, found.property, "")
        if at in table.index and table.loc[at, "answer"] == "none":
            stated = (float(found.violation[0]), f"../{path.name}", found.route)
            table.loc[at, ["violation", "file", "route"]] = stated
    return table.reset_index()


def main() -> int:
    """Keep what a store holds; 1 if a counterexample is none."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    outcomes = properties.read(sys.argv[1])
    if not outcomes:
        sys.exit(f"{sys.argv[1]}: no store of a survey; what is there is kept")
    wrong = keep(outcomes)
    for text in wrong:
        sys.stdout.write(f"{text}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
