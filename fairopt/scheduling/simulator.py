"""`simulate`: a workload under a policy, from the first arrival on."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..base import clock
from ..base import progress as _progress
from ..base.errors import DataError
from ..model import _validate
from . import engine as engines
from . import policies
from .policies import Policy
from .schedule import Schedule
from .setup import Setup, Thrashing
from .workload import FIRST_LINE, NEVER, SECOND, Workload, one_of

#: So many tasks start in the plain loop in the time (a second or two) that it takes to load the compiled one; to
#: compile it takes ten.
PLAINLY = 12_000

Engine = Literal["default", "plain", "compiled"]
Impossible = Literal["raise", "report"]


def simulate(
    workload: Workload,
    policy: str | Policy = "best-fit-drfh",
    *,
    until: float | None = None,
    thrashing: Thrashing | None = None,
    impossible: Impossible = "raise",
    progress: bool = False,
    engine: Engine = "default",
    timeline: float | Literal["events"] | None = None,
) -> Schedule:
    """Run whole tasks on servers over time, as a policy decides.

    At one instant all ends come first, then servers that go and come back and users that leave, then arrivals, then one
    round of decisions. Times and amounts are whole numbers, ties have an order: the same input gives the same events.

    Parameters
    ----------
    policy
        Its name with parameters, `best-fit-drfh`, `slots(n=14)`, or an instance, also of a class of yours.
    until
        Seconds; what happens later is left out. Default: until nothing is left to happen.
    thrashing
        How much slower tasks run on over-committed servers, for policies that over-commit (`slots(whole=False)`,
        `cpu-fair`). Default: they run at full speed all the same.
    impossible
        Tasks that fit no server where they may run, even an empty one: "raise" refuses them, "report" leaves them out,
        with the state "impossible".
    progress
        Show a bar of tasks that have ended. Ctrl-C ends the simulation with what has happened until then; the schedule
        says so (`interrupted`).
    engine
        "compiled" takes policies that are written as rules, "plain" any; both make the same decisions. Default: the
        plain one for the first tasks of a process that policies of the same rules start (`PLAINLY`), then the compiled
        one where it can, at once where it is kept from before and there are as many tasks.
    timeline
        When `Schedule.timeline` and `Schedule.shares` look: seconds from one sample to the next, or "events" for every
        instant. Default: 500 samples. Any other times can be asked for later (`Schedule.at`).

    Raises
    ------
    DataError
        A task that can never start, a policy that is not there, `until` before 0.
    """
    if not isinstance(workload, Workload):
        raise DataError(f"simulate takes a Workload; got a {type(workload).__name__} (Workload.from_frames makes one)")
    chosen = policies.one(policy)
    one_of(engine, "engine", Engine)
    one_of(impossible, "impossible", Impossible)
    if timeline not in (None, "events"):
        _validate.number(timeline, "timeline", "seconds > 0, or 'events'", lambda every: 0 < every < math.inf)
    if not isinstance(thrashing, Thrashing | None):
        raise DataError(f"thrashing is {thrashing!r}; give a factor as Thrashing(5)")
    stop = NEVER
    if until is not None:
        end = _validate.number(until, "until", "seconds >= 0", lambda end: 0 <= end < math.inf)
        stop = round(end * SECOND)
    setup = Setup(workload, chosen)
    if impossible == "raise":
        _all_possible(setup)
    watch = clock.Watch()
    with _progress.tqdm(total=workload.tasks, desc=str(chosen), unit="task", disable=not progress) as bar:
        runs, used = _run(setup, engine, stop, lambda ended: bar.update(ended - bar.n), thrashing)
    possible = np.empty(workload.groups, dtype=bool)
    possible[setup.order] = setup.possible
    return Schedule(workload, str(chosen), runs, possible, timeline, used, watch.seconds)


def _run(
    setup: Setup, engine: Engine, until: int, progress: engines.Progress, thrashing: Thrashing | None
) -> tuple[engines.Runs, str]:
    known = engines.knows(setup.policy)
    if engine == "compiled" and not known:
        raise DataError(f"{setup.policy} has methods that the compiled engine does not know; leave out engine")
    if engine != "default" or not known:
        return engines.run(setup, until, progress, thrashing, engine == "compiled"), engine.replace("default", "plain")
    loop = engines.compiled_by(setup)
    left = PLAINLY - loop.spent
    if loop.signatures or (setup.workload.tasks > left and loop.kept):
        left = 0
    runs = engines.run(setup, until, progress, thrashing, plainly=left)
    loop.spent += len(runs.task)
    return runs, "compiled" if loop.signatures else "plain"


def _all_possible(setup: Setup) -> None:
    w, impossible = setup.workload, np.sort(setup.order[~setup.possible])
    if not len(impossible):
        return
    group = int(impossible[0])
    demand = ", ".join(f"{a * u:g} {name}" for a, u, name in zip(w.demand[group], w.unit, w.resources, strict=True))
    more = f", and {len(impossible) - 1} groups of tasks more" if len(impossible) > 1 else ""
    where = "" if w.placement[group] == 0 else " where they may run"
    place = f"{w.file}:{w.row[group] + FIRST_LINE}: " if w.file else ""
    raise DataError(
        f"{place}tasks of job {w.jobs[w.job[group]]!r} (user {w.users[w.user[group]]!r}) ask for {demand}; "
        f"{setup.policy} finds no server{where} with as much, even empty{more}. "
        "Leave them out, or report them: impossible='report', or --report-impossible of fairopt simulate",
        ("jobs", w.jobs[w.job[group]]),
    )
