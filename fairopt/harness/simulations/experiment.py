"""`SimulationExperiment`: a file with `[workloads]` and grids of policies. docs/experiments.md has the format."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from ...errors import DataError
from .._reading import Check, checked, many, table, unknown, with_options
from .._toml import Document, Where
from .._values import is_flag, is_number, is_positive, is_text, whole
from ..schema import SIMULATIONS, Schema
from . import runners, workloads

TOP = {"experiment", "title", "source", "about", "at", "quick", "seed", "repetitions", "workloads", "grid", "smoke"}
#: What a cell keeps besides its row and the use of resources.
MEASURES = ("timeline", "shares", "jobs", "users", "demands")

#: Keys of a grid: how one value is checked, and what it must be.
GRID: dict[str, Check] = {
    "workloads": (is_text, "a name from [workloads]"),
    "policies": (is_text, "a policy, such as 'best-fit-drfh', 'dedicated:POLICY' or 'fluid:MECHANISM'"),
    "until": (is_positive, "seconds > 0"),
    "every": (is_positive, "seconds > 0"),
    "impossible": (lambda value: value in ("raise", "report"), "'raise' or 'report'"),
    "thrashing": (lambda value: is_positive(value) and value >= 1, "a number >= 1"),
    "repetitions": (whole(1), "a whole number >= 1"),
    "measures": (lambda value: value in MEASURES, f"one of {', '.join(MEASURES)}"),
}


@dataclass(frozen=True)
class WorkloadSource:
    """One workload of an experiment: its name there, and where it comes from."""

    name: str
    text: str


@dataclass(frozen=True)
class SimulationGrid:
    """Every policy on every workload.

    `every`: seconds between samples of timelines, and between decisions of fluid allocations; None: 500 samples, and
    300 s. `thrashing`: how many times longer tasks take on a server that is over-committed; None: no longer.
    """

    where: Where
    workloads: tuple[str, ...]
    policies: tuple[str, ...]
    until: float | None
    every: float | None
    impossible: str
    thrashing: float | None
    repetitions: int | None
    measures: tuple[str, ...]


@dataclass(frozen=True)
class SimulationExperiment:
    """A validated experiment file of simulations. `at`: seconds at which a table shows shares, if they are
    kept; `quick`: it takes seconds, and `make tables` computes it."""

    schema: ClassVar[Schema] = SIMULATIONS

    name: str
    document: Document
    title: str
    source: str
    about: str
    at: tuple[float, ...]
    quick: bool
    seed: int
    repetitions: int
    workloads: tuple[WorkloadSource, ...]
    grids: tuple[SimulationGrid, ...]
    smoke: bool = False
    plugins: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the file is: paths of workloads are relative to it."""
        return self.document.path.parent


def simulations(document: Document, data: dict[str, Any], tiny: dict[str, Any], smoke: bool) -> SimulationExperiment:
    """The experiment of a document; every key is checked, those of `[smoke]` too.

    Raises
    ------
    DataError
        With line and key.
    """
    unknown(document, ("smoke",), tiny, {"seed", "repetitions", *GRID})
    full = _experiment(document, data, {}, False)
    small = _experiment(document, data, tiny, True) if tiny else full
    return small if smoke else full


def _experiment(document: Document, data: dict[str, Any], tiny: dict[str, Any], smoke: bool) -> SimulationExperiment:
    inside: Where = ("smoke",) if smoke else ()

    def at(key: str) -> Where:
        return (*inside, key) if key in tiny else (key,)

    merged = data | {key: tiny[key] for key in ("seed", "repetitions") if key in tiny}
    if not data.get("grid"):
        raise document.error(("grid",), "an experiment needs at least one [[grid]] with policies")
    found = _workloads(document, data.get("workloads"), ("workloads",), None)
    if "workloads" in tiny:
        found |= _workloads(document, tiny["workloads"], (*inside, "workloads"), set(found))
    grids = []
    for k, one in enumerate(data["grid"] if isinstance(data["grid"], list) else [data["grid"]]):
        unknown(document, ("grid", k), table(document, ("grid", k), one), set(GRID))
        over = {key: value for key, value in tiny.items() if key in GRID and key in one and key != "workloads"}
        places: dict[str, Where] = {key: ("grid", k, key) for key in one} | {key: (*inside, key) for key in over}
        grids.append(_grid(document, ("grid", k), one | over, places, set(found)))
    return SimulationExperiment(
        document.path.stem,
        document,
        checked(document, ("title",), data.get("title"), is_text, "a line of text"),
        checked(document, ("source",), data.get("source", ""), is_text, "a line of text"),
        checked(document, ("about",), data.get("about", ""), is_text, "text"),
        many(document, {"at": ("at",)}, data, "at", (is_number, "a number of seconds"), ()),
        checked(document, ("quick",), data.get("quick", False), is_flag, "true or false"),
        checked(document, at("seed"), merged.get("seed", 1), whole(0), "a whole number >= 0"),
        checked(document, at("repetitions"), merged.get("repetitions", 1), whole(1), "a whole number >= 1"),
        tuple(source for group in found.values() for source in group),
        tuple(grids),
        smoke,
    )


def _workloads(document: Document, value: Any, where: Where, old: set[str] | None) -> dict[str, list[WorkloadSource]]:
    """By name; options that are lists make a workload for every combination."""
    found: dict[str, list[WorkloadSource]] = {}
    for name, entry in table(document, where, value).items():
        here = (*where, name)
        if old is not None and name not in old:
            raise document.error(here, f"[workloads] has no {name!r} to replace; it has {', '.join(sorted(old))}")
        options = {"source": entry} if isinstance(entry, str) else dict(table(document, here, entry))
        text = options.pop("source", None)
        if not isinstance(text, str) or not text:
            raise document.error((*here, "source"), "name a source, such as 'google-day?tasks=20000'")
        choices = [
            [(key, one) for one in (item if isinstance(item, list) else [item])] for key, item in options.items()
        ]
        found[name] = [WorkloadSource(name, with_options(text, pairs)) for pairs in product(*choices)]
        for source in found[name]:
            try:
                workloads.check(source.text, document.path.parent)
            except DataError as error:
                raise document.error((*here, *(key for key in error.where if key in options)), str(error)) from None
    if not found:
        raise document.error(where, "name at least one workload")
    return found


def _grid(
    document: Document, where: Where, given: dict[str, Any], places: dict[str, Where], names: set[str]
) -> SimulationGrid:
    def values(key: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
        return many(document, places, given, key, GRID[key], default)

    chosen = values("workloads", tuple(sorted(names)))
    if strange := [name for name in chosen if name not in names]:
        raise document.error(
            places["workloads"], f"[workloads] has no {strange[0]!r}; it has {', '.join(sorted(names))}"
        )
    if "policies" not in given:
        raise document.error(where, "a grid needs policies, such as ['best-fit-drfh', 'slots(n=14)']")
    found = values("policies", ())
    for text in found:
        try:
            runners.check(text)
        except DataError as error:
            raise document.error(places["policies"], str(error)) from None
    return SimulationGrid(
        where, chosen, found, values("until", (None,))[0], values("every", (None,))[0],
        values("impossible", ("raise",))[0], values("thrashing", (None,))[0], values("repetitions", (None,))[0],
        values("measures", ("timeline",)),
    )  # fmt: skip
