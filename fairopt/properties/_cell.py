"""A cell of the table of properties: a mechanism, a property, the clusters that are meant; and what searches found."""

from __future__ import annotations

import platform
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

from .._version import __version__
from ..errors import DataError
from ..mechanisms._claim import CONDITIONS
from .witness import Witness

#: The version of the format of stored cells.
VERSION = 1
_WRITTEN = ("numpy", "numba", "scipy")


@dataclass(frozen=True)
class Cell:
    """Whose property is searched for counterexamples, and among which clusters.

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
        """Of a block of trials: the same however many were made before, and by whom."""
        return [seed, zlib.crc32(self.name.encode()), block]


def _here() -> dict[str, str]:
    return {"fairopt": __version__, "python": platform.python_version()} | {name: version(name) for name in _WRITTEN}


@dataclass(frozen=True)
class Outcome:
    """What searches of a cell have come to.

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
        """Are more trials wanted?"""
        return self.witness is None and not self.note and self.trials < trials and self.seconds < seconds

    def answers(self, cell: Cell) -> bool:
        """Does this say what a search of another cell of the mechanism and the property would say?"""
        if self.witness is None:
            return not self.note and set(self.cell.conditions) <= set(cell.conditions)
        return set(cell.conditions) <= set(self.meets)

    @property
    def meets(self) -> list[str]:
        """Names of the conditions that the counterexample meets."""
        found = self.witness
        clusters = [] if found is None else [one for one in (found.cluster, found.changed) if one is not None]
        return [name for name, holds in CONDITIONS.items() if clusters and all(holds(one) for one in clusters)]

    def with_block(self, trials: int, seconds: float, doubted: float, witness: Witness | None) -> Outcome:
        """After another block of trials."""
        return replace(
            self,
            blocks=self.blocks + 1,
            trials=self.trials + trials,
            seconds=self.seconds + seconds,
            doubted=max(self.doubted, doubted),
            witness=witness,
        )

    def document(self) -> dict[str, Any]:
        """As plain data."""
        plain = {name: getattr(self, name) for name in ("seed", "blocks", "trials", "seconds", "doubted", "note")}
        found = None if self.witness is None else self.witness.document()
        return {"fairopt_cell": VERSION, **asdict(self.cell), **plain, "witness": found, "versions": self.versions}


def outcome(document: Any) -> Outcome:
    """An outcome from plain data; `DataError` says what is wrong with it."""
    if not isinstance(document, dict) or document.get("fairopt_cell") != VERSION:
        raise DataError(f"this is no stored cell of version {VERSION} (entry fairopt_cell)")
    try:
        cell = Cell(document["mechanism"], document["property"], tuple(document["conditions"]))
        found = document["witness"]
        return Outcome(
            cell,
            int(document["seed"]),
            int(document["blocks"]),
            int(document["trials"]),
            float(document["seconds"]),
            float(document["doubted"]),
            None if found is None else Witness.of(found),
            str(document["note"]),
            dict(document["versions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"a stored cell is damaged: {type(error).__name__} {error}") from None
