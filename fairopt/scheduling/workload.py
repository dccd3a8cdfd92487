"""`Workload`: jobs of whole tasks that arrive over time, whose they are, and the servers that could run them."""

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

#: In a file the first row of a table is on the line after the header.
FIRST_LINE = 2


@dataclass(frozen=True, eq=False, repr=False)
class Workload(Frozen):
    """Users, their jobs and tasks, and servers, in whole numbers: simulations of it are exact and repeatable.

    Times are int64 microseconds, amounts of a resource int64 multiples of its `unit`. Tasks of one job that arrive
    together, ask for the same and may run on the same servers are a *group*; groups are in order of (user, arrival,
    place in the input), tasks in order of their groups. Make one with `from_frames`, or open a source
    (`fairopt.open_workload`).

    Parameters
    ----------
    resources, servers, users, jobs : names
    unit : (resources,), what 1 stands for
    capacity : (servers, resources), in units
    weight : (users,), > 0
    leaves : (users,), when a user goes and takes its tasks along, or `NEVER`
    job_user : (jobs,)
    after : (jobs,), the job that must be done before a job's tasks come, or -1: a closed loop; empty: nobody waits so
    job : (groups,), arrival : (groups,), demand : (groups, resources), in units
    placement : (groups,), rows of `eligible`
    eligible : (placements, servers), where tasks may run; row 0 is all True
    first : (groups + 1,), the first task of every group, and the number of tasks
    duration : (tasks,), > 0
    change_time, change_server, change_up : (changes,), servers that go (False) and come back (True), by time; a server
        whose first change is to come is not there before
    source : a line about where it comes from
    report : what was found, left out and assumed when it was made, by name
    row : (groups,), the first row of each in the table of tasks; empty if there was none
    file : where that table was read from, or empty
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
        """A workload from tables; times in seconds, amounts in units of one's own (the same for tasks and servers).

        Parameters
        ----------
        tasks
            A row per task, or per number of like ones: `user`, `duration`, a column per resource; optional `job`
            (default: every row is one), `arrival` (0), `tasks` (how many, 1), and `on`: where it may run, names of
            servers or their `type`, separated by `|`, empty for anywhere; `after`: a job that must be done before,
            empty for none. Its tasks come when the last of that job ends, or at `arrival` if that is later.
        servers
            A row per server, or per number of like ones: a column per resource; optional `server` (a name),
            `type`, `count`. All columns but these are resources.
        users
            Optional: `user`, `weight` (1), `leaves` (never).
        changes
            Optional: `time`, `server`, `up`: servers that go (False) and come back (True).

        Raises
        ------
        DataError
            A row that cannot be: a demand below 0 or for nothing at all, no duration, a time that runs backwards, a
            server that nobody knows, too little of a resource to count. The message names row and remedy. A column that
            is none of these: what it says would not count.
        """
        return cls(**arguments(tasks, servers, users, changes), source=source, report=dict(report or {}))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Users, servers, resources."""
        return len(self.users), len(self.servers), len(self.resources)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.duration)

    @property
    def groups(self) -> int:
        """Number of groups of like tasks."""
        return len(self.job)

    @cached_property
    def user(self) -> Whole:
        """(groups,): whose they are."""
        return frozen(self.job_user[self.job])

    @cached_property
    def group_of_task(self) -> Whole:
        """(tasks,): the group of every task."""
        return frozen(np.repeat(np.arange(self.groups, dtype=np.int64), np.diff(self.first)))

    @cached_property
    def there(self) -> Mask:
        """(servers,): which are there at first; those whose first change is to come are not."""
        found = np.ones(len(self.servers), dtype=bool)
        found[self.change_server[::-1]] = ~self.change_up[::-1]
        return frozen(found)

    @cached_property
    def total(self) -> Whole:
        """(resources,): the capacity of all servers that ever are, in units."""
        return frozen(self.capacity.sum(axis=0))

    @cached_property
    def fits(self) -> Mask:
        """(groups,): is there a server, empty, that could run a task of the group?"""
        return frozen(fitting(self.capacity, self.demand, self.placement, self.eligible))

    @cached_property
    def span(self) -> float:
        """Seconds from the first arrival to the last."""
        return float(self.arrival.max() - self.arrival.min()) / SECOND if self.groups else 0.0

    def work(self, until: float | None = None) -> pd.Series:
        """Amount times duration that all tasks need, over capacity: seconds that all servers together are busy.

        `until`, seconds from the first arrival: only what would be done by then if every task started on arrival.
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
        """Offered load of the scarcest resource: work that would be done by then, over the capacity of servers.

        `until` is in seconds from the first arrival; default: the last arrival.

        Raises
        ------
        DataError
            All tasks arrive at once, so that the load over no time is asked for.
        """
        end = self.span if until is None else until
        work = self.work(end)
        if end <= 0:
            raise DataError("all tasks arrive at once, so there is no load; give `until`, seconds from then")
        return float(work.max() / end)

    def cluster(self) -> Cluster:
        """Users and servers without time: mean demands of tasks, numbers of tasks as limits, where any task may run.

        Raises
        ------
        DataError
            A user has no task.
        """
        none = np.flatnonzero(np.bincount(self.user, minlength=len(self.users)) == 0)
        for n in none[:1].tolist():
            raise DataError(f"user {self.users[n]!r} has no task; leave it out")
        up = np.ones(len(self.servers), dtype=bool)
        return players(self, np.arange(self.groups), up, "user", limits=True).cluster

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """The tables `tasks` (a row per task), `servers`, `users` and `changes`, as `from_frames` takes them."""
        return to_frames(self)

    def __repr__(self) -> str:
        about = f", {self.source}" if self.source else ""
        numbers = f"{len(self.users)} users, {len(self.jobs)} jobs, {self.tasks} tasks, {len(self.servers)} servers"
        return f"Workload({numbers}, {'/'.join(self.resources)}{about})"


def fitting(capacity: Whole, demand: Whole, placement: Whole, eligible: Mask) -> Mask:
    """(groups,): is there a server where the group may run that has as much as it demands?"""
    kinds, which = np.unique(np.column_stack([placement, demand]), axis=0, return_inverse=True)
    found = np.zeros(len(kinds), dtype=bool)
    for place in np.unique(kinds[:, 0]):
        here = np.flatnonzero(kinds[:, 0] == place)
        for row in np.unique(capacity[eligible[place]], axis=0):
            found[here] |= (kinds[here, 1:] <= row).all(axis=1)
    return found[which.reshape(-1)]


class Players(NamedTuple):
    """Players of an instant as the users of a cluster, and what of their tasks goes to which group.

    A player's tasks run side by side at one speed: with `k_g` tasks in group g it asks for `sum k_g d_g / sum k_g` per
    task, and of its `x` tasks `x k_g / sum k_g` are of group g. While these are served, demands of a player do not
    change, so that what runs is what was allocated.
    """

    cluster: Cluster
    player: Index  # (groups present,), rows of the cluster's users
    part: Array  # (groups present,), of its player's tasks


def one_of(value: object, name: str, known: Any) -> Any:
    """A value, if it is one of a `Literal`'s."""
    if value not in get_args(known):
        raise DataError(f"{name} is {short(value)}; it must be one of {', '.join(get_args(known))}")
    return value


def owner(workload: Workload, by: By) -> Whole:
    """The player of every group, (groups,)."""
    return workload.job if by == "job" else workload.user


def players(workload: Workload, groups: Whole, up: Mask, by: By, limits: bool) -> Players:
    """Cluster of the present `groups`, on the servers that are `up`.

    A player's tasks may run where any of its groups may. A job has the weight of its user. With `limits` nobody runs
    more tasks than it has in unfinished groups.
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
