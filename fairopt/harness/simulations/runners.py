"""What a text of a grid does with a workload: a policy, every user by itself under one, or a fluid mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import mechanisms
from ..._libraries import pd
from ...errors import DataError
from ...scheduling import policies
from ...scheduling.dedicated_servers import dedicated
from ...scheduling.fluid import fluid
from ...scheduling.fluid_schedule import FluidSchedule
from ...scheduling.schedule import Schedule
from ...scheduling.simulator import simulate
from ...scheduling.thrashing import Thrashing
from .. import code
from .._texts import text_of

if TYPE_CHECKING:
    from ...scheduling.workload import Workload

FLUID, DEDICATED = "fluid:", "dedicated:"
#: Seconds from solve to solve of fluid allocations: PF, section 6.
EVERY = 300.0


@dataclass(frozen=True)
class Alone:
    """Every user by itself on servers of its own: simulations by user."""

    schedules: dict[str, Schedule]

    @property
    def interrupted(self) -> bool:
        """Was one of them stopped by Ctrl-C?"""
        return any(one.interrupted for one in self.schedules.values())

    @property
    def jobs(self) -> pd.DataFrame:
        """Those of all users, as `Schedule.jobs`."""
        return pd.concat([one.jobs for one in self.schedules.values()])

    @property
    def users(self) -> pd.DataFrame:
        """All of them, as `Schedule.users`; dominant shares are those of their own servers."""
        return pd.concat([one.users for one in self.schedules.values()])

    def utilization(self) -> pd.Series:
        """The mean used part of every resource of all these servers."""
        each = [(one.utilization(), one.workload.total * one.end) for one in self.schedules.values()]
        total = sum(weight for _, weight in each)
        return sum(use.fillna(0.0) * weight for use, weight in each) / total


#: What comes of a workload.
Ran = Schedule | FluidSchedule | Alone


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
        policies.one(text.removeprefix(DEDICATED))


def plain(text: str) -> str:
    """One text for all that mean the same."""
    if text.startswith(FLUID):
        return FLUID + text_of(mechanisms.one(text.removeprefix(FLUID)))
    alone = DEDICATED if text.startswith(DEDICATED) else ""
    return alone + str(policies.one(text.removeprefix(DEDICATED)))


def name(text: str) -> str:
    """The name without parameters."""
    return plain(text).partition("(")[0]


def digest(text: str) -> str:
    """What computes an answer, as a digest (`code`)."""
    if text.startswith(FLUID):
        return code.of_fluid(type(mechanisms.one(text.removeprefix(FLUID))))
    return code.of_policy(type(policies.one(text.removeprefix(DEDICATED))))


def run(text: str, workload: Workload, options: Options, progress: bool = False) -> Ran:
    """What comes of the workload."""
    if text.startswith(FLUID):
        if options.thrashing is not None:
            raise DataError(f"{text} never over-commits servers; leave out thrashing")
        mechanism, every = text.removeprefix(FLUID), options.every or EVERY
        return fluid(workload, mechanism, every=every, until=options.until, throw=False, progress=progress)
    if text.startswith(DEDICATED):
        return Alone(dedicated(workload, text.removeprefix(DEDICATED), until=options.until))
    return simulate(
        workload,
        text,
        until=options.until,
        impossible="report" if options.impossible == "report" else "raise",
        thrashing=None if options.thrashing is None else Thrashing(options.thrashing),
        timeline=options.every,
        progress=progress,
    )
