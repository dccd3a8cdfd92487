"""`Experiment`: one file `experiments/NAME.toml`, one published table or figure. docs/experiments.md has the format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from .. import _plugins, mechanisms
from ..errors import DataError
from ..workloads import known as known_sources
from ..workloads._registry import CLUSTERS
from ..workloads.sources import check_source
from . import _reading
from ._folders import known as known
from ._reading import checked, table, unknown, with_options
from ._toml import Document, Where, read
from ._values import GRID, MEASURES, is_flag, is_text, whole
from .schema import CELLS, Schema
from .simulations.experiment import TOP, SimulationExperiment, simulations

#: What is measured unless the file says otherwise.
_USUAL = MEASURES[:3]
#: What `fairopt tables` makes of an experiment: means over repetitions, or a table for each cluster.
TABLES = ("means", "clusters")
_RESIDUALS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TOP_KEYS = {"experiment", "title", "source", "about", "table", "seed", "repetitions", "clusters", "grid", "smoke"}


@dataclass(frozen=True)
class ClusterSource:
    """One cluster of an experiment: its name there, and where it comes from; `merge` merges its servers first."""

    name: str
    text: str
    merge: bool = False


@dataclass(frozen=True)
class Grid:
    """Every mechanism with every alpha, engine, order, damping and tolerance, on every cluster."""

    where: Where
    clusters: tuple[str, ...]
    mechanisms: tuple[str, ...]
    alphas: tuple[float, ...]
    engines: tuple[str, ...]
    orders: tuple[str, ...]
    dampings: tuple[float | None, ...]
    tols: tuple[float | None, ...]
    max_rounds: int
    repetitions: int | None
    residuals: tuple[float, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """A validated experiment file."""

    schema: ClassVar[Schema] = CELLS

    name: str
    document: Document
    title: str
    source: str
    about: str
    table: str
    seed: int
    repetitions: int
    clusters: tuple[ClusterSource, ...]
    grids: tuple[Grid, ...]
    smoke: bool = False
    plugins: tuple[Path, ...] = ()

    @property
    def quick(self) -> bool:
        """Does it take seconds? Then `make tables` computes it: a table for each cluster, of one draw."""
        return self.table == "clusters"

    @property
    def folder(self) -> Path:
        """Where the file is: paths of cluster files are relative to it."""
        return self.document.path.parent


def load(name: str | Path, smoke: bool = False) -> Experiment | SimulationExperiment:
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


def parse(document: Document, smoke: bool = False) -> Experiment | SimulationExperiment:
    """The experiment of a document, every key checked: those of [smoke] too, whether or not it is used."""
    data = dict(document.data)
    simulated = "workloads" in data and "clusters" not in data
    unknown(document, (), data, TOP if simulated else TOP_KEYS)
    plugins = _plugged(document, data.pop("experiment", {}))
    tiny = table(document, ("smoke",), data.pop("smoke", {}))
    if simulated:
        return replace(simulations(document, data, tiny, smoke), plugins=plugins)
    unknown(document, ("smoke",), tiny, {"seed", "repetitions", *GRID})
    full = _experiment(document, data, {}, ())
    small = _experiment(document, data, tiny, ("smoke",)) if tiny else full
    return replace(small if smoke else full, smoke=smoke, plugins=plugins)


def _plugged(document: Document, value: Any) -> tuple[Path, ...]:
    """The files of `[experiment] plugins`, loaded: what they register may be named in what follows."""
    unknown(document, ("experiment",), table(document, ("experiment",), value), {"plugins"})
    _plugins.installed()
    files, where = value.get("plugins", []), ("experiment", "plugins")
    if not isinstance(files, list) or not all(map(is_text, files)):
        raise document.error(where, "must be a list of Python files, such as ['mine.py']")
    try:
        return tuple(_plugins.load(document.path.parent / file).path for file in files)
    except DataError as error:
        raise document.error(where, str(error)) from None


def _experiment(document: Document, data: dict[str, Any], tiny: dict[str, Any], inside: Where) -> Experiment:
    def at(key: str) -> Where:
        return (*inside, key) if key in tiny else (key,)

    merged = data | {key: tiny[key] for key in ("seed", "repetitions") if key in tiny}
    if not data.get("grid"):
        raise document.error(("grid",), "an experiment needs at least one [[grid]] with mechanisms")
    clusters = _clusters(document, data.get("clusters"), ("clusters",))
    if "clusters" in tiny:
        clusters |= _clusters(document, tiny["clusters"], (*inside, "clusters"), set(clusters))
    grids = []
    tables = data["grid"] if isinstance(data["grid"], list) else [data["grid"]]
    for k, one in enumerate(tables):
        unknown(document, ("grid", k), table(document, ("grid", k), one), set(GRID))
        places = {key: ("grid", k, key) for key in one}
        over = {key: value for key, value in tiny.items() if key in GRID and key in one and key != "clusters"}
        grids.append(
            _grid(document, ("grid", k), one | over, places | {key: (*inside, key) for key in over}, set(clusters))
        )
    if data.get("table") == "clusters":
        several = [at("repetitions")] if merged.get("repetitions", 1) != 1 else []
        several += [(*grid.where, "repetitions") for grid in grids if grid.repetitions not in (None, 1)]
        if several:
            raise document.error(several[0], "a table of each cluster shows one draw; leave repetitions out")
    return Experiment(
        document.path.stem,
        document,
        checked(document, ("title",), data.get("title"), is_text, "a line of text"),
        checked(document, ("source",), data.get("source", ""), is_text, "a line of text"),
        checked(document, ("about",), data.get("about", ""), is_text, "text"),
        checked(document, ("table",), data.get("table", "means"), lambda value: value in TABLES, " or ".join(TABLES)),
        checked(document, at("seed"), merged.get("seed", 1), whole(0), "a whole number >= 0"),
        checked(document, at("repetitions"), merged.get("repetitions", 1), whole(1), "a whole number >= 1"),
        tuple(source for group in clusters.values() for source in group),
        tuple(grids),
    )


def _clusters(
    document: Document, value: Any, where: Where, old: set[str] | None = None
) -> dict[str, list[ClusterSource]]:
    """By name; options that are lists make a cluster for every combination."""
    found: dict[str, list[ClusterSource]] = {}
    for name, entry in table(document, where, value).items():
        here = (*where, name)
        if old is not None and name not in old:
            raise document.error(here, f"[clusters] has no {name!r} to replace; it has {', '.join(sorted(old))}")
        options = {"source": entry} if isinstance(entry, str) else dict(table(document, here, entry))
        text = options.pop("source", None)
        if not isinstance(text, str) or not text:
            raise document.error((*here, "source"), "name a source, such as 'paper:pf-fig1' or 'bitbrains?vms=100'")
        merge = checked(document, (*here, "merge"), options.pop("merge", False), is_flag, "true or false")
        choices = [
            [(key, one) for one in (item if isinstance(item, list) else [item])] for key, item in options.items()
        ]
        found[name] = [ClusterSource(name, with_options(text, pairs), merge) for pairs in product(*choices)]
        _check_options(document, here, found[name], options)
    if not found:
        raise document.error(where, "name at least one cluster")
    return found


def _check_options(document: Document, here: Where, sources: list[ClusterSource], options: dict[str, Any]) -> None:
    """Every option with its line, before anything is drawn. That the source is there is looked at later (`origin`)."""
    for source in sources:
        of_file = (".toml" in source.text or ".json" in source.text) and not CLUSTERS.names(source.text)
        if source.text.startswith("paper:") or of_file:
            if options:
                raise document.error((*here, next(iter(options))), "only traces and generators take options")
            continue
        kind = source.text.partition("?")[0].partition(":")[0]
        if kind not in (*known_sources(), *CLUSTERS.aliases):
            names = f"paper:NAME, FILE.toml, {', '.join(known_sources())}"
            raise document.error(here, f"there is no source {source.text!r}; known: {names}")
        try:
            check_source(source.text)
        except DataError as error:
            raise document.error((*here, *(key for key in error.where if key in options)), str(error)) from None


def _grid(document: Document, where: Where, given: dict[str, Any], places: dict[str, Where], names: set[str]) -> Grid:
    def many(key: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
        return _reading.many(document, places, given, key, GRID[key], default)

    chosen = many("clusters", tuple(sorted(names)))
    if strange := [name for name in chosen if name not in names]:
        raise document.error(places["clusters"], f"[clusters] has no {strange[0]!r}; it has {', '.join(sorted(names))}")
    if "mechanisms" not in given:
        raise document.error(where, "a grid needs mechanisms, such as ['drfh', 'alphapf-vds(alpha=3)']")
    grid = Grid(
        where=where,
        clusters=chosen,
        mechanisms=many("mechanisms", ()),
        alphas=tuple(float(alpha) for alpha in many("alphas", ())),
        engines=many("engines", ("default",)),
        orders=many("orders", ("cyclic",)),
        dampings=tuple(None if value == "default" else float(value) for value in many("dampings", ("default",))),
        tols=tuple(None if value == "default" else float(value) for value in many("tols", ("default",))),
        max_rounds=many("max_rounds", (1000,))[0],
        repetitions=many("repetitions", (None,))[0],
        residuals=tuple(float(value) for value in many("residuals", _RESIDUALS)),
        measures=many("measures", _USUAL),
    )
    _parse(document, places["mechanisms"], grid.mechanisms)
    return grid


def _parse(document: Document, where: Where, texts: tuple[str, ...]) -> None:
    """Are all texts mechanisms?"""
    for text in texts:
        try:
            mechanisms.parse(text)
        except DataError as error:
            raise document.error(where, str(error)) from None
