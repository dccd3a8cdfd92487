"""`Experiment`: a file `experiments/NAME.toml`, for one published table or figure. docs/experiments.md has the format.

There are two kinds of experiments: `MECHANISMS` on clusters, and `POLICIES` on workloads over time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from .. import mechanisms
from ..base import files as _files
from ..base import plugins as _plugins
from ..base import shipped
from ..base.errors import DataError
from ..base.files import Table
from ..base.typed import typed
from ..game.orders import ORDERS
from ..study import metrics
from ..workloads.sources import CLUSTERS, WORKLOADS, Sources
from . import origin, simulate, solve
from .cell import Cell, Job
from .schema import CELLS, SIMULATIONS, Schema

#: Location in a document: keys, and positions in arrays of tables, such as ("grid", 0, "alphas").
Where = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """TOML file: text and contents; `smoke` is true if values of [smoke] have replaced the values of the experiment."""

    path: Path
    text: str
    data: Table
    smoke: bool = False

    def error(self, where: Where, message: str) -> DataError:
        """Build an error whose message begins with file, line and key."""
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
        line = _files.toml_line(self.text, where)
        return DataError(f"{self.path}:{line}: {key}{': ' if key else ''}{message}", where)

    @contextmanager
    def blamed(self, *place: str | int) -> Iterator[None]:
        """Context that adds to a `DataError` the line of its entry, or of `place`, in [smoke] if the key is there."""
        try:
            yield
        except DataError as error:
            every = [(*place, *error.where), place]
            if self.smoke:
                tiny = [("smoke", *one[2 if "grid" in one[:1] else 0 :]) for one in every]
                every = [one for one in tiny if len(one) > 1] + every
            known = next((one for one in every if _files.has(self.data, one)), place)
            raise self.error(known, str(error)) from None


def read(path: Path) -> Document:
    """Parse a file.

    Raises
    ------
    DataError
        The file cannot be read, or is not TOML; the message states the line.
    """
    text = _files.read(path, "experiment")
    return Document(path, text, _files.parse_toml(text, path))


#: Keys of a table with their types, and with defaults if they are optional.
Fields = dict[str, tuple[Any, ...]]


#: Choices that a field may have, by the name of its type; the descriptions of fields name them as well.
_CHOICES = {"orders": ORDERS, "solved": solve.MEASURES, "simulated": simulate.MEASURES}
_TYPES: dict[str, Any] = {
    "text": str, "whole": int, "number": float, "flag": bool, "lists": dict[str, tuple[str, ...]],
    "values": dict[str, str | float],
} | {name: Literal[tuple(choices)] for name, choices in _CHOICES.items()}  # fmt: skip
#: Numbers of values of an entry, as constraints of a list.
_SEVERAL = {
    "many": Meta(min_length=1, description="one or several"),
    "one": Meta(min_length=1, max_length=1, description="write a [[grid]] for each"),
}


def _field(
    type: Any = "text", *, several: str = "", automatic: bool = False, required: bool = False, default: Any = None,
    description: str | None = None, **bounds: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Type and default of a field of `fields.toml`; a `required` field has no default."""
    kind: Any = Literal[tuple(type)] if isinstance(type, list) else _TYPES[type]
    if description is not None:
        names = {name: ", ".join(choices) for name, choices in _CHOICES.items()}
        kind = Annotated[kind, Meta(description=description.format(**names), **bounds)]
    if automatic:
        kind = Literal["default"] | kind
    if several:
        kind = kind | Annotated[tuple[kind, ...], _SEVERAL[several]]
    return (kind,) if required else (kind, tuple(default) if isinstance(default, list) else default)


_FIELDS: dict[str, Fields] = {
    table: {key: _field(**said) for key, said in fields.items()}
    for table, fields in shipped.content(__package__, "fields.toml").items()
}


def _struct(name: str, fields: Fields) -> type[Struct]:
    """Type of a table with the given keys and no other keys."""
    listed = [(key, *field) for key, field in fields.items()]
    return msgspec.defstruct(name, listed, kw_only=True, forbid_unknown_fields=True)


_TOP: Fields = _FIELDS["file"] | {"tables": (tuple[_struct("Table", _FIELDS["table"]), ...], ())}  # type: ignore[misc]


class Plugins(Struct, frozen=True, forbid_unknown_fields=True):
    """Files whose mechanisms, sources and measures an experiment names."""

    plugins: Annotated[tuple[str, ...], Meta(description="a list of Python files, such as ['mine.py']")] = ()


class Entry(Struct):
    """A cluster or workload of an experiment; other keys are options of its source."""

    source: Annotated[str, Meta(min_length=1, description="a source, such as 'bitbrains?vms=100' or 'google-day'")]
    merge: Annotated[bool, Meta(description="true or false")] = False


@dataclass(frozen=True)
class Kind:
    """Kind of experiment: the keys of its files, and the functions that interpret their values.

    Attributes
    ----------
    schema : Schema
    sources, runs : str
        Key of the clusters or workloads, and key of the mechanisms or policies.
    measures : callable
        Returns the measures that a grid may name.
    check_run : callable
        Raises `DataError` if a text names no mechanism or policy.
    drawn_from : Sources
        Registered sources of clusters or workloads.
    jobs : callable
        Yields the jobs of a grid, given its values.
    measure : callable
        Maps the name of a measure to the name that enters the key.
    """

    schema: Schema
    sources: str
    runs: str
    measures: Callable[[], Sequence[str]]
    check_run: Callable[[str], object]
    drawn_from: Sources[Any]
    jobs: Callable[[Mapping[str, tuple[Any, ...]]], Iterator[Job]]
    measure: Callable[[str], str]

    @property
    def top(self) -> Fields:
        """Fields of a file that the other kind lacks."""
        return _FIELDS[self.runs]

    @cached_property
    def file(self) -> type[Struct]:
        """Type by which msgspec validates an experiment file of this kind."""
        entry = {"type": ["string", "object"], "required": ["source"], "properties": {"source": {"type": "string"}}}
        meta = Meta(
            min_length=1,
            description=f"a table of {self.sources} by name",
            extra_json_schema={"additionalProperties": entry},
        )
        entries = Annotated[dict[str, Any], meta]
        grid = _FIELDS[f"{self.runs}-grid"]
        tiny = grid | {"seed": _TOP["seed"], self.sources: (entries,)}
        smoke = _struct(f"Smoke_{self.sources}", {key: (field[0] | UnsetType, UNSET) for key, field in tiny.items()})
        grids: Any = Annotated[_struct(f"Grid_{self.runs}", grid), Meta(description=f"a [[grid]] with {self.runs}")]
        several = grids | Annotated[tuple[grids, ...], _SEVERAL["many"]]
        fields = _TOP | self.top | {self.sources: (entries,), "grid": (several,), "smoke": (smoke, UNSET)}
        return _struct(f"Experiment_{self.runs}", fields | {"experiment": (Plugins, Plugins())})


MECHANISMS = Kind(
    CELLS,
    "clusters",
    "mechanisms",
    lambda: tuple(dict.fromkeys((*solve.MEASURES, *metrics.KNOWN))),
    mechanisms.parse,
    CLUSTERS,
    solve.jobs,
    solve.measure,
)  # fmt: skip
POLICIES = Kind(
    SIMULATIONS, "workloads", "policies", lambda: simulate.MEASURES, simulate.parse, WORKLOADS, simulate.jobs, str
)


@dataclass(frozen=True)
class Source:
    """Cluster or workload of an experiment: its name, and the text of its origin; `merge` merges identical servers."""

    name: str
    text: str
    merge: bool = False


@dataclass(frozen=True)
class Grid:
    """Grid of jobs: `values` by the keys of a grid, and `where`, the location in the file."""

    where: Where
    values: Mapping[str, tuple[Any, ...]]

    def __getitem__(self, key: str) -> tuple[Any, ...]:
        """Values of a key."""
        return self.values[key]

    def one(self, key: str) -> Any:
        """Value of a key that has exactly one value."""
        return self.values[key][0]


@dataclass(frozen=True)
class Experiment:
    """Validated experiment file.

    `minutes` is the CPU time of all cells, `keep` are the columns that its table shows at any width, `tables` are
    further tables, and `printed` maps each mechanism to the properties that a paper claims of it.

    >>> import fairopt as fo
    >>> experiment = fo.harness.load("drf_figures")
    >>> experiment.title, len(experiment.sources)
    ('DRF, asset fairness and CEEI on the examples of the DRF paper', 11)
    """

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
    minutes: float = 0.0
    keep: tuple[str, ...] = ()
    tables: tuple[Struct, ...] = ()
    table: str = "means"
    printed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quick: bool = False
    smoke: bool = False
    plugins: tuple[Path, ...] = ()

    @property
    def schema(self) -> Schema:
        """Schema of the cells of this experiment."""
        return self.kind.schema

    def draws(self, grid: Grid) -> int:
        """Number of draws of a random source for a grid: `repetitions` of the grid, or else of the experiment."""
        return int(grid.one("repetitions") or self.repetitions)


def known() -> dict[str, Path]:
    """Files of experiments by name; files in `./experiments` take precedence over the experiments of the package."""
    found: dict[str, Path] = {}
    for folder in (Path("experiments"), shipped.folder("experiments")):
        for path in sorted(folder.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found


def load(name: str | Path, smoke: bool = False) -> Experiment:
    """Load an experiment by its name or file, or its tiny version if `smoke`; a table `[workloads]` marks simulations.

    Raises
    ------
    DataError
        There is no such experiment, or its file is invalid; the message states line and key.

    >>> import fairopt as fo
    >>> fo.harness.load("drf_figures", smoke=True).name
    'drf_figures'
    """
    path = Path(name)
    if path.suffix != ".toml":
        files = known()
        if str(name) not in files:
            raise DataError(f"there is no experiment {str(name)!r}; known: {', '.join(files) or 'none'}; or a file")
        path = files[str(name)]
    return parse(read(path), smoke)


def parse(document: Document, smoke: bool = False) -> Experiment:
    """Build the experiment of a document after validating all keys, including those of [smoke] (`DataError`)."""
    kind = POLICIES if "workloads" in document.data and "clusters" not in document.data else MECHANISMS
    full = _experiment(kind, document)
    tiny = _experiment(kind, _smaller(kind, document)) if "smoke" in document.data else replace(full, smoke=True)
    return tiny if smoke else full


def _smaller(kind: Kind, document: Document) -> Document:
    """Copy of a document in which the values of [smoke] replace other values.

    A cluster or workload of [smoke] that the experiment lacks raises `DataError`.
    """
    data, tiny = document.data, document.data["smoke"]
    for name in tiny.get(kind.sources, ()):
        if name not in data[kind.sources]:
            known = ", ".join(sorted(data[kind.sources]))
            text = f"[{kind.sources}] has no {name!r} to replace; it has {known}"
            raise document.error(("smoke", kind.sources, name), text)
    grids = [
        one | {key: tiny[key] for key in tiny.keys() & one.keys() - {kind.sources}} for one in _several(data["grid"])
    ]
    new = {key: tiny[key] for key in ("seed", "repetitions") if key in tiny}
    new |= {"grid": grids, kind.sources: data[kind.sources] | tiny.get(kind.sources, {})}
    return replace(document, data=data | new, smoke=True)


def _experiment(kind: Kind, document: Document) -> Experiment:
    """Build the experiment of a document, without replacement by values of [smoke]; `DataError` if it is invalid."""
    with document.blamed():
        file: Any = typed(document.data, kind.file)
    _plugins.installed()
    with document.blamed("experiment", "plugins"):
        folder = document.path.parent
        plugins = tuple(_plugins.load(folder / one).path for one in file.experiment.plugins)
    sources = {}
    for name, said in getattr(file, kind.sources).items():
        with document.blamed(kind.sources, name):
            sources[name] = _sources(kind, name, {"source": said} if isinstance(said, str) else said, folder)
    grids = []
    for k, one in enumerate(_several(file.grid)):
        values = {key: _several(value) for key, value in structs.asdict(one).items()}
        with document.blamed("grid", k):
            for key, known in ((kind.sources, sources), ("measures", kind.measures())):
                if strange := [name for name in values[key] if name not in known]:
                    own = "; the file of a measure of yours is named in [experiment] plugins" * (key == "measures")
                    raise DataError(f"is {strange[0]!r}; it must be one of {', '.join(known)}{own}", (key,))
        with document.blamed("grid", k, kind.runs):
            for text in values[kind.runs]:
                kind.check_run(text)
        grids.append(Grid(("grid", k), values | {kind.sources: values[kind.sources] or tuple(sorted(sources))}))
    made = Experiment(
        kind, document.path.stem, document, sources=tuple(one for group in sources.values() for one in group),
        grids=tuple(grids), smoke=document.smoke, plugins=plugins,
        **{key: getattr(file, key) for key in (*_TOP, *kind.top)} | {"keep": _several(file.keep)},
    )  # fmt: skip
    if made.table == "means":
        return made
    for place, count in [((), made.repetitions), *((one.where, one.one("repetitions")) for one in grids)]:
        with document.blamed(*place):
            if count not in (None, 1):
                raise DataError("a table of each cluster shows one draw; leave repetitions out", ("repetitions",))
    return replace(made, quick=True)  # `make tables` computes experiments that are `quick`, which take seconds


def _several(value: Any) -> tuple[Any, ...]:
    """Tuple of the values of a key whose entry is one value or a list."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _sources(kind: Kind, name: str, said: Table, folder: Path) -> list[Source]:
    """Form a cluster or workload for every combination of options that are lists; nothing is drawn or read yet.

    An unknown source, or an invalid option, raises `DataError`.
    """
    entry, own = typed(said, Entry), Entry.__struct_fields__ if kind is MECHANISMS else ("source",)
    options = {key: _several(value) for key, value in said.items() if key not in own}
    if empty := [key for key, several in options.items() if not several]:
        raise DataError("is empty; give a value, or leave it out", (empty[0],))
    pairs = product(*([(key, one) for one in several] for key, several in options.items()))
    found = [Source(name, _with_options(entry.source, one), entry.merge) for one in pairs]
    for source in found:
        origin.check(kind.drawn_from, source.text, folder, tuple(options))
    return found


def _with_options(text: str, pairs: tuple[tuple[str, Any], ...]) -> str:
    """Text of a source with its options appended: `NAME?key=value&key=value`."""
    plain = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs]
    return "?".join([text, "&".join(plain)]) if plain and "?" not in text else "&".join([text, *plain])


def cells_of(experiment: Experiment, traces: str | None = None) -> list[Cell]:
    """Return the distinct cells of an experiment; the cells of each cluster or workload are consecutive.

    `traces` is the folder of the traces, by default FAIROPT_TRACES.

    Raises
    ------
    DataError
        A source is unknown, or a mechanism lacks an engine; the message states the line of the experiment file.

    >>> import fairopt as fo
    >>> [cell.label for cell in fo.harness.cells_of(fo.harness.load("drf_figures", smoke=True))][:3]
    ['drf on example', 'ceei on example', 'drf on thm1']
    """
    kind, found = experiment.kind, dict[str, Cell]()
    plugins = tuple(sorted((str(plugin.path), plugin.digest) for plugin in _plugins.loaded()))
    document, origins, ways = experiment.document, [], []
    for source in experiment.sources:
        with document.blamed(kind.sources, source.name):
            folder = document.path.parent
            origins.append((source, origin.of(kind.drawn_from, source.text, source.merge, folder, traces)))
    for grid in experiment.grids:
        with document.blamed(*grid.where):
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
