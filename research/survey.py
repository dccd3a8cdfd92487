"""Survey of the properties of all mechanisms, and the counterexamples in docs/witnesses.

    python research/survey.py                                                      # those that claims lack
    python research/survey.py DIR --trials 20000 --seconds 120 --seed 1 --jobs 2   # hours; resumes what DIR holds
    python research/survey.py DIR --keep                                           # docs/survey.csv and docs/witnesses

Every cell of the survey, a search for one mechanism, property and kind of clusters, is a file of DIR that is written
after each block of trials. `--keep` verifies every counterexample again; `make readme` writes the pages.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from tqdm import tqdm

from fairopt import mechanisms, properties
from fairopt.base import clock, files
from fairopt.errors import DataError, FairoptError
from fairopt.mechanisms import Mechanism
from fairopt.mechanisms._claim import CONDITIONS
from fairopt.properties._search import hunt
from fairopt.properties._tasks import clusters
from fairopt.properties.witness import Witness, written

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "survey.csv"
FOUND = ROOT / "docs" / "witnesses" / "found"
#: Largest number of trials for the counterexample of a claim.
TRIALS = 200_000
#: Number of trials in a block, after which a cell is written: an interrupted search loses at most one block.
BLOCK = 2500


def _versions() -> dict[str, str]:
    names = ("fairopt", "numpy", "numba", "scipy")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


@dataclass(frozen=True)
class Cell:
    """State of the search for a counterexample of one mechanism, property and kind of clusters.

    Attributes
    ----------
    mechanism, property : str
        Their names, with parameters.
    conditions : tuple of str
        Names of the conditions that the clusters meet; none: all clusters.
    blocks, trials : int
        Completed blocks of trials, and the trials in them.
    seconds : float
        CPU seconds of all blocks, shrinking and verification included.
    doubted : float
        The largest violation among the trials that could not be verified; 0 for none.
    note : str
        The reason why the property says nothing of the mechanism.
    """

    mechanism: str
    property: str
    conditions: tuple[str, ...] = ()
    seed: int = 0
    blocks: int = 0
    trials: int = 0
    seconds: float = 0.0
    doubted: float = 0.0
    witness: Witness | None = None
    note: str = ""
    versions: dict[str, str] = field(default_factory=_versions)

    @property
    def name(self) -> str:
        """The name of its file: `alphapf-vds-alpha-2.0--envy-freeness--positive-demands`."""
        parts = [self.mechanism, self.property, *self.conditions]
        return "--".join(re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-") for part in parts)

    @property
    def rng(self) -> np.random.Generator:
        """The generator of the next block, independent of the order and the process in which blocks are searched."""
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), self.blocks])

    def answers(self, other: Cell) -> bool:
        """True if this cell decides another cell of the same mechanism and property."""
        if self.witness is None:
            return not self.note and {*self.conditions} <= {*other.conditions}
        return {*other.conditions} <= {*self.meets}

    @property
    def meets(self) -> list[str]:
        """Names of the conditions that the counterexample meets."""
        some = [] if self.witness is None else clusters(self.witness.instance)
        return [name for name, holds in CONDITIONS.items() if some and all(map(holds, some))]

    def searched(self, trials: int) -> Cell:
        """The cell after another block of trials."""
        start = clock.cpu()
        try:
            found = hunt(self.mechanism, self.property, min(BLOCK, trials - self.trials), self.rng,
                         conditions=self.conditions)  # fmt: skip
        except DataError as error:
            return replace(self, note=str(error))
        return replace(
            self, blocks=self.blocks + 1, trials=self.trials + found.trials, witness=found.witness,
            seconds=self.seconds + clock.cpu() - start, doubted=max(self.doubted, found.doubted),
        )  # fmt: skip


def cells(some: Sequence[Mechanism | str], names: Sequence[str] | None = None, seed: int = 0) -> list[Cell]:
    """Cells to search: all clusters, then those of positive demands or of a claim, those with few conditions first.

    Clusters with rates of work, and properties and claims about them, are left out.
    """
    about = [name for name in properties.names() if not properties.get(name).of_rates] if names is None else names
    found: list[Cell] = []
    for mechanism in mechanisms.chosen(some):
        for name in about:
            claimed = {tuple(one.conditions) for one in mechanism.claims
                       if one.property == name and one.holds and one.about(mechanism)
                       and not {"rates", "own time"} & {*one.conditions}}  # fmt: skip
            kinds = sorted({(), *claimed, ("positive demands",)}, key=lambda kind: (len(kind), kind))
            found += [Cell(written(mechanism), name, kind, seed) for kind in kinds]
    return found


def survey(
    asked: Sequence[Cell], store: Path, trials: int = 2000, seconds: float = np.inf, jobs: int = 1
) -> list[Cell]:
    """Search the cells, except cells that other cells of the same mechanism and property decide.

    No block of a cell is begun after `trials` trials or `seconds` CPU seconds. The results depend neither on the number
    of processes nor on interruptions.
    """
    store.mkdir(parents=True, exist_ok=True)
    pairs = [[*some] for _, some in groupby(asked, key=lambda one: (one.mechanism, one.property))]
    each = joblib.Parallel(jobs, return_as="generator", batch_size=1)(
        joblib.delayed(_pair)(some, store, trials, seconds) for some in pairs
    )
    return [one for some in tqdm(each, total=len(pairs), unit="pair", disable=None) for one in some]


def _pair(some: Sequence[Cell], store: Path, trials: int, seconds: float) -> list[Cell]:
    done: list[Cell] = []
    for cell in some:
        if any(one.answers(cell) for one in done):
            continue
        path = store / f"{cell.name}.json"
        now = stored(path) if path.exists() else cell
        if now.seed != cell.seed:
            raise DataError(f"{path} was searched with seed {now.seed}; use another folder, or that seed")
        while now.witness is None and not now.note and now.trials < trials and now.seconds < seconds:
            now = now.searched(trials)
            plain = vars(now) | {"witness": now.witness and now.witness.document()}
            files.write(path, json.dumps(plain, indent=1, allow_nan=False) + "\n", "stored cell")
        done.append(now)
    return done


def stored(path: Path) -> Cell:
    """The cell in a file."""

    def cell(plain: dict[str, Any]) -> Cell:
        found = plain.pop("witness")
        kind = tuple(plain.pop("conditions"))
        return Cell(**plain, conditions=kind, witness=None if found is None else Witness.of(found))

    return files.read_json(path, "stored cell", cell)


def frame(some: Sequence[Cell]) -> pd.DataFrame:
    """A row for each cell: what was searched and found, the conditions that a counterexample meets, and its file."""
    rows = [
        {
            "mechanism": one.mechanism,
            "property": one.property,
            "conditions": ", ".join(one.conditions),
            "answer": one.note or ("none" if one.witness is None else "counterexample"),
            "violation": 0.0 if one.witness is None else round(float(one.witness.violation[0]), 6),
            "trials": one.trials,
            "blocks": one.blocks,
            "seconds": round(one.seconds, 2),
            "trials_per_second": round(one.trials / one.seconds) if one.seconds > 0 else 0,
            "doubted": round(one.doubted, 6),
            "meets": ", ".join(one.meets),
            "route": "" if one.witness is None else one.witness.route,
            "file": "" if one.witness is None else f"{one.name}.json",
            "seed": one.seed,
            **{name: one.versions[name] for name in ("fairopt", "python", "numpy", "numba", "scipy")},
        }
        for one in some
    ]
    return pd.DataFrame(rows)


def keep(some: Sequence[Cell]) -> list[str]:
    """Write the table and the counterexamples; return the errors of counterexamples that could not be verified."""
    wrong, kept = [], []
    FOUND.mkdir(parents=True, exist_ok=True)
    for path in FOUND.glob("*.json"):
        path.unlink()
    for one in some:
        if one.witness is not None:
            old = one.witness
            try:
                now = properties.verify(old.mechanism, old.property, *old.instance)
            except FairoptError as error:
                wrong.append(f"{one.name}: {error}")
                continue
            now.save(FOUND / f"{one.name}.json")
            one = replace(one, witness=now)
        kept.append(one)
    table = frame(kept).sort_values(["mechanism", "property", "conditions"])
    known(table).to_csv(TABLE, index=False, lineterminator="\n")
    return wrong


def known(table: pd.DataFrame) -> pd.DataFrame:
    """Add to the table the counterexamples that other searches found, for cells in which this search found none."""
    table = table.set_index(["mechanism", "property", "conditions"])
    for path in sorted(FOUND.parent.glob("*.json")):
        found = Witness.load(path)
        at = (found.mechanism, found.property, "")
        if at in table.index and table.loc[at, "answer"] == "none":
            stated = (float(found.violation[0]), f"../{path.name}", found.route)
            table.loc[at, ["violation", "file", "route"]] = stated
    return table.reset_index()


def lacking() -> list[str]:
    """Search for counterexamples that claims lack; return the files of those that were not found."""
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
    """Search, or keep the results of a store; return 1 if a counterexample is missing or invalid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, nargs="?", metavar="DIR")
    parser.add_argument("--keep", action="store_true", help="write docs/survey.csv and docs/witnesses/found")
    parser.add_argument("--trials", type=int, default=20_000, help="of each cell; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=120.0, help="CPU seconds of a cell; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    if asked.store is None:
        wrong = lacking()
    elif asked.keep:
        if not (found := [stored(path) for path in sorted(asked.store.glob("*.json"))]):
            parser.error(f"{asked.store} holds no survey; docs/survey.csv is left as it is")
        wrong = keep(found)
    else:
        survey(cells(properties.surveyed(), seed=asked.seed), asked.store, asked.trials, asked.seconds, asked.jobs)
        wrong = []
    sys.stdout.write("".join(f"{text}\n" for text in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
