"""Counterexamples in docs/witnesses: of what mechanisms say they have not, and those that a survey of properties found.

    python research/survey.py                                               # searches for those of claims that lack one
    fairopt properties --trials 20000 --seconds 120 --seed 1 --store DIR    # hours; goes on where it ended
    python research/survey.py DIR                                           # docs/survey.csv and docs/witnesses/found

`make readme` writes the pages. Every counterexample of a survey is verified again before it is written.
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
#: The most trials for the counterexample of a claim.
TRIALS = 200_000


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


def lacking() -> list[str]:
    """Search for counterexamples that claims lack; the claims of which none was found."""
    wrong = []
    for claimed in properties.claims(holds=False):
        path = FOUND.parent / f"{claimed.mechanism.name}--{claimed.claim.property}.json"
        if not path.exists():
            found = properties.search(claimed.mechanism, claimed.claim.property, TRIALS, rng=1)
            sys.stdout.write(f"{claimed.mechanism}, {claimed.claim.property}:\n{found}\n\n")
            if found is None:
                wrong.append(path.name)
            else:
                found.save(path)
    return wrong


def main() -> int:
    """Search, or keep what a store holds; 1 if there is no counterexample, or one is none."""
    outcomes = properties.read(sys.argv[1]) if len(sys.argv) == 2 else []
    if len(sys.argv) > 1 and not outcomes:
        sys.exit(f"{sys.argv[1]}: no store of a survey; what is there is kept\n\n{__doc__}")
    wrong = keep(outcomes) if outcomes else lacking()
    sys.stdout.write("".join(f"{text}\n" for text in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
