"""`survey`: searches for counterexamples of many mechanisms and properties, stored as they go."""

from __future__ import annotations

import json
import platform
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import mechanisms
from ..base import clock, files
from ..base import plugins as _plugins
from ..base.errors import DataError
from ..base.libraries import of_an_extra, pd
from ..base.progress import tqdm
from ..base.version import __version__
from ..mechanisms import Mechanism
from ..mechanisms._claim import CONDITIONS
from ..model import _validate
from ._base import Property, get, names
from ._search import hunt
from ._tasks import clusters
from .witness import Witness, written

#: The version of the format of stored cells.
VERSION = 1
_WRITTEN = ("numpy", "numba", "scipy")
#: Entries of a stored cell beside what was searched and found, and their types.
_ENTRIES = {"seed": int, "blocks": int, "trials": int, "seconds": float, "doubted": float, "note": str,
            "versions": dict}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """Search for counterexamples: mechanism, property, and source of clusters.

    Attributes
    ----------
    mechanism, property : str
        Their names, with parameters.
    conditions : tuple of str
        Names of conditions on clusters.
    """

    mechanism: str
    property: str
    conditions: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """In letters that file names may have: `alphapf-vds-alpha-2.0--envy-freeness--positive-demands`."""
        parts = [self.mechanism, self.property, *self.conditions]
        return "--".join(re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-") for part in parts)

    def seeds(self, seed: int, block: int) -> list[int]:
        """Seeds of a block of trials, independent of how many were made before, and by whom."""
        return [seed, zlib.crc32(self.name.encode()), block]


def _here() -> dict[str, str]:
    return {"fairopt": __version__, "python": platform.python_version()} | {name: version(name) for name in _WRITTEN}


@dataclass(frozen=True)
class Outcome:
    """The result of all searches of a cell.

    Attributes
    ----------
    cell : Cell
    seed, blocks, trials : int
        Blocks of trials that were made, and the trials in them.
    seconds : float
        CPU seconds that took, with making counterexamples smaller and verifying them.
    doubted : float
        The largest loss that trials showed and that could not be verified; 0 for none.
    witness : Witness or None
    note : str
        Why there were no trials.
    versions : mapping of str to str
    """

    cell: Cell
    seed: int
    blocks: int = 0
    trials: int = 0
    seconds: float = 0.0
    doubted: float = 0.0
    witness: Witness | None = None
    note: str = ""
    versions: Mapping[str, str] = field(default_factory=_here)

    def open(self, trials: int, seconds: float) -> bool:
        """True if more trials are wanted."""
        return self.witness is None and not self.note and self.trials < trials and self.seconds < seconds

    def answers(self, cell: Cell) -> bool:
        """True if this decides another cell of the same mechanism and property."""
        if self.witness is None:
            return not self.note and set(self.cell.conditions) <= set(cell.conditions)
        return set(cell.conditions) <= set(self.meets)

    @property
    def meets(self) -> list[str]:
        """Names of the conditions that the counterexample meets."""
        if self.witness is None:
            return []
        return [name for name, holds in CONDITIONS.items() if all(map(holds, clusters(self.witness.instance)))]

    def document(self) -> files.Table:
        """Plain data of the cell."""
        plain = {name: getattr(self, name) for name in _ENTRIES}
        found = None if self.witness is None else self.witness.document()
        return {"fairopt_cell": VERSION, **asdict(self.cell), **plain, "witness": found}


def outcome(document: Any) -> Outcome:
    """An outcome from plain data; `DataError` says what is wrong with it."""
    if not isinstance(document, dict) or document.get("fairopt_cell") != VERSION:
        raise DataError(f"this is no stored cell of version {VERSION} (entry fairopt_cell)")
    try:
        cell = Cell(document["mechanism"], document["property"], tuple(document["conditions"]))
        found = document["witness"]
        plain: files.Table = {name: kind(document[name]) for name, kind in _ENTRIES.items()}
        return Outcome(cell, **plain, witness=None if found is None else Witness.of(found))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"a stored cell is damaged: {type(error).__name__} {error}") from None


#: Trials between two writings of a cell: what is killed loses these at most. Every block is seeded on its own.
BLOCK = 2500
#: What is surveyed by default of the game; of others, their default variants.
ALPHAS = (0.3, 0.5, 1.0, 2.0, 4.0, 16.0)


def surveyed() -> list[Mechanism]:
    """Mechanisms that claim something; the game at several alpha, and PS-DSF as its limit.

    Of utilities of one's own nothing can be said in general.
    """
    found: list[Mechanism] = []
    for name in mechanisms.names():
        kind = mechanisms.kind(name)
        if name == "alphapf-vds":
            found += [mechanisms.get(name, alpha=alpha) for alpha in ALPHAS]
        elif kind.claims and kind.__module__.startswith("fairopt."):
            found += kind.variants()
    return found


def cells(some: Sequence[Mechanism | str], properties: Sequence[str | Property] | None = None) -> list[Cell]:
    """Cells to search: all clusters, then those of positive demands or of a claim, few conditions first."""
    found: list[Cell] = []
    for mechanism in mechanisms.chosen(some):
        for prop in map(get, names() if properties is None else properties):
            claimed = [
                one.conditions
                for one in mechanism.claims
                if one.property == prop.name and one.holds and one.about(mechanism)
            ]
            for conditions in sorted({(), *claimed, ("positive demands",)}, key=lambda some: (len(some), some)):
                found.append(Cell(written(mechanism), prop.name, tuple(conditions)))
    return found


def survey(
    some: Sequence[Mechanism | str] | None = None,
    properties: Sequence[str | Property] | None = None,
    *,
    trials: int = 2000,
    seconds: float = float("inf"),
    store: str | Path | None = None,
    jobs: int = 1,
    seed: int = 0,
    progress: bool = False,
) -> list[Outcome]:
    """Search for counterexamples of every mechanism and property, among all clusters and among those of some kind.

    Of some kind: of positive demands, or such as a claim is made of. There is no search among these if there is no
    counterexample among all clusters (5 of 6 drawn have positive demands), or if it is one of them.

    Parameters
    ----------
    some : mechanisms, or their names, optional
        Default: `surveyed()`.
    properties : names, optional
        Default: all.
    trials : int
        For each cell, in blocks of `BLOCK`.
    seconds : float
        No block of a cell is begun after so many CPU seconds.
    store : path, optional
        A folder with a file for each cell, written after every block. What is there is not computed again; more trials
        go on where others ended.
    jobs : int
        Processes.
    seed : int
        Answers depend neither on the number of processes nor on interruptions.
    progress : bool

    Returns
    -------
    list of Outcome
        One for each search, in order of mechanisms and properties.

    Raises
    ------
    DataError
        There is no such mechanism or property, `trials` or `jobs` is below 1, or the store was made with another seed,
        or is damaged.
    """
    trials, jobs = _validate.whole(trials, "trials"), _validate.whole(jobs, "jobs")
    folder = None if store is None else Path(store)
    wanted = cells(surveyed() if some is None else some, properties)
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in wanted:
        groups.setdefault((cell.mechanism, cell.property), []).append(cell)
    found: dict[Cell, Outcome] = {}
    with tqdm(total=len(groups), disable=None if progress else True, unit="pair", leave=False) as bar:
        for outcomes in _groups(list(groups.values()), trials, seconds, folder, jobs, seed):
            found |= {one.cell: one for one in outcomes}
            bar.update()
    return [found[cell] for cell in wanted if cell in found]


def read(store: str | Path) -> list[Outcome]:
    """Read a store, sorted by name.

    Raises
    ------
    DataError
        A file of the store cannot be read or is damaged; the message names it.
    """
    return [_read(path) for path in sorted(Path(store).glob("*.json"))]


def frame(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """A row per search.

    `answer`, `violation` at least, trials and the blocks that they are in (seeds `[seed, of the cell, block]`), CPU
    seconds, the largest loss that was not verified (`doubted`), which conditions a counterexample meets (`meets`) and
    what its file is called (`file`), seed and versions.
    """
    rows = [
        {
            "mechanism": one.cell.mechanism,
            "property": one.cell.property,
            "conditions": ", ".join(one.cell.conditions),
            "answer": one.note or ("none" if one.witness is None else "counterexample"),
            "violation": 0.0 if one.witness is None else round(float(one.witness.violation[0]), 6),
            "trials": one.trials,
            "blocks": one.blocks,
            "seconds": round(one.seconds, 2),
            "trials_per_second": round(one.trials / one.seconds) if one.seconds > 0 else 0,
            "doubted": round(one.doubted, 6),
            "meets": "" if one.witness is None else ", ".join(one.meets),
            "route": "" if one.witness is None else one.witness.route,
            "file": "" if one.witness is None else f"{one.cell.name}.json",
            "seed": one.seed,
            **one.versions,
        }
        for one in outcomes
    ]
    return pd.DataFrame(rows)


def _groups(
    groups: list[list[Cell]], trials: int, seconds: float, folder: Path | None, jobs: int, seed: int
) -> Iterator[list[Outcome]]:
    if jobs == 1:
        yield from (_group(group, trials, seconds, folder, seed) for group in groups)
        return
    joblib = of_an_extra("joblib")
    plugins = [(str(one.path), one.digest) for one in _plugins.loaded()]
    pool = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    yield from pool(joblib.delayed(_elsewhere)(group, plugins, trials, seconds, folder, seed) for group in groups)


def _elsewhere(group: list[Cell], plugins: list[tuple[str, str]], *more: Any) -> list[Outcome]:
    """`_group` in another process, which may have to load plug-ins before."""
    _plugins.needed(plugins)
    try:
        get(group[0].property), mechanisms.one(group[0].mechanism)
    except DataError as error:
        raise DataError(f"another process: {error} (what is defined in no file is searched with jobs=1)") from None
    return _group(group, *more)


def _group(group: list[Cell], trials: int, seconds: float, folder: Path | None, seed: int) -> list[Outcome]:
    """The cells of a mechanism and a property, but for those that others answer."""
    done: list[Outcome] = []
    for cell in group:
        if not any(one.answers(cell) for one in done):
            done.append(_searched(cell, trials, seconds, folder, seed))
    return done


def _searched(cell: Cell, trials: int, seconds: float, folder: Path | None, seed: int) -> Outcome:
    path = None if folder is None else folder / f"{cell.name}.json"
    now = Outcome(cell, seed) if path is None or not path.exists() else _read(path)
    if now.cell != cell or now.seed != seed:
        raise DataError(f"{path} is of {now.cell.name} with seed {now.seed}; use another folder, or that seed")
    while now.open(trials, seconds):
        start = clock.cpu()
        size = min(BLOCK, trials - now.trials)
        rng = np.random.default_rng(cell.seeds(seed, now.blocks))
        try:
            found = hunt(cell.mechanism, cell.property, size, rng, conditions=cell.conditions)
        except DataError as error:
            now = replace(now, note=str(error))
        else:
            now = replace(
                now,
                blocks=now.blocks + 1,
                trials=now.trials + found.trials,
                seconds=now.seconds + clock.cpu() - start,
                doubted=max(now.doubted, found.doubted),
                witness=found.witness,
            )
        if path is not None:
            files.folder(path.parent)
            files.write(path, json.dumps(now.document(), indent=1, allow_nan=False) + "\n", "stored cell")
    return now


def _read(path: Path) -> Outcome:
    return files.read_json(path, "stored cell", outcome)
