"""Google's 2011 cluster trace (clusterdata-2011-2): machines and the users of one Borg cell.

Source: C. Reiss, J. Wilkes, J. Hellerstein, "Google cluster-usage traces: format + schema", 2011.
Layout: `machine_events/part-*.csv[.gz]` and `task_events/part-*.csv[.gz]` side by side, without headers.
Times are given here in seconds of the trace, which starts at 600; 0 stands for everything earlier.

Missing data are part of the trace, and do not make a row malformed: machine rows may lack cpu and memory, task rows may
lack their requests, and a request may be 0. A row with another number of fields is malformed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..model._arrays import Array, Mask
from ..model.cluster import Cluster
from ..scheduling.workload import one_of
from . import _csv
from ._csv import Column
from ._draw import Amount, Probability, choose, eligible, finite, not_negative, placed
from ._snapshot import Snapshot
from .sources import reader

RESOURCES = ("cpu", "memory")
#: Kinds of machines by which users are placed.
Kinds = Literal["class", "machine"]

_LAYOUT = "a folder with the sub-folders machine_events and task_events of part-*.csv or part-*.csv.gz files"
_END = 2.0**63  # the trace writes 2^63-1 for "after the end"
_MACHINES = _csv.Format(
    fields=("time", "machine", "event", "platform", "cpu", "memory"),
    columns=(
        Column("time", "int", most=_END),
        Column("machine", "int"),
        Column("event", "int", most=2),
        Column("cpu", optional=True),
        Column("memory", optional=True),
    ),
)
_TASKS = _csv.Format(
    fields=(
        *("time", "missing_info", "job", "task", "machine", "event", "user"),
        *("scheduling_class", "priority", "cpu", "memory", "disk", "different_machine"),
    ),
    columns=(
        Column("time", "int", most=_END),
        Column("job", "int"),
        Column("task", "int"),
        Column("event", "int", most=8),
        Column("user", "text"),
        Column("cpu", optional=True),
        Column("memory", optional=True),
    ),
)
_REMOVE = 1
SUBMIT = 0
SCHEDULE = 1
_RUNNING = (SCHEDULE, 8)  # 8 is UPDATE_RUNNING
ENDED = (2, 3, 4, 5, 6)  # EVICT, FAIL, FINISH, KILL, LOST: the task is absent until it is submitted again
_TASK = ["job", "task"]


def machines(
    directory: str | Path,
    at: float | None = 0.0,
    skip_malformed: bool = False,
    report: Counter[str] | None = None,
) -> pd.DataFrame:
    """Machines of the cell: columns `cpu` and `memory` (largest machine = 1), index `machine` (id), ascending.

    Parameters
    ----------
    directory, skip_malformed
        As in `cluster`.
    at : seconds, or None
        Instant at which machines are present, after every ADD, REMOVE and UPDATE up to it (12,477 machines at 0).
        None: every machine of the trace, with its last known capacity. These are the 12,583 machines of the published
        table, class by class (with first in place of last capacities, the classes differ slightly). A machine whose
        capacity is not known at that instant is left out; a machine that returns without a capacity keeps its last
        known capacity.
    report
        Counter to which numbers of rows and machines are added.

    Raises
    ------
    DataError
        There is no such trace, or a row is malformed (unless `skip_malformed`).
    """
    report = Counter() if report is None else report
    folder = _find(directory) / "machine_events"
    events = _events(folder, _MACHINES, math.inf if at is None else at, skip_malformed, report)
    known = events.dropna(subset=list(RESOURCES))
    capacity = known.drop_duplicates("machine", keep="last").set_index("machine")
    state = events.drop_duplicates("machine", keep="last")
    here = state["machine"] if at is None else state.loc[state["event"] != _REMOVE, "machine"]
    result = capacity.loc[capacity.index.isin(here), list(RESOURCES)].sort_index()
    report["machines found"] = len(here)
    report["machines left out, capacity unknown"] = len(here) - len(result)
    return result


def tasks(
    directory: str | Path,
    at: float = 0.0,
    window: float = 0.0,
    skip_malformed: bool = False,
    report: Counter[str] | None = None,
) -> pd.DataFrame:
    """Tasks that were pending or running at some time in [at, at + window] (seconds), one row per (job, task).

    Columns are `job, task, user, cpu, memory`. Requests are those of the first SUBMIT of the task, in parts of the
    largest machine, and NaN if they are missing.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), `at` is after the last event, or `window`
        is negative.
    """
    finite(at, "at")
    not_negative(window, "window")
    report = Counter() if report is None else report
    events = _events(_find(directory) / "task_events", _TASKS, at + window, skip_malformed, report, at)
    there = ~events["event"].isin(ENDED)
    before = events["time"] <= at * 1e6
    last = events[before].drop_duplicates(_TASK, keep="last")
    alive = pd.concat([last.loc[there[last.index], _TASK], events.loc[~before & there, _TASK]]).drop_duplicates()
    submitted = events[events["event"] == SUBMIT].drop_duplicates(_TASK)[[*_TASK, "user", *RESOURCES]]
    result = alive.merge(submitted, on=_TASK)
    report["tasks found"] = len(alive)
    report["tasks left out, never submitted"] = len(alive) - len(result)
    return result


def running(directory: str | Path, at: float = 0.0, skip_malformed: bool = False) -> pd.Series:
    """Number of tasks of every user on machines at `at` seconds: a series by user, named as in `cluster`.

    A task is on a machine if its last event up to `at` is SCHEDULE or UPDATE_RUNNING. Users without such tasks are left
    out.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), or `at` is after the last event.
    """
    events = _events(_find(directory) / "task_events", _TASKS, at, skip_malformed, Counter(), at)
    last = events.drop_duplicates(_TASK, keep="last")
    count = last[last["event"].isin(_RUNNING)].groupby("user", sort=True).size()
    return pd.Series(count.to_numpy(), pd.Index(named(count.index), name="user"), name="tasks")


@reader(
    "google2011",
    "Google's cluster trace of 2011: users and machines (google2011[:DIR])",
    folder="google-2011",
    stand_in="google-like",
    alias="google",
)
def cluster(
    directory: str | Path,
    at: Annotated[float, finite] = 0.0,
    window: Annotated[float, not_negative] = 0.0,
    users: Amount = None,
    servers: Amount = None,
    every_machine: bool = False,
    max_tasks: bool = False,
    density: Probability = 1.0,
    by: Kinds = "class",
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Snapshot:
    """Cluster of Google's users and machines at an instant.

    A user is included if it has tasks pending or running in [at, at + window]; its demand is the mean (cpu, memory)
    request of these tasks, each (job, task) counted once. Users whose tasks request nothing, or whose requests
    are all missing, are left out and listed in the snapshot. Users are named by the first eight characters of
    their hash if these distinguish all users.

    Parameters
    ----------
    directory : str or Path
        Folder of the trace, one of its two sub-folders, or a folder above it.
    at, window : seconds
        `at` is the instant at which machines are present, `window` the length of the interval in which tasks count.
    users, servers : int, float or None
        Numbers to draw with `rng`, each as a number, a fraction of all, or None for all.
    every_machine : bool
        Use all 12,583 machines of the published table in place of the machines present at `at`.
    max_tasks : bool
        Limit each user to the number of its tasks. Default: no limit.
    density : float
        Probability in (0, 1] that a user may use a kind of machines; each may use at least one kind.
    by : "class" or "machine"
        Kinds of machines in placement constraints: machines of equal capacities, or single machines.
    rng : Generator, optional
        Random generator, for draws of users, servers or placement.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), no user or machine is there at the
        instant, or `rng` is missing.
    """
    folder = _find(directory)
    report: Counter[str] = Counter()
    when = None if every_machine else at
    present = _csv.once(
        "machines present", lambda counts: machines(folder, when, skip_malformed, counts),
        _csv.table_files(folder / "machine_events"), (when, skip_malformed), report,
    )  # fmt: skip
    active = _csv.once(
        "active users", lambda counts: _active(tasks(folder, at, window, skip_malformed, counts)),
        _csv.table_files(folder / "task_events"), (at, window, skip_malformed), report,
    )  # fmt: skip
    demand, count = active[list(RESOURCES)], active["tasks"]
    report["users found"] = len(demand)
    usable = (demand.fillna(0) > 0).any(axis=1)
    left_out = {
        str(user): "no request of its tasks is known" if demand.loc[user].isna().all() else "its tasks request nothing"
        for user in demand.index[~usable]
    }
    report["users left out"] = len(left_out)
    demand, count = demand[usable].fillna(0), count[usable]
    if demand.empty or present.empty:
        found = f"{len(demand)} users and {len(present)} machines"
        raise DataError(f"{folder} has {found} at {at:g} s; choose another instant")
    chosen = choose(len(demand), users, rng, "users")
    hosts = choose(len(present), servers, rng, "servers")
    names = named(demand.index)
    result = Cluster(
        present.to_numpy()[hosts],
        demand.to_numpy()[chosen],
        eligible=placement(present.to_numpy()[hosts], len(chosen), density, by, rng),
        max_tasks=count.to_numpy(dtype=float)[chosen] if max_tasks else None,
        resources=RESOURCES,
        users=[names[n] for n in chosen],
        servers=[f"machine{machine}" for machine in present.index[hosts]],
    )
    then = f"at {at:g} s" if window == 0 else f"from {at:g} to {at + window:g} s"
    source = (
        f"Google 2011 ({folder.absolute().name}): {len(chosen)} of {len(demand)} users with tasks {then}, "
        f"mean requests; {len(hosts)} of {len(present)} machines "
        f"{'ever seen' if every_machine else f'present at {at:g} s'}{placed(density, by)}"
    )
    return Snapshot(result, source, dict(report), left_out)


def _active(table: pd.DataFrame) -> pd.DataFrame:
    """Mean requests and number of tasks of each user, from a table of tasks."""
    groups = table.groupby("user", sort=True)
    return groups[list(RESOURCES)].mean().assign(tasks=groups.size())


def placement(capacity: Array, users: int, density: float, by: Kinds, rng: np.random.Generator | None) -> Mask | None:
    """Draw the machines that each user may use, by kind, (users, machines); None if each may use all."""
    same = one_of(by, "by", Kinds) == "class"
    return eligible([tuple(row) for row in capacity.tolist()] if same else range(len(capacity)), users, density, rng)


def events(directory: str | Path, skip_malformed: bool = False) -> pd.DataFrame:
    """All task events by time: `time` [us], `job`, `task`, `event`, `user`, `cpu`, `memory` (largest machine = 1).

    Raises
    ------
    DataError
        There is no such trace, or a row is malformed (unless `skip_malformed`).
    """
    return _events(_find(directory) / "task_events", _TASKS, math.inf, skip_malformed, Counter())


def named(users: Iterable[object]) -> list[str]:
    """Short names of users: the first eight characters of every hash if they are distinct, otherwise the hashes."""
    hashes = [str(user) for user in users]
    names = [user[:8] for user in hashes]
    return names if len(set(names)) == len(names) else hashes


def _find(directory: str | Path) -> Path:
    parts = ("machine_events", "task_events")

    def holds(folder: Path) -> bool:
        return all(_csv.table_files(folder / name) for name in parts)

    return _csv.locate(directory, "google-2011", holds, _LAYOUT, parts)


def _events(
    folder: Path, layout: _csv.Format, until: float, skip: bool, report: Counter[str], at: float = -math.inf
) -> pd.DataFrame:
    """Read the events of all parts of a table in order of time, up to `until` seconds; later parts are not opened.

    If the last event is before `at`, a `DataError` is raised.
    """

    def read(report: Counter[str]) -> pd.DataFrame:
        frames = []
        for path in files:
            table = _csv.read(path, layout, skip, report, f"{folder.name} ")
            frames.append(table[table["time"] <= until * 1e6])
            if table["time"].iloc[-1] > until * 1e6:
                break
        else:
            if (last := max(table["time"].max() for table in frames) / 1e6) < at:
                raise DataError(
                    f"at is {at:g} s, and {folder} has events from 0 to {last:.0f} s; choose an instant there"
                )
        events = pd.concat(frames, ignore_index=True)
        return events if events["time"].is_monotonic_increasing else events.sort_values("time", kind="stable")

    files = _csv.table_files(folder)
    return _csv.once(folder.name, read, files, (until, at, skip), report)
