"""`Simulation`: a policy on a workload, the smallest thing of its kind that is computed and stored."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from ... import _plugins
from ...errors import DataError
from .._hash import digest
from ..clusters import Origin
from . import runners, workloads
from .experiment import SimulationExperiment, SimulationGrid, WorkloadSource


@dataclass(frozen=True)
class Simulation:
    """All fields but the labels `experiment` and `workload` make the `key`; without `code` they make the `question`."""

    experiment: str
    workload: str
    origin: Origin
    seed: int
    repetition: int
    policy: str
    until: float | None
    every: float | None
    impossible: str
    thrashing: float | None
    measures: tuple[str, ...]

    code: str
    plugins: tuple[tuple[str, str], ...] = ()

    @cached_property
    def question(self) -> str:
        """What is asked, whatever code answers: 24 hexadecimal digits, the same on every machine."""
        fields = dataclasses.asdict(self)
        for label in ("experiment", "workload", "code", "plugins"):
            del fields[label]
        del fields["origin"]["path"]
        return digest(fields)

    @cached_property
    def key(self) -> str:
        """The question, and the digest of what computes the answer."""
        return digest([self.question, self.code])

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.policy} on {self.workload}"

    @property
    def options(self) -> runners.Settings:
        """What the grid says besides the policy."""
        return runners.Settings(self.until, self.every, self.impossible, self.thrashing)


def simulations(experiment: SimulationExperiment, traces: str | None = None) -> list[Simulation]:
    """Every cell once, those of one workload one after another.

    Raises
    ------
    DataError
        With the line of the experiment file: there is no such workload.
    """
    plugins = tuple(sorted((str(plugin.path), plugin.digest) for plugin in _plugins.loaded()))
    sources = [(source, _origin(experiment, source, traces)) for source in experiment.workloads]
    draws = {grid.where: grid.repetitions or experiment.repetitions for grid in experiment.grids}
    found: dict[str, Simulation] = {}
    for (source, where), repetition in product(sources, range(max(draws.values()))):
        for grid in experiment.grids:
            if source.name not in grid.workloads or repetition >= draws[grid.where]:
                continue
            for text in grid.policies:
                cell = Simulation(
                    experiment.name,
                    source.name,
                    where,
                    experiment.seed if where.random else 0,
                    repetition if where.random else 0,
                    runners.plain(text),
                    *_said(grid),
                    tuple(sorted(grid.measures)),
                    runners.digest(text),
                    plugins,
                )
                found.setdefault(cell.key, cell)
    return list(found.values())


def _said(grid: SimulationGrid) -> tuple[float | None, float | None, str, float | None]:
    number = [None if value is None else float(value) for value in (grid.until, grid.every, grid.thrashing)]
    return number[0], number[1], grid.impossible, number[2]


def _origin(experiment: SimulationExperiment, source: WorkloadSource, traces: str | None) -> Origin:
    try:
        return workloads.origin(source.text, experiment.folder, traces)
    except DataError as error:
        inside = ("smoke", "workloads", source.name)
        there = experiment.smoke and inside in experiment.document.lines
        where = inside if there else ("workloads", source.name)
        raise experiment.document.error((*where, *error.where), str(error)) from None
