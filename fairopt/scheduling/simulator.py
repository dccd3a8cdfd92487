"""`simulate`: discrete-event simulation of a workload under a policy."""

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

#: Number of tasks that the interpreted loop starts in one to two seconds, the time in which the compiled loop is loaded
#: from a cache; compilation takes ten seconds.
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
    r"""Simulate the schedule of a workload of indivisible tasks under a policy.

    At every instant t the policy starts waiting tasks one by one, such that on every server i

    .. math:: \sum_{k \text{ running on i at t}} d_{kr} \le c_{ir} \quad \text{for every resource r}

    where d and c are demands and capacities in the amounts of the policy (`Policy.room`). Completions at an instant
    are processed first, then failures and recoveries of servers and departures of users, then arrivals, and then
    decisions. Times and amounts are integers and ties are ordered, so that simulations are reproducible exactly.

    Parameters
    ----------
    workload : Workload
    policy : str or Policy
        A policy, or its name, if necessary with parameters, such as `best-fit-drfh` or `slots(n=14)`.
    until : float, optional
        End of the simulation in seconds. Default: when no event remains.
    thrashing : Thrashing, optional
        Slowdown of tasks on over-committed servers, for policies that over-commit servers (`slots(whole=False)`,
        `cpu-fair`). Default: none.
    impossible : str
        Treatment of tasks that fit no eligible server, even if it is empty: "raise" an error, or "report" them with the
        state "impossible".
    progress : bool
        Show a progress bar of completed tasks. Ctrl-C ends the simulation; the schedule is then `interrupted`.
    engine : str
        "compiled" supports policies that consist of rules, "plain" all policies; both make the same decisions. Default:
        plain for the first tasks in a process (`PLAINLY`), then compiled if possible; compiled from the start if a
        compiled loop is loaded, or can be loaded from a cache for a workload of more tasks.
    timeline : float or "events", optional
        Sampling interval in seconds of `Schedule.timeline` and `Schedule.shares`, or "events" for all instants with
        events. Default: 500 samples. `Schedule.at` evaluates other times.

    Returns
    -------
    Schedule

    Raises
    ------
    DataError
        A task can never start (unless `impossible="report"`), the policy is unknown, or an option is invalid.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 5.0], "tasks": [2, 2], "cpu": [1, 1]})
    >>> workload = fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [2]}))
    >>> fo.scheduling.simulate(workload).jobs["end"].tolist()
    [20.0, 10.0]
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
    return Schedule(workload, str(chosen), runs, possible, timeline, used, watch.cpu)


def _run(
    setup: Setup, engine: Engine, until: int, progress: engines.Progress, thrashing: Thrashing | None
) -> tuple[engines.Runs, str]:
    known = engines.knows(setup.policy)
    if engine == "compiled" and not known:
        raise DataError(f"{setup.policy} has methods that the compiled engine does not support; leave out engine")
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
    count = int(w.first[group + 1] - w.first[group])
    lack = f"room for {count} of them at once" if setup.policy.gangs else f"server{where} with as much, even empty"
    place = f"{w.file}:{w.row[group] + FIRST_LINE}: " if w.file else ""
    raise DataError(
        f"{place}tasks of job {w.jobs[w.job[group]]!r} (user {w.users[w.user[group]]!r}) ask for {demand}; "
        f"{setup.policy} finds no {lack}{more}. "
        "Leave them out, or report them: impossible='report', or --report-impossible of fairopt simulate",
        ("jobs", w.jobs[w.job[group]]),
    )
