"""`Experiment`: one file `experiments/NAME.toml`, one published table or figure. docs/experiments.md has the format.

Mechanisms on clusters and policies on workloads over time are two kinds of one thing: `MECHANISMS`, `POLICIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from .. import mechanisms
from ..base import files as _files
from ..base import plugins as _plugins
from ..base import shipped
from ..base.errors import DataError
from ..base.files import Table
from ..game.orders import ORDERS
from ..model._validate import finite
from ..study import metrics
from ..workloads.sources import CLUSTERS, WORKLOADS, Sources
from . import origin, simulate, solve
from .cell import Cell, Job
from .schema import CELLS, SIMULATIONS, Schema

#: Where something stands: keys, and positions in arrays of tables, such as ("grid", 0, "alphas").
Where = tuple[str | int, ...]

#: A check of one value, and what it must be.
Check = tuple[Callable[[Any], bool], str]


@dataclass(frozen=True)
class Document:
    """A TOML file: its text, and what it says."""

    path: Path
    text: str
    data: Table

    def error(self, where: Where, message: str) -> DataError:
        """`message` with file, line and key in front."""
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
        return DataError(f"{self.path}:{_files.toml_line(self.text, where)}: {key}: {message}", where)

    @contextmanager
    def blamed(self, *places: Where) -> Iterator[None]:
        """Errors of data with the line of the first place that has what the error is about, or of the last."""
        try:
            yield
        except DataError as error:
            every = [(*place, *error.where) for place in places]
            known = next((one for one in every if _files.has(self.data, one)), places[-1])
            raise self.error(known, str(error)) from None

    def checked(self, where: Where, value: Any, check: Check) -> Any:
        """A value, if it is there and passes the check."""
        if not check[0](value):
            text = f"is {value!r}; it must be {check[1]}" if value is not None else f"is missing: {check[1]}"
            raise self.error(where, text)
        return value

    def several(self, where: Where, given: Any, check: Check) -> tuple[Any, ...]:
        """The values of a key that takes one or a list."""
        values = given if isinstance(given, list) else [given]
        if not values:
            raise self.error(where, f"is empty; give {check[1]}, or leave it out")
        return tuple(self.checked(where, value, check) for value in values)

    def table(self, where: Where, value: Any, keys: Collection[str] | None = None) -> Table:
        """A table, with no other keys than these."""
        if not isinstance(value, dict):
            raise self.error(where, "must be a table" if value is not None else "is missing")
        for key in value:
            if keys is not None and key not in keys:
                raise self.error((*where, key), f"unknown key; known: {', '.join(sorted(keys))}")
        return value


def read(path: Path) -> Document:
    """Parse a file.

    Raises
    ------
    DataError
        It cannot be read, or is not TOML: with the line.
    """
    text = _files.read(path, "experiment")
    return Document(path, text, _files.parse_toml(text, path))


#: What `fairopt tables` makes of an experiment: means over repetitions, or a table for each cluster.
TABLES = ("means", "clusters")


def _number(value: Any) -> bool:
    return finite(value) or value in (math.inf, -math.inf)


def _positive(value: Any) -> bool:
    return finite(value) and value > 0


def _whole(least: int) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63

    return check, f"a whole number >= {least}"


def _text(what: str) -> Check:
    return lambda value: isinstance(value, str), what


def _one_of(names: tuple[str, ...], more: Callable[[Any], bool] = lambda _: False, others: str = "") -> Check:
    return lambda value: value in names or more(value), f"one of {', '.join(names)}{others}"


_FLAG: Check = (lambda value: isinstance(value, bool), "true or false")
_SECONDS: Check = (_positive, "seconds > 0")


@dataclass(frozen=True)
class Kind:
    """Differences between the kinds of experiments.

    `sources` and `runs` are the keys of what is drawn and of what runs on it; `top` are checks of keys of the file with
    their defaults, and `grid` of those of a grid; `check_run` raises `DataError`.
    """

    schema: Schema
    sources: str
    runs: str
    top: Mapping[str, tuple[Check, Any]]
    grid: Mapping[str, tuple[Check, tuple[Any, ...]]]
    examples: tuple[str, str]
    check_run: Callable[[str], object]
    drawn_from: Sources[Any]
    jobs: Callable[[Mapping[str, tuple[Any, ...]]], Iterator[Job]]
    measure: Callable[[str], str]

    @property
    def keys(self) -> set[str]:
        """Keys of the file."""
        return {"experiment", self.sources, "grid", "smoke", *self.top}


_TOP: dict[str, tuple[Check, Any]] = {
    "title": (_text("a line of text"), None),
    "source": (_text("a line of text"), ""),
    "about": (_text("text"), ""),
    "seed": (_whole(0), 1),
    "repetitions": (_whole(1), 1),
}
MECHANISMS = Kind(
    CELLS,
    "clusters",
    "mechanisms",
    _TOP | {"table": (_one_of(TABLES), "means")},
    {
        "clusters": (_text("a name from [clusters]"), ()),
        "mechanisms": (_text("a mechanism, such as 'drfh'"), ()),
        "alphas": ((lambda value: _number(value) and value >= 0, "a number >= 0, or inf"), ()),
        "engines": (_text("the name of an engine, or 'default'"), ("default",)),
        "orders": (_one_of(tuple(ORDERS)), ("cyclic",)),
        "dampings": (
            (lambda value: value == "default" or (_number(value) and 0 < value < 2), "in (0, 2), or 'default'"),
            ("default",),
        ),
        "tols": ((lambda value: value == "default" or _positive(value), "a number > 0, or 'default'"), ("default",)),
        "max_rounds": (_whole(1), (1000,)),
        "repetitions": (_whole(1), (None,)),
        "residuals": ((_positive, "a number > 0"), (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
        "measures": (
            _one_of(
                solve.MEASURES,
                lambda value: isinstance(value, str) and value in metrics.KNOWN,
                ", or a number that fairopt compare shows, plug-ins' included",
            ),
            solve.MEASURES[:3],
        ),
    },
    ("'paper:pf-fig1' or 'bitbrains?vms=100'", "['drfh', 'alphapf-vds(alpha=3)']"),
    mechanisms.parse,
    CLUSTERS,
    solve.jobs,
    solve.measure,
)
POLICIES = Kind(
    SIMULATIONS,
    "workloads",
    "policies",
    _TOP | {"at": ((_number, "a number of seconds"), ()), "quick": (_FLAG, False)},
    {
        "workloads": (_text("a name from [workloads]"), ()),
        "policies": (_text("a policy, such as 'best-fit-drfh', 'dedicated:POLICY' or 'fluid:MECHANISM'"), ()),
        "until": (_SECONDS, (None,)),
        "every": (_SECONDS, (None,)),
        "impossible": ((lambda value: value in ("raise", "report"), "'raise' or 'report'"), ("raise",)),
        "thrashing": ((lambda value: _positive(value) and value >= 1, "a number >= 1"), (None,)),
        "repetitions": (_whole(1), (None,)),
        "measures": (_one_of(simulate.MEASURES), ("timeline",)),
    },
    ("'google-day?tasks=20000'", "['best-fit-drfh', 'slots(n=14)']"),
    simulate.parse,
    WORKLOADS,
    simulate.jobs,
    str,
)

#: Keys of a grid that take one value.
SINGLE = {"max_rounds", "until", "every", "impossible", "thrashing", "repetitions"}


@dataclass(frozen=True)
class Source:
    """One cluster or workload of an experiment: its name there, and its origin; `merge` merges servers first."""

    name: str
    text: str
    merge: bool = False


@dataclass(frozen=True)
class Grid:
    """Everything that runs, in every way, on every source; values by the keys of `Kind.grid`."""

    where: Where
    values: Mapping[str, tuple[Any, ...]]

    def __getitem__(self, key: str) -> tuple[Any, ...]:
        """The values of a key."""
        return self.values[key]

    def one(self, key: str) -> Any:
        """The value of a key that has one."""
        return self.values[key][0]


@dataclass(frozen=True)
class Experiment:
    """A validated experiment file; `at`: seconds at which a table shows shares."""

    kind: Kind
    name: str
    document: Document
    title: str
    source: str
    about: str
    seed: int
    repetitions: int
    sources: tuple[Source, ...]
    grids: tuple[Grid, ...]
    table: str = "means"
    at: tuple[float, ...] = ()
    quick: bool = False
    smoke: bool = False
    plugins: tuple[Path, ...] = ()

    @property
    def schema(self) -> Schema:
        """Schema of its cells."""
        return self.kind.schema

    def draws(self, grid: Grid) -> int:
        """Number of draws of a random source for a grid."""
        return int(grid.one("repetitions") or self.repetitions)


def known() -> dict[str, Path]:
    """Every experiment that can be called by its name: in `experiments` here, and those that come with the package."""
    found: dict[str, Path] = {}
    for folder in (Path("experiments"), shipped.folder("experiments")):
        for path in sorted(folder.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found


def load(name: str | Path, smoke: bool = False) -> Experiment:
    """An experiment by its name or file; `smoke` is its tiny version. One with `[workloads]` is of simulations.

    Raises
    ------
    DataError
        No such experiment; a bad file, with line and key.
    """
    path = Path(name)
    if path.suffix != ".toml":
        files = known()
        if str(name) not in files:
            raise DataError(f"there is no experiment {str(name)!r}; known: {', '.join(files) or 'none'}; or a file")
        path = files[str(name)]
    return parse(read(path), smoke)


def parse(document: Document, smoke: bool = False) -> Experiment:
    """The experiment of a document, every key checked: those of [smoke] too, whether or not it is used."""
    kind = POLICIES if "workloads" in document.data and "clusters" not in document.data else MECHANISMS
    data = dict(document.table((), document.data, kind.keys))
    plugins = _plugged(document, data.pop("experiment", {}))
    tiny = document.table(("smoke",), data.pop("smoke", {}), {"seed", "repetitions", *kind.grid})
    full = _experiment(kind, document, data, {})
    small = _experiment(kind, document, data, tiny) if tiny else full
    return replace(small if smoke else full, smoke=smoke, plugins=plugins)


def _plugged(document: Document, value: Any) -> tuple[Path, ...]:
    """The files of `[experiment] plugins`, loaded: what they register may be named in what follows."""
    document.table(("experiment",), value, {"plugins"})
    _plugins.installed()
    files, where = value.get("plugins", []), ("experiment", "plugins")
    if not _files.texts(files):
        raise document.error(where, "must be a list of Python files, such as ['mine.py']")
    with document.blamed(where):
        return tuple(_plugins.load(document.path.parent / file).path for file in files)


def _experiment(kind: Kind, document: Document, data: Table, tiny: Table) -> Experiment:
    """`tiny` in place of what the file says elsewhere."""
    if not data.get("grid"):
        raise document.error(("grid",), f"an experiment needs at least one [[grid]] with {kind.runs}")
    sources = _sources(kind, document, data.get(kind.sources), (kind.sources,))
    if kind.sources in tiny:
        sources |= _sources(kind, document, tiny[kind.sources], ("smoke", kind.sources), set(sources))
    grids = []
    for k, one in enumerate(data["grid"] if isinstance(data["grid"], list) else [data["grid"]]):
        document.table(("grid", k), one, kind.grid)
        over = {key: tiny[key] for key in tiny if key in kind.grid and key in one and key != kind.sources}
        grids.append(_grid(kind, document, ("grid", k), one | over, over, set(sources)))
    top: Table = {}
    for key, (check, default) in kind.top.items():
        where: Where = ("smoke", key) if key in tiny else (key,)
        value = tiny.get(key, data.get(key, default))
        read = document.several if key == "at" else document.checked
        top[key] = read(where, value, check) if value != () else ()
    made = Experiment(
        kind, document.path.stem, document, sources=tuple(one for group in sources.values() for one in group),
        grids=tuple(grids), **top,
    )  # fmt: skip
    if made.table == "clusters":
        draws: list[tuple[Where, Any]] = [(("smoke",), tiny.get("repetitions")), ((), data.get("repetitions"))]
        for place, count in [*draws, *((one.where, one.one("repetitions")) for one in grids)]:
            if count not in (None, 1):
                text = "a table of each cluster shows one draw; leave repetitions out"
                raise document.error((*place, "repetitions"), text)
        return replace(made, quick=True)  # it takes seconds: `make tables` computes it
    return made


def _sources(
    kind: Kind, document: Document, value: Any, where: Where, old: set[str] | None = None
) -> dict[str, list[Source]]:
    """Sources by name, one for every combination of options that are lists; nothing is drawn or read yet."""
    found: dict[str, list[Source]] = {}
    for name, entry in document.table(where, value).items():
        here = (*where, name)
        if old is not None and name not in old:
            known = ", ".join(sorted(old))
            raise document.error(here, f"[{kind.sources}] has no {name!r} to replace; it has {known}")
        options = {"source": entry} if isinstance(entry, str) else dict(document.table(here, entry))
        text = options.pop("source", None)
        if not isinstance(text, str) or not text:
            raise document.error((*here, "source"), f"name a source, such as {kind.examples[0]}")
        merged = document.checked((*here, "merge"), options.pop("merge", False), _FLAG) if kind is MECHANISMS else False
        choices = [[(key, one) for one in (item if isinstance(item, list) else [item])]
                   for key, item in options.items()]  # fmt: skip
        found[name] = [Source(name, _with_options(text, pairs), merged) for pairs in product(*choices)]
        for key, several in options.items():
            if several == []:
                raise document.error((*here, key), "is empty; give a value, or leave it out")
        for source in found[name]:
            with document.blamed(here):
                origin.check(kind.drawn_from, source.text, document.path.parent, tuple(options))
    if not found:
        raise document.error(where, f"name at least one {kind.sources[:-1]}")
    return found


def _with_options(text: str, pairs: tuple[tuple[str, Any], ...]) -> str:
    """The name of a source with options."""
    plain = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs]
    return "?".join([text, "&".join(plain)]) if plain and "?" not in text else "&".join([text, *plain])


def _grid(kind: Kind, document: Document, where: Where, given: Table, over: Table, names: set[str]) -> Grid:
    def at(key: str) -> Where:
        return ("smoke", key) if key in over else (*where, key)

    values = {key: document.several(at(key), given[key], check) if key in given else default
              for key, (check, default) in kind.grid.items()}  # fmt: skip
    for key in SINGLE & given.keys():
        if len(values[key]) > 1:
            raise document.error(at(key), "takes one value; write a [[grid]] for each")
    values[kind.sources] = values[kind.sources] or tuple(sorted(names))
    if strange := [name for name in values[kind.sources] if name not in names]:
        known = ", ".join(sorted(names))
        raise document.error(at(kind.sources), f"[{kind.sources}] has no {strange[0]!r}; it has {known}")
    if not values[kind.runs]:
        raise document.error(where, f"a grid needs {kind.runs}, such as {kind.examples[1]}")
    for text in values[kind.runs]:
        with document.blamed(at(kind.runs)):
            kind.check_run(text)
    return Grid(where, values)


def cells_of(experiment: Experiment, traces: str | None = None) -> list[Cell]:
    """Every cell once, those of one cluster or workload one after another.

    Raises
    ------
    DataError
        With the line of the experiment file: an unknown source, an engine that a mechanism does not have.
    """
    kind, found = experiment.kind, dict[str, Cell]()
    plugins = tuple(sorted((str(plugin.path), plugin.digest) for plugin in _plugins.loaded()))
    tiny: list[Where] = [("smoke",)] * experiment.smoke
    origins, ways = [], []
    for source in experiment.sources:
        inside = (kind.sources, source.name)
        with experiment.document.blamed(*((*one, *inside) for one in tiny), inside):
            folder = experiment.document.path.parent
            origins.append((source, origin.of(kind.drawn_from, source.text, source.merge, folder, traces)))
    for grid in experiment.grids:
        with experiment.document.blamed(*tiny, grid.where):
            measures = tuple(sorted(map(kind.measure, grid["measures"])))
            ways.append((grid, [(job, job.code(measures)) for job in kind.jobs(grid.values)], measures))
    for (source, drawn), repetition in product(origins, range(max(map(experiment.draws, experiment.grids)))):
        for grid, several, measures in ways:
            if source.name not in grid[kind.sources] or repetition >= experiment.draws(grid):
                continue
            for job, code in several:
                chance = drawn.random or job.random
                cell = Cell(
                    experiment.name, source.name, drawn, experiment.seed if chance else 0,
                    repetition if chance or "times" in measures else 0, job, measures, code, plugins,
                )  # fmt: skip
                found.setdefault(cell.key, cell)
    return list(found.values())
