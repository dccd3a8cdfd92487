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
    """Object represented by its canonical text, from which `parse` reconstructs the object.

    Only the text and `parse` are pickled, since a worker has to load plug-ins before it can reconstruct the object.
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
    """Protocol for a computation on a cluster or workload, with all its parameters."""

    @property
    def schema(self) -> Schema:
        """Columns of the rows that the job produces."""

    @property
    def what(self) -> Named[object]:
        """Mechanism or policy that the job runs."""

    @property
    def random(self) -> bool:
        """True if the result is random even on a deterministic cluster."""

    @property
    def fields(self) -> Row:
        """Parameters that enter the key of the cell."""

    @property
    def asked(self) -> Row:
        """Columns of a row that describe the question; `options` has the parameters without a column of their own."""

    def code(self, measures: tuple[str, ...]) -> str:
        """Digest of the code that computes the result."""

    def warm(self) -> None:
        """Import and compile in advance, so that the measured seconds of cells exclude both."""

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Compute the result, and return the columns of a row that describe it."""


@dataclass(frozen=True)
class Cell:
    """Unit of an experiment: one cluster or workload, one job, and the digest of the code that computes it.

    Origin, seed, repetition, job and measures determine the `question`; the question and `code` determine the `key`.
    `experiment` and `source` are only labels.

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
    # Plug-in files and their digests, which are not part of the key, since `code` and `measures` reflect their content.
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
        """Random generator of the job, seeded by the question, so that neither process nor order affects the result."""
        return np.random.default_rng(int(self.question, 16))


class Work(NamedTuple):
    """One cell, or several cells that are solved together; rows with keys in `wanted` are returned (None: all rows).

    Cells whose rows are already stored are solved again with the others, so that the wanted rows do not depend on the
    content of the store: sums over a stack of another size round differently.
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
