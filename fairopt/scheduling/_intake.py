"""Validation of tables of tasks, servers, users and changes, and their conversion to integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import MOST_SERVERS, TRUTHS, copies, labels
from ..model._arrays import Array, Index, Mask, from_sizes

Whole = NDArray[np.int64]

#: Microseconds per second, the resolution of times.
SECOND = 1_000_000
#: Time of events that do not occur.
NEVER = int(np.iinfo(np.int64).max)
#: Largest total capacity of a resource, and largest demand of a task, in units: sums are then exact in floating point,
#: and decimal fractions of up to 12 digits are whole multiples of a unit.
_MOST = 2**43
#: Longest time in seconds, a thousand years, well within the range of microseconds.
LONGEST = 3.2e10

#: Columns of the table of tasks that are not resources.
_OF_TASKS = ("user", "job", "arrival", "duration", "tasks", "on", "after", "walltime")
#: Columns of the table of servers that are not resources.
_OF_SERVERS = ("server", "type", "count")
#: Largest number of servers and largest number of tasks, bounded by memory.
_MOST_OF = {"servers": MOST_SERVERS, "tasks": 10**8}


def arguments(
    tasks: pd.DataFrame, servers: pd.DataFrame, users: pd.DataFrame | None, changes: pd.DataFrame | None
) -> dict[str, Any]:
    """Arguments of `Workload` from the frames of `Workload.from_frames`."""
    _check("servers", servers)
    names, types, amounts, resources = _servers(servers)
    _check("tasks", tasks, (*_OF_TASKS, *resources))
    if users is not None:
        _check("users", users, ("user", "weight", "leaves"))
    if changes is not None:
        _check("changes", changes, ("time", "server", "up"))
    user, known = _users(tasks, users)
    demand = _amounts(tasks, resources, "tasks")
    _refuse(tasks, "tasks", ~(demand > 0).any(axis=1), "asks for nothing; give it some of a resource, or leave it out")
    unit = _units(amounts, demand, resources)
    whole = _in_units(demand, unit, tasks)
    arrival = _microseconds(_column(tasks, "tasks", "arrival", "seconds, 0 or more", _not_before(0), 0.0))
    duration = _microseconds(_column(tasks, "tasks", "duration", "seconds, a microsecond or more", _not_before(1)))
    count = _counts(tasks, "tasks")
    placement, eligible = _placements(tasks, names, types)
    job, jobs, job_user = _jobs(tasks, user)
    walltime = _microseconds(_column(tasks, "tasks", "walltime", "seconds, 0 or more", _not_before(0), 0.0))
    key = np.column_stack([user, arrival, job, placement, whole, walltime])
    order, first_row, group = _groups(key)
    repeated = np.repeat(order, count[order])
    sizes = np.bincount(group[order], count[order], minlength=len(first_row)).astype(np.int64)
    weight, leaves = _about_users(users, known)
    change_time, change_server, change_up = _changes(changes, names)
    return {
        "resources": tuple(resources), "servers": tuple(names), "users": tuple(known), "jobs": tuple(jobs),
        "unit": unit, "capacity": np.rint(amounts / unit).astype(np.int64), "weight": weight, "leaves": leaves,
        "job_user": job_user, "job": job[first_row], "arrival": arrival[first_row], "demand": whole[first_row],
        "placement": placement[first_row], "eligible": eligible, "first": from_sizes(sizes),
        "duration": duration[repeated], "change_time": change_time, "change_server": change_server,
        "change_up": change_up, "after": _after(tasks, job, jobs), "row": first_row,
        "walltime": walltime[first_row] if "walltime" in tasks else walltime[:0],
    }  # fmt: skip


def to_frames(workload: Any) -> dict[str, pd.DataFrame]:
    """Implement `Workload.to_frames`."""
    w = workload
    group = w.group_of_task
    users, jobs, servers = (np.array(names, dtype=object) for names in (w.users, w.jobs, w.servers))
    tasks = {"user": users[w.user[group]], "job": jobs[w.job[group]], "arrival": w.arrival[group] / SECOND,
             "duration": w.duration / SECOND} | _columns(w.demand[group] * w.unit, w.resources)  # fmt: skip
    if len(w.eligible) > 1:
        where = ["", *("|".join(servers[row]) for row in w.eligible[1:])]
        tasks["on"] = np.array(where, dtype=object)[w.placement[group]]
    if len(w.walltime):
        tasks["walltime"] = w.walltime[group] / SECOND
    if len(w.after):
        tasks["after"] = np.append(jobs, "")[w.after[w.job[group]]]
    left, departed = np.where(w.leaves == NEVER, np.inf, w.leaves / SECOND), servers[w.change_server]
    return {
        "tasks": pd.DataFrame(tasks),
        "servers": pd.DataFrame({"server": w.servers} | _columns(w.capacity * w.unit, w.resources)),
        "users": pd.DataFrame({"user": w.users, "weight": w.weight, "leaves": left}),
        "changes": pd.DataFrame({"time": w.change_time / SECOND, "server": departed, "up": w.change_up}),
    }


def _columns(table: NDArray[Any], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    return {name: table[:, k] for k, name in enumerate(names)}


def _servers(frame: pd.DataFrame) -> tuple[Sequence[str], list[str], Array, list[str]]:
    """Names, types and capacities of servers, and names of resources; a row stands for `count` servers."""
    if frame.empty:
        raise DataError("there is no server; give the table of servers at least one row")
    resources = [str(column) for column in frame.columns if column not in _OF_SERVERS]
    if not resources or any(name in _OF_TASKS for name in resources):
        raise DataError(f"columns of servers but {', '.join(_OF_SERVERS)} are resources, one at least, and are not "
                        f"called {', '.join(_OF_TASKS)}; these are {', '.join(map(repr, frame.columns))}")  # fmt: skip
    amounts = _amounts(frame, resources, "servers")
    count = _counts(frame, "count", "servers")
    given = _texts(frame["server"]).tolist() if "server" in frame else [f"server{k + 1}" for k in range(len(frame))]
    types = frame["type"].astype(str).tolist() if "type" in frame else [""] * len(frame)
    names = [one for name, many in zip(given, count.tolist(), strict=True) for one in copies(name, many)]
    if (amounts.sum(axis=0) <= 0).any():
        none = resources[int(np.argmin(amounts.sum(axis=0)))]
        raise DataError(f"no server has any {none!r}; leave the resource out")
    return labels(names, "server"), np.repeat(types, count).tolist(), np.repeat(amounts, count, axis=0), resources


def _users(tasks: pd.DataFrame, users: pd.DataFrame | None) -> tuple[Whole, Sequence[str]]:
    _needs(tasks, "tasks", "user")
    _refuse(tasks, "tasks", tasks["user"].isna(), "has no user; give it one")
    named = tasks["user"].astype(str)
    if users is None:
        codes, known = pd.factorize(named)
        return codes.astype(np.int64), [str(name) for name in known]
    _needs(users, "users", "user")
    known = labels(users["user"].astype(str), "user")
    codes = pd.Index(known).get_indexer(named)
    _refuse(tasks, "tasks", codes < 0, "is of user {}, who is not in the table of users; add one", named)
    return codes.astype(np.int64), known


def _about_users(users: pd.DataFrame | None, known: Sequence[str]) -> tuple[Array, Whole]:
    if users is None:
        return np.ones(len(known)), np.full(len(known), NEVER)
    weight = _column(users, "users", "weight", "a finite number > 0", lambda x: np.isfinite(x) & (x > 0), 1.0)
    when = _column(users, "users", "leaves", "seconds >= 0, or empty for never", lambda x: ~(x < 0), np.inf)
    stays = ~(when <= LONGEST)
    return weight, np.where(stays, NEVER, _microseconds(np.where(stays, 0.0, when)))


def _jobs(tasks: pd.DataFrame, user: Whole) -> tuple[Whole, list[str], Whole]:
    """Index of the job of every row, names of jobs, and index of the user of every job; a job has one user."""
    if "job" not in tasks:
        names = [f"job{k + 1}" for k in range(len(tasks))]
        return np.arange(len(tasks), dtype=np.int64), names, user
    _refuse(tasks, "tasks", tasks["job"].isna(), "has no job; give it one, or leave out the column")
    codes, found = pd.factorize(_texts(tasks["job"]))
    owner = np.empty(len(found), dtype=np.int64)
    owner[codes[::-1]] = user[::-1]
    _refuse(tasks, "tasks", owner[codes] != user, "is of user {}, and its job of another; rename it", tasks["user"])
    return codes.astype(np.int64), [str(name) for name in found], owner


def _after(tasks: pd.DataFrame, job: Whole, jobs: Sequence[str]) -> Whole:
    """Index of the predecessor of every job, (jobs,), or -1 for no predecessor; empty without a column `after`."""
    if "after" not in tasks:
        return np.zeros(0, dtype=np.int64)
    texts = _texts(tasks["after"])
    before = pd.Index(jobs).get_indexer(texts)
    _refuse(tasks, "tasks", (before < 0) & (texts != ""), "comes after {}, which is no job", texts)
    found = np.full(len(jobs), -1, dtype=np.int64)
    found[job] = before
    differs = "comes after another job than other tasks of its job; they must agree"
    _refuse(tasks, "tasks", found[job] != before, differs)
    back = np.append(found, -1)  # predecessors at distances 1, 2, 4, ..., until none are left unless there is a cycle
    for _ in range(len(jobs).bit_length()):
        back = back[back]
    _refuse(tasks, "tasks", back[job] >= 0, "comes after {}, and so after itself: break the circle", texts)
    return found


def _placements(tasks: pd.DataFrame, servers: Sequence[str], types: Sequence[str]) -> tuple[Whole, Mask]:
    """Index of the row of `eligible` for every row of tasks, and the mask `eligible`, (placements, servers).

    The column `on` of tasks lists servers or types of servers, separated by `|`; row 0 of `eligible` is all True.
    """
    anywhere = np.ones((1, len(servers)), dtype=bool)
    if "on" not in tasks:
        return np.zeros(len(tasks), dtype=np.int64), anywhere
    codes, found = pd.factorize(np.append("", _texts(tasks["on"])))
    places: dict[str, Any] = {name: np.array(types) == name for name in set(types) - {""}}
    places |= {name: k for k, name in enumerate(servers)}
    eligible = np.zeros((len(found), len(servers)), dtype=bool)
    eligible[0] = True
    for row, text in enumerate(found[1:], 1):
        for name in text.split("|"):
            if name not in places:
                what = f"may run on {name!r}, which is neither a server nor a type of one"
                _refuse(tasks, "tasks", codes[1:] == row, what)
            eligible[row, places[name]] = True
    return codes[1:].astype(np.int64), eligible


def _groups(key: Whole) -> tuple[Index, Index, Index]:
    """Group rows in the order of (user, arrival, input).

    Returns the indices of the rows in this order, of the first row of every group, and of the group of every row.
    """
    order = np.lexsort([key[:, 1], key[:, 0]])
    number = pd.DataFrame(key[order]).groupby([*range(key.shape[1])], sort=False).ngroup().to_numpy()
    group = np.empty(len(key), dtype=np.intp)
    group[order] = number
    return np.argsort(group, kind="stable"), order[np.unique(number, return_index=True)[1]], group


def _changes(frame: pd.DataFrame | None, servers: Sequence[str]) -> tuple[Whole, Whole, Mask]:
    if frame is None or frame.empty:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    _needs(frame, "changes", "server", "up")
    time = _column(frame, "changes", "time", "seconds >= 0", lambda x: (x >= 0) & (x <= LONGEST))
    server = pd.Index(servers).get_indexer(_texts(frame["server"]))
    _refuse(frame, "changes", server < 0, "is about a server that is not in the table of servers")
    truths = frame["up"].astype(str).str.lower().map(TRUTHS)
    _refuse(frame, "changes", truths.isna(), "has up {}; it must be True or False", frame["up"])
    up = truths.to_numpy(dtype=bool)
    order = np.argsort(time, kind="stable")
    before = pd.Series(up[order]).groupby(server[order]).shift()  # previous state of the server
    again = np.zeros(len(frame), dtype=bool)
    again[order] = before == up[order]
    _refuse(frame, "changes", again, "has up {}, as the change of its server before; leave the row out", frame["up"])
    return _microseconds(time[order]), server[order].astype(np.int64), up[order]


def _check(name: str, table: object, known: Sequence[str] = ()) -> None:
    """Raise `DataError` unless a table is a frame with unique columns, of the names `known` if these are given.

    Unknown columns would be ignored.
    """
    if not isinstance(table, pd.DataFrame):
        raise DataError(f"{name} is of type {type(table).__name__}; give a pandas DataFrame")
    if not table.columns.is_unique:
        raise DataError(f"{name} has the column {table.columns[table.columns.duplicated()][0]!r} twice; rename one")
    if known and (strange := [column for column in table.columns if column not in known]):
        raise DataError(f"{name} has the column {strange[0]!r}, which is none of {', '.join(known)}; "
                        "rename it, or leave it out")  # fmt: skip


def _texts(column: pd.Series[Any]) -> pd.Series[str]:
    """Column of names, '' where missing. Floats (integers, if cells are missing) are converted without ".0"."""
    texts = column.astype(str)
    if column.dtype.kind == "f":
        texts = texts.str.removesuffix(".0")
    return texts.where(column.notna(), "")


def _cell(column: pd.Series[Any], row: int) -> str:
    """Text of a value without NumPy types: 3, not `np.int64(3)`."""
    value = column.iloc[row]
    return repr(value.item() if isinstance(value, np.generic) else value)


def _refuse(frame: pd.DataFrame, table: str, wrong: Any, what: str, shown: pd.Series[Any] | None = None) -> None:
    """Raise `DataError` for the first invalid row, with position and name; `{}` in `what` is its value in `shown`."""
    for row in np.flatnonzero(wrong)[:1].tolist():
        named = [f" ({column} {_cell(frame[column], row)})" for column in ("job", "server", "user") if column in frame]
        said = what if shown is None else what.replace("{}", _cell(shown, row))
        raise DataError(f"row {row} of {table}{''.join(named[:1])} {said}", (table, row))


def _needs(frame: pd.DataFrame, table: str, *columns: str) -> None:
    for column in columns:
        if column not in frame:
            raise DataError(f"{table} has no column {column!r}; it has {', '.join(map(repr, frame.columns))}")


def _column(
    frame: pd.DataFrame,
    table: str,
    column: str,
    must: str,
    good: Callable[[Array], Mask],
    default: float | None = None,
) -> Array:
    """Numeric column with values that are `good`, described by `must`; the default if the column is missing."""
    if column not in frame and default is not None:
        return np.full(len(frame), default)
    _needs(frame, table, column)
    found = np.asarray(pd.to_numeric(frame[column], errors="coerce"), dtype=float)  # NaN for other values
    _refuse(frame, table, ~good(found), f"has {column} {{}}; it must be {must}", frame[column])
    return found


def _amounts(frame: pd.DataFrame, resources: Sequence[str], table: str) -> Array:
    """Amounts of resources, (rows, resources)."""
    each = [_column(frame, table, name, "a number >= 0", lambda x: np.isfinite(x) & (x >= 0)) for name in resources]
    return np.stack(each, axis=1)


def _counts(frame: pd.DataFrame, column: str, table: str = "tasks") -> Whole:
    values = _column(
        frame, table, column, "a whole number >= 1", lambda x: (x >= 1) & (x == np.rint(x)) & (x <= 1e9), 1.0
    )
    if values.sum() > (most := _MOST_OF[table]):
        raise DataError(f"{table} stand for {values.sum():.3g} in all; at most {most:,} can be simulated")
    return np.asarray(values, dtype=np.int64)


def _not_before(least: int) -> Callable[[Array], Mask]:
    """Condition that times are at least `least` microseconds after rounding, and at most `LONGEST`."""
    return lambda x: (np.rint(np.clip(x, -1, 1) * SECOND) >= least) & (x <= LONGEST)


def _microseconds(seconds: Array) -> Whole:
    return np.rint(seconds * SECOND).astype(np.int64)


def _units(amounts: Array, demand: Array, resources: list[str]) -> Array:
    """Smallest powers of ten, (resources,), in which total capacities and single demands are at most `_MOST`."""
    most = np.maximum(amounts.sum(axis=0), demand.max(axis=0, initial=0.0))
    digits = np.floor(np.log10(_MOST / most)).clip(-300, 300)
    return np.array([float(f"1e{-int(d)}") for d in digits])


def _in_units(demand: Array, unit: Array, frame: pd.DataFrame) -> Whole:
    """Demands in units, rounded down, so that tasks that fit in real numbers (six tasks of 1/6) also fit in units.

    A positive demand below one unit is a `DataError`.
    """
    whole = np.floor(demand / unit + 0.01).astype(np.int64)
    none = ((demand > 0) & (whole == 0)).any(axis=1)
    less = "asks for too little of a resource to count it beside what servers have: leave it out or write 0"
    _refuse(frame, "tasks", none, less)
    return whole
