"""`Cell`: the unit of computation and storage, with a key that is a hash of everything that determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from .origin import Origin
from .schema import CELLS, Schema

Row = dict[str, Any]
T = TypeVar("T", covariant=True)


@dataclass(frozen=True)
class Named(Generic[T]):
    """Object with a canonical text, from which `parse` reconstructs it.

    The text is pickled without the object, since a worker has to load plug-ins first.
    """

    text: str
    parse: Callable[[str], T] = field(compare=False, repr=False)

    @cached_property
    def made(self) -> T:
        """The object, reconstructed at the first access; `DataError` if its class is unknown."""
        return self.parse(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.parse)

    def __str__(self) -> str:
        return self.text


class Job(Protocol):
    """Protocol of computations on a cluster or workload, with all their parameters."""

    @property
    def schema(self) -> Schema:
        """Columns of the rows."""

    @property
    def what(self) -> Named[object]:
        """Mechanism or policy."""

    @property
    def random(self) -> bool:
        """True if the result is random for a deterministic cluster."""

    @property
    def fields(self) -> Row:
        """Parameters that enter the key."""

    @property
    def asked(self) -> Row:
        """Columns of a row that describe the question; parameters without a column are under `options`."""

    def code(self, measures: tuple[str, ...]) -> str:
        """Digest of the code that computes the result."""

    def warm(self) -> None:
        """Import and compile in advance, so that the seconds of cells exclude it."""

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Columns of a row that describe the result."""


@dataclass(frozen=True)
class Cell:
    """Unit of an experiment: one cluster or workload, one job, and the digest of the code that computes it.

    All fields except the labels `experiment` and `source` determine the `key`; without `code` they determine the
    `question`.

    >>> import fairopt as fo
    >>> cell = fo.harness.cells_of(fo.harness.load("pf_example"))[0]
    >>> cell.label, len(cell.key), cell.seed, cell.repetition
    ('drfh on base', 24, 0, 0)
    """

    experiment: str
    source: str
    origin: Origin
    seed: int
    repetition: int
    job: Job
    measures: tuple[str, ...]
    code: str
    # Files and their digests, not part of the key, as their effects are in `code` and `measures`.
    plugins: tuple[tuple[str, str], ...] = ()

    @cached_property
    def question(self) -> str:
        """Digest of the question, independent of code and machine: 24 hexadecimal digits."""
        own = {"origin": self.origin.fields, "seed": self.seed, "repetition": self.repetition}
        return _digest(own | self.job.fields | {"measures": self.measures})

    @cached_property
    def key(self) -> str:
        """Digest of the question and the code: 24 hexadecimal digits."""
        return _digest([self.question, self.code])

    @property
    def label(self) -> str:
        """Name of the cell in messages."""
        return f"{self.job.what} on {self.source}"

    @property
    def requested(self) -> Row:
        """Columns of the row that describe the question and its provenance."""
        asked = self.job.asked
        options = asked.pop("options") | {"measures": self.measures}
        if self.job.schema is CELLS:
            options["merge"] = self.origin.merge
        if self.plugins:
            options["plugins"] = {Path(file).name: digest for file, digest in self.plugins}
        return asked | {
            "key": self.key, "experiment": self.experiment, self.job.schema.source: self.source,
            "source": self.origin.named, "data": self.origin.kind, "digest": self.origin.digest, "seed": self.seed,
            "repetition": self.repetition, "question": self.question, "code": self.code,
            "options": _SORTED(options),
        }  # fmt: skip

    def rng(self) -> np.random.Generator:
        """Random generator of the solution, seeded by the question, and thus independent of process and order."""
        return np.random.default_rng(int(self.question, 16))


class Work(NamedTuple):
    """One cell, or several that are solved together; rows with keys in `wanted` are returned, by default all.

    Cells whose rows are not wanted are solved again, so that the wanted rows do not depend on the content of
    the store: sums over stacks of another size round differently.
    """

    cells: tuple[Cell, ...]
    wanted: frozenset[str] | None = None

    @property
    def asked(self) -> list[Cell]:
        """Cells whose rows are returned."""
        return [cell for cell in self.cells if self.wanted is None or cell.key in self.wanted]


def _digest(value: object) -> str:
    """Digest of a JSON value in 24 hexadecimal digits, the same on every machine."""
    return hashlib.sha256(_SORTED(value).encode()).hexdigest()[:24]


#: One encoder for all calls, since `json.dumps` constructs an encoder per call.
_SORTED = json.JSONEncoder(sort_keys=True).encode
