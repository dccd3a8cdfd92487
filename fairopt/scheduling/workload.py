"""`Workload`: jobs of indivisible tasks that arrive over time, their users, and the servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import MOST_SERVERS as MOST_SERVERS
from ..base.names import short
from ..model import _validate
from ..model._arrays import Array, Frozen, Index, Mask, frozen
from ..model.cluster import Cluster
from ._intake import LONGEST, arguments, to_frames
from ._intake import NEVER as NEVER
from ._intake import SECOND as SECOND
from ._intake import Whole as Whole

By = Literal["job", "user"]

#: Line of a file that has the first row of its table, after the header.
FIRST_LINE = 2


@dataclass(frozen=True, eq=False, repr=False)
class Workload(Frozen):
    """Users, jobs, tasks and servers as integers, so that simulations are exact and reproducible.

    Times are int64 microseconds, amounts of a resource int64 multiples of its `unit`. A *group* consists of tasks of
    one job with equal arrival, demand and eligible servers; groups are in the order of (user, arrival, input), and
    tasks in the order of groups. Workloads are constructed by `from_frames` or `fairopt.open_workload`.

    Parameters
    ----------
    resources, servers, users, jobs : tuple of str
        Names.
    unit : (resources,)
        Amount of one unit.
    capacity : (servers, resources)
        Capacities in units.
    weight : (users,)
        Positive weights.
    leaves : (users,)
        Departure time, at which all tasks of the user are removed, or `NEVER`.
    job_user : (jobs,)
        Index of the user of every job.
    after : (jobs,)
        Index of the job that must be completed before the tasks of a job arrive, or -1; empty if no job has a
        predecessor.
    job, arrival : (groups,)
        Index of the job of every group, and the arrival time of the group.
    demand : (groups, resources)
        Demand of one task in units.
    placement : (groups,)
        Index of the row of `eligible` that lists the servers of a group.
    eligible : (placements, servers) of bool
        Servers on which a group may run; row 0 is all True.
    first : (groups + 1,)
        Index of the first task of every group; the last entry is the number of tasks.
    duration : (tasks,)
        Positive durations.
    change_time, change_server, change_up : (changes,)
        Failures (False) and recoveries (True) of servers by time; a server whose first change is a recovery is
        unavailable before.
    source : str
        Origin of the data.
    report : dict
        Counts of records found, omitted and assumed, by name.
    walltime : (groups,)
        Longest time that tasks of a group may last, for backfilling; 0 if none is stated; empty if none is stated for
        any group.
    row : (groups,)
        Index of the first row of each group in the table of tasks; empty without a table.
    file : str
        File of the table of tasks, or ''.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 5.0], "tasks": [2, 2], "cpu": [1, 1]})
    >>> fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [2]}))
    Workload(2 users, 2 jobs, 4 tasks, 1 servers, cpu)
    """

    resources: tuple[str, ...]
    servers: tuple[str, ...]
    users: tuple[str, ...]
    jobs: tuple[str, ...]
    unit: Array
    capacity: Whole
    weight: Array
    leaves: Whole
    job_user: Whole
    job: Whole
    arrival: Whole
    demand: Whole
    placement: Whole
    eligible: Mask
    first: Whole
    duration: Whole
    change_time: Whole
    change_server: Whole
    change_up: Mask
    source: str = ""
    report: dict[str, int | float | str] = field(default_factory=dict)
    after: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    walltime: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    row: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    file: str = ""

    @classmethod
    def from_frames(
        cls,
        tasks: pd.DataFrame,
        servers: pd.DataFrame,
        users: pd.DataFrame | None = None,
        changes: pd.DataFrame | None = None,
        *,
        source: str = "",
        report: dict[str, int | float | str] | None = None,
    ) -> Workload:
        """Construct a workload from frames; times in seconds, amounts in the same units for tasks and servers.

        Parameters
        ----------
        tasks : DataFrame
            A row per task, or per set of equal tasks: `user`, `duration`, a column per resource; optional `job`
            (default: a job for every row), `arrival` (0), `tasks` (number, 1), `on` (eligible servers or server types,
            separated by `|`; '' for all), `after` (a preceding job; '' for none), on whose completion the tasks arrive,
            or at `arrival` if that is later, and `walltime` (the longest time that the tasks may last, for the policy
            `easy`; 0 for none).
        servers : DataFrame
            A row per server, or per set of equal servers: a column per resource; optional `server` (name), `type`,
            `count`. All other columns are resources.
        users : DataFrame, optional
            `user`; optional `weight` (1) and `leaves`, the departure time (never).
        changes : DataFrame, optional
            `time` [s], `server`, `up`: failures (False) and recoveries (True) of servers.
        source, report
            Origin of the data, and counts of records, as in `Workload`.

        Raises
        ------
        DataError
            A row is invalid (negative or zero demand, missing duration, unknown server, a second failure without a
            recovery between, an amount below the resolution), or a column is unknown. The message names row and remedy.
        """
        return cls(**arguments(tasks, servers, users, changes), source=source, report=dict(report or {}))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of users, servers and resources."""
        return len(self.users), len(self.servers), len(self.resources)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.duration)

    @property
    def groups(self) -> int:
        """Number of groups of equal tasks."""
        return len(self.job)

    @cached_property
    def user(self) -> Whole:
        """Index of the user of every group, (groups,)."""
        return frozen(self.job_user[self.job])

    @cached_property
    def group_of_task(self) -> Whole:
        """Index of the group of every task, (tasks,)."""
        return frozen(np.repeat(np.arange(self.groups, dtype=np.int64), np.diff(self.first)))

    @cached_property
    def lasts(self) -> Whole:
        """Longest time that tasks of a group may last, (groups,): `walltime`, or, if it is 0, the longest duration."""
        longest = np.maximum.reduceat(self.duration, self.first[:-1]) if self.groups else self.duration
        return frozen(np.where(self.walltime > 0, self.walltime, longest) if len(self.walltime) else longest)

    @cached_property
    def there(self) -> Mask:
        """Mask (servers,) of initially available servers: all except servers whose first change is a recovery."""
        found = np.ones(len(self.servers), dtype=bool)
        found[self.change_server[::-1]] = ~self.change_up[::-1]
        return frozen(found)

    @cached_property
    def total(self) -> Whole:
        """Total capacity of all servers, (resources,), in units."""
        return frozen(self.capacity.sum(axis=0))

    @cached_property
    def fits(self) -> Mask:
        """Mask (groups,) of groups whose tasks fit an eligible empty server."""
        return frozen(fitting(self.capacity, self.demand, self.placement, self.eligible))

    @cached_property
    def span(self) -> float:
        """Time from the first arrival to the last, in seconds."""
        return float(self.arrival.max() - self.arrival.min()) / SECOND if self.groups else 0.0

    def work(self, until: float | None = None) -> pd.Series:
        """Work of all tasks by resource, amount times duration over total capacity, in seconds.

        With `until`, in seconds from the first arrival, the work that would be done by then if tasks started on
        arrival.

        Raises
        ------
        DataError
            `until` is not a number from 0 to a thousand years.
        """
        lasts = self.duration
        if until is not None and self.groups:
            _validate.number(until, "until", "seconds from 0 to a thousand years", lambda end: 0 <= end <= LONGEST)
            end = int(self.arrival.min()) + round(until * SECOND)
            lasts = np.clip(end - self.arrival[self.group_of_task], 0, lasts)
        seconds = np.bincount(self.group_of_task, lasts / SECOND, minlength=self.groups)
        need = (self.demand * seconds[:, None]).sum(axis=0)
        return pd.Series(need / self.total, index=pd.Index(self.resources, name="resource"), name="seconds")

    def load(self, until: float | None = None) -> float:
        """Offered load of the scarcest resource: `work(until)` divided by `until`, dimensionless.

        `until` is in seconds from the first arrival; default: the time of the last arrival.

        Raises
        ------
        DataError
            All tasks arrive at once, so that the interval is empty, or `until` is invalid, as in `work`.
        """
        end = self.span if until is None else until
        work = self.work(end)
        if end <= 0:
            raise DataError("all tasks arrive at once, so there is no load; give `until`, seconds from then")
        return float(work.max() / end)

    def cluster(self) -> Cluster:
        """Static cluster of the workload; a user has the mean demand of its tasks, and their number as its task limit.

        A user is eligible on every server on which one of its tasks may run.

        Raises
        ------
        DataError
            A user has no tasks.
        """
        none = np.flatnonzero(np.bincount(self.user, minlength=len(self.users)) == 0)
        for n in none[:1].tolist():
            raise DataError(f"user {self.users[n]!r} has no task; leave it out")
        up = np.ones(len(self.servers), dtype=bool)
        return players(self, np.arange(self.groups), up, "user", limits=True).cluster

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Convert to the frames `tasks` (a row per task), `servers`, `users` and `changes` of `from_frames`."""
        return to_frames(self)

    def __repr__(self) -> str:
        about = f", {self.source}" if self.source else ""
        numbers = f"{len(self.users)} users, {len(self.jobs)} jobs, {self.tasks} tasks, {len(self.servers)} servers"
        return f"Workload({numbers}, {'/'.join(self.resources)}{about})"


def fitting(capacity: Whole, demand: Whole, placement: Whole, eligible: Mask) -> Mask:
    """Mask (groups,) of groups whose demand fits the capacity of an eligible server."""
    kinds, which = np.unique(np.column_stack([placement, demand]), axis=0, return_inverse=True)
    found = np.zeros(len(kinds), dtype=bool)
    for place in np.unique(kinds[:, 0]):
        here = np.flatnonzero(kinds[:, 0] == place)
        for row in np.unique(capacity[eligible[place]], axis=0):
            found[here] |= (kinds[here, 1:] <= row).all(axis=1)
    return found[which.reshape(-1)]


class Players(NamedTuple):
    r"""Players at an instant as users of a cluster, and the fraction of every group in the tasks of its player.

    All tasks of a player run at one speed. With :math:`k_g` tasks of demand :math:`d_g` in group g, the demand of the
    player is :math:`\sum_g k_g d_g / \sum_g k_g` per task, and of x tasks :math:`x k_g / \sum_g k_g` belong to group
    g. The demand is constant as long as no group is finished.
    """

    cluster: Cluster
    player: Index  # (present groups,), index of the user of the cluster
    part: Array  # (present groups,), fraction of the player's tasks


def one_of(value: object, name: str, known: Any) -> Any:
    """Return `value` if it is one of the `Literal` type `known`; otherwise raise `DataError` with the name `name`."""
    if value not in get_args(known):
        raise DataError(f"{name} is {short(value)}; it must be one of {', '.join(get_args(known))}")
    return value


def owner(workload: Workload, by: By) -> Whole:
    """Index of the player, a job or a user, of every group, (groups,)."""
    return workload.job if by == "job" else workload.user


def players(workload: Workload, groups: Whole, up: Mask, by: By, limits: bool) -> Players:
    """Form the cluster of players, users or jobs, with tasks in `groups`, on the servers that are `up`.

    The demand of a player is the mean over its tasks. A player is eligible on every server that may run one of its
    groups, and a job has the weight of its user. With `limits` the task limit of a player is the number of its tasks.
    """
    w = workload
    who, player = np.unique(owner(w, by)[groups], return_inverse=True)
    player = player.reshape(-1)
    count = (w.first[groups + 1] - w.first[groups]).astype(float)
    total = np.bincount(player, count)
    part = count / total[player]
    demand = np.stack([np.bincount(player, part * column) for column in (w.demand[groups] * w.unit).T], axis=1)
    eligible = None
    if w.placement[groups].any():
        kinds = np.unique(np.column_stack([player, w.placement[groups]]), axis=0)
        eligible = np.zeros((len(who), int(up.sum())), dtype=bool)
        np.logical_or.at(eligible, kinds[:, 0], w.eligible[:, up][kinds[:, 1]])
    names = w.jobs if by == "job" else w.users
    weight = w.weight[w.job_user[who]] if by == "job" else w.weight[who]
    cluster = Cluster(
        w.capacity[up] * w.unit, demand, weight, eligible, total if limits else None,
        w.resources, [names[k] for k in who], [name for name, there in zip(w.servers, up, strict=True) if there],
    )  # fmt: skip
    return Players(cluster, player, part)
