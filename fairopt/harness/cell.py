"""`Cell`: the smallest thing that is computed and stored; its key is a hash of all that determines it."""

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
    """Object with a canonical text, from which `parse` makes it again.

    Pickled without it: a worker has to load plug-ins before.
    """

    text: str
    parse: Callable[[str], T] = field(compare=False, repr=False)

    @cached_property
    def made(self) -> T:
        """The object; `DataError` where its class is not known."""
        return self.parse(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.parse)

    def __str__(self) -> str:
        return self.text


class Job(Protocol):
    """One way to treat a cluster or workload."""

    @property
    def schema(self) -> Schema:
        """The columns of its rows."""

    @property
    def what(self) -> Named[object]:
        """The mechanism or policy."""

    @property
    def random(self) -> bool:
        """True if the answer is random, whatever it is about."""

    @property
    def fields(self) -> Row:
        """Fields of the question."""

    @property
    def asked(self) -> Row:
        """The columns of a row that say what was asked, and under `options` what has no column."""

    def code(self, measures: tuple[str, ...]) -> str:
        """The digest of what computes the answer."""

    def warm(self) -> None:
        """Import and compile what the first answer of a process waits for: seconds of cells do not contain that."""

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """The columns of a row that say what was found."""


@dataclass(frozen=True)
class Cell:
    """One cluster or workload, one job, and what computes that.

    All fields but the labels `experiment` and `source` make the `key`; without `code` they make the `question`.
    """

    experiment: str
    source: str
    origin: Origin
    seed: int
    repetition: int
    job: Job
    measures: tuple[str, ...]
    code: str
    plugins: tuple[tuple[str, str], ...] = ()  # files and digests; what of them decides the answer is in other fields

    @cached_property
    def question(self) -> str:
        """Digest of the question, independent of code and machine: 24 hexadecimal digits."""
        own = {"origin": self.origin.fields, "seed": self.seed, "repetition": self.repetition}
        return _digest(own | self.job.fields | {"measures": self.measures})

    @cached_property
    def key(self) -> str:
        """The question, and the digest of what computes the answer."""
        return _digest([self.question, self.code])

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.job.what} on {self.source}"

    @property
    def requested(self) -> Row:
        """Columns of the row that describe the question."""
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
        """For what is random in the solution: its own in every cell, whoever computes it and when."""
        return np.random.default_rng(int(self.question, 16))


class Work(NamedTuple):
    """Cells that are solved together, or one; rows of `wanted` (keys) are handed in, by default of all.

    The others are there so that a row does not depend on what has been computed before: sums of stacks of other sizes
    may round otherwise.
    """

    cells: tuple[Cell, ...]
    wanted: frozenset[str] | None = None

    @property
    def asked(self) -> list[Cell]:
        """Cells whose rows are requested."""
        return [cell for cell in self.cells if self.wanted is None or cell.key in self.wanted]


def _digest(value: object) -> str:
    """24 hexadecimal digits, the same on every machine."""
    return hashlib.sha256(_SORTED(value).encode()).hexdigest()[:24]


#: One encoder for all: `json.dumps` makes one each time.
_SORTED = json.JSONEncoder(sort_keys=True).encode
