"""`Cell`: the smallest thing that is computed and stored; its key is a hash of all that determines it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from .. import _plugins, mechanisms
from ..errors import DataError
from ..mechanisms import Mechanism
from ..result import metrics
from . import code
from ._hash import digest
from ._texts import named, text_of
from ._values import MEASURES, VIOLATIONS
from .clusters import Origin, origin
from .experiment import ClusterSource, Experiment, Grid

#: The engine of games that is played, round by round, and leaves a trace.
PLAYED = "best-response"

#: The engine that `solve` takes on the cluster, and those that stand in for it.
DEFAULT = "default"


@dataclass(frozen=True)
class Cell:
    """One cluster, one mechanism, one way to solve it, and what computes that.

    All fields but the labels `experiment` and `cluster` make the `key`; without `code` they make the `question`.
    """

    experiment: str
    cluster: str
    origin: Origin
    seed: int
    repetition: int
    mechanism: str
    engine: str
    order: str
    damping: float | None
    tol: float
    max_rounds: int
    residuals: tuple[float, ...]
    measures: tuple[str, ...]

    code: str
    plugins: tuple[tuple[str, str], ...] = ()  # files and digests; what of them decides the answer is in other fields

    @cached_property
    def question(self) -> str:
        """What is asked, whatever code answers: 24 hexadecimal digits, the same on every machine."""
        fields = dataclasses.asdict(self)
        for label in ("experiment", "cluster", "code", "plugins"):
            del fields[label]
        del fields["origin"]["path"]
        return digest(fields)

    @cached_property
    def key(self) -> str:
        """The question, and the digest of what computes the answer (`code.of`)."""
        return digest([self.question, self.code])

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.mechanism} on {self.cluster}"

    @property
    def solver(self) -> Mechanism:
        """The mechanism itself."""
        return mechanisms.parse(self.mechanism)[0]

    def rng(self) -> np.random.Generator:
        """For what is random in the solution: its own in every cell, whoever computes it and when."""
        return np.random.default_rng(np.random.SeedSequence(int(self.question, 16)))


def cells(experiment: Experiment, traces: str | None = None) -> list[Cell]:
    """Every cell once, those of one cluster one after another.

    Raises
    ------
    DataError
        With the line of the experiment file: an unknown source, an engine that a mechanism does not have.
    """
    sources = [(source, _origin(experiment, source, traces)) for source in experiment.clusters]
    plugins = tuple(sorted((str(plugin.path), plugin.digest) for plugin in _plugins.loaded()))
    ways = {grid.where: list(_ways(experiment, grid)) for grid in experiment.grids}
    found: dict[str, Cell] = {}
    draws = {grid.where: grid.repetitions or experiment.repetitions for grid in experiment.grids}
    for (source, where), repetition in product(sources, range(max(draws.values()))):
        for grid in experiment.grids:
            if source.name not in grid.clusters or repetition >= draws[grid.where]:
                continue
            for mechanism, engine, order, damping, tol in ways[grid.where]:
                played = engine == PLAYED
                chance = where.random or (played and order in ("random", "asynchronous"))
                cell = Cell(
                    experiment.name,
                    source.name,
                    where,
                    experiment.seed if chance else 0,
                    repetition if chance or "times" in grid.measures else 0,
                    mechanism,
                    engine,
                    order if played else "",
                    damping if played else None,
                    tol,
                    grid.max_rounds if played else 0,
                    grid.residuals if played else (),
                    tuple(sorted(map(_with_digest, grid.measures))),
                    code.of(type(mechanisms.parse(mechanism)[0]), VIOLATIONS in grid.measures),
                    plugins,
                )
                found.setdefault(cell.key, cell)
    return list(found.values())


def _origin(experiment: Experiment, source: ClusterSource, traces: str | None) -> Origin:
    try:
        return origin(source.text, source.merge, experiment.folder, traces)
    except DataError as error:
        inside = ("smoke", "clusters", source.name)
        where = inside if experiment.smoke and inside in experiment.document.lines else ("clusters", source.name)
        raise experiment.document.error((*where, *error.where), str(error)) from None


def _with_digest(measure: str) -> str:
    """A measure, and what the file of its plug-in held: another file is another measure."""
    made_by = metrics.MEASURES.get(measure) if measure not in MEASURES else None
    digest = "" if made_by is None else _plugins.digest_of(made_by.__module__)
    return f"{measure}@{digest}" if digest else measure


def _ways(experiment: Experiment, grid: Grid) -> Iterator[tuple[str, str, str, float | None, float]]:
    """Mechanism (with parameters), engine, order, damping and tolerance, where they make a difference."""
    for text, engine in product(_with_alphas(grid), grid.engines):
        mechanism = mechanisms.parse(text)[0]
        played = engine == PLAYED
        if played and getattr(mechanism, "alpha", math.inf) == 0:
            raise _error(experiment, grid, "alphas", "best responses need alpha > 0; play alpha = 0 with 'equilibrium'")
        has = mechanism.engines()
        if engine not in (DEFAULT, *has):
            raise _error(experiment, grid, "engines", f"{mechanism} has no engine {engine!r}; it has {', '.join(has)}")
        orders = grid.orders if played else ("",)
        dampings = grid.dampings if played else (None,)
        for order, damping, tol in product(orders, dampings, grid.tols):
            yield text, engine, order, damping, _tolerance(mechanism, engine) if tol is None else tol


def _tolerance(mechanism: Mechanism, engine: str) -> float:
    return mechanism.tolerance(mechanism.engines()[0] if engine == DEFAULT else engine)


def _with_alphas(grid: Grid) -> Iterator[str]:
    """Mechanisms by texts that stand for one each: names that take an alpha get all those of the grid."""
    for text in grid.mechanisms:
        kinds = mechanisms.parse(text)
        takes = "(" not in text and any(field.name == "alpha" for field in dataclasses.fields(kinds[0]))
        if takes and grid.alphas:
            yield from (named(kinds[0].name, alpha=alpha) for alpha in grid.alphas)
        else:
            yield from map(text_of, kinds)


def _error(experiment: Experiment, grid: Grid, key: str, message: str) -> DataError:
    inside = ("smoke", key)
    where = inside if experiment.smoke and inside in experiment.document.lines else (*grid.where, key)
    return experiment.document.error(where, message)
