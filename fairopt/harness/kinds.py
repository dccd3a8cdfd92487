"""The two kinds of cells: a mechanism on a cluster, and a policy on a workload over time."""

from __future__ import annotations

from collections.abc import Iterable

from . import run as mechanisms_run
from .cells import Cell, cells
from .experiment import Experiment
from .run import Row
from .simulations import run as simulations_run
from .simulations.cells import Simulation, simulations
from .simulations.experiment import SimulationExperiment

AnyCell = Cell | Simulation
AnyExperiment = Experiment | SimulationExperiment


def cells_of(experiment: AnyExperiment, traces: str | None = None) -> list[AnyCell]:
    """Every cell of an experiment once."""
    if isinstance(experiment, SimulationExperiment):
        return [*simulations(experiment, traces)]
    return [*cells(experiment, traces)]


def run(cell: AnyCell, traces: str | None = None, threads: int | None = 1) -> Row:
    """The row of a cell: numbers, or the error."""
    if isinstance(cell, Simulation):
        return simulations_run.run(cell, traces, threads)
    return mechanisms_run.run(cell, traces, threads)


def failed(cell: AnyCell, error: BaseException) -> Row:
    """The row of a cell that has only an error."""
    if isinstance(cell, Simulation):
        return simulations_run.failed(cell, error)
    return mechanisms_run.failed(cell, error)


def warm_up(cells: Iterable[AnyCell]) -> None:
    """Compile what processes that begin together would all compile."""
    mechanisms_run.warm_up(cell for cell in cells if isinstance(cell, Cell))
