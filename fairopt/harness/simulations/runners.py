"""What a text of a grid does with a workload: a policy, every user by itself under one, or a fluid mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import mechanisms
from ...errors import DataError
from ...scheduling import policies
from ...scheduling.fluid import fluid
from ...scheduling.simulator import simulate
from .. import code
from .._texts import text_of

if TYPE_CHECKING:
    from ...scheduling.fluid_schedule import FluidSchedule
    from ...scheduling.schedule import Schedule
    from ...scheduling.workload import Workload

FLUID = "fluid:"
#: Seconds from solve to solve of fluid allocations: PF, section 6.
EVERY = 300.0


@dataclass(frozen=True)
class Options:
    """What a grid says besides: see `SimulationGrid`."""

    until: float | None
    every: float | None
    impossible: str
    thrashing: float | None


def check(text: str) -> None:
    """Raise `DataError` if the text stands for nothing that runs, or for several."""
    if text.startswith(FLUID):
        mechanisms.one(text.removeprefix(FLUID))
    else:
        policies.one(text)


def plain(text: str) -> str:
    """One text for all that mean the same."""
    if text.startswith(FLUID):
        return FLUID + text_of(mechanisms.one(text.removeprefix(FLUID)))
    return str(policies.one(text))


def name(text: str) -> str:
    """The name without parameters."""
    return plain(text).partition("(")[0]


def digest(text: str) -> str:
    """What computes an answer, as a digest (`code`)."""
    if text.startswith(FLUID):
        return code.of_fluid(type(mechanisms.one(text.removeprefix(FLUID))))
    return code.of_policy(type(policies.one(text)))


def run(text: str, workload: Workload, options: Options, progress: bool = False) -> Schedule | FluidSchedule:
    """What comes of the workload."""
    if text.startswith(FLUID):
        if options.thrashing is not None:
            raise DataError(f"{text} never over-commits servers; leave out thrashing")
        mechanism, every = text.removeprefix(FLUID), options.every or EVERY
        return fluid(workload, mechanism, every=every, until=options.until, throw=False, progress=progress)
    return simulate(
        workload,
        text,
        until=options.until,
        impossible="report" if options.impossible == "report" else "raise",
        timeline=options.every,
        progress=progress,
    )
