"""`dedicated`: every user on servers of its own, the benchmark of sharing incentive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..model._arrays import Index, from_sizes
from .policies import Policy
from .schedule import Schedule
from .simulator import simulate
from .workload import Whole, Workload


def dedicated(workload: Workload, policy: str | Policy = "best-fit-drfh", **options: Any) -> dict[str, Schedule]:
    """Simulate every user with tasks alone, on its part of the servers; by user.

    A user's part is its weight over that of all users who have tasks. Servers stay whole: of servers of one capacity
    (those that go and come are kinds of their own) everybody has the whole number below its part, and those with the
    largest fractions one more, ties to the first user. So every server is somebody's, and where there are fewer servers
    than users some have none: users without any are left out, and tasks that fit no server of their user are
    "impossible" (`Schedule.state`), unless `impossible="raise"` is given.

    The comparison is that of DRFH section VI: is a user better off in the shared cluster, or on dedicated servers?

    Parameters
    ----------
    policy, options : as for `simulate`
    """
    options = {"impossible": "report"} | options
    users = np.flatnonzero(np.bincount(workload.user, minlength=len(workload.users)))
    owner = servers_of(workload, users) if len(users) else users
    return {
        workload.users[n]: simulate(_alone(workload, n, np.flatnonzero(owner == n)), policy, **options)
        for n in users.tolist()
        if (owner == n).any()
    }


def servers_of(workload: Workload, users: Whole | Index) -> Whole:
    """(servers,): the user of every server, by largest remainders in each type."""
    w = workload
    part = w.weight[users] / w.weight[users].sum()
    changing = np.zeros(len(w.servers), dtype=np.int64)
    changing[w.change_server] = 1 + w.change_server  # servers that go and come are types of their own
    _, kind = np.unique(np.column_stack([w.capacity, changing]), axis=0, return_inverse=True)
    owner = np.full(len(w.servers), -1, dtype=np.int64)
    for one in range(int(kind.max()) + 1):
        here = np.flatnonzero(kind.reshape(-1) == one)
        exact = part * len(here)
        whole = np.floor(exact).astype(np.int64)
        more = np.argsort(-(exact - whole), kind="stable")[: len(here) - whole.sum()]
        whole[more] += 1
        owner[here] = np.repeat(users, whole)
    return owner


def _alone(w: Workload, user: int, servers: Index) -> Workload:
    """The workload of one user on some of the servers.

    Raises
    ------
    DataError
        A job comes after another user's.
    """
    groups = np.flatnonzero(w.user == user)
    tasks = np.isin(w.group_of_task, groups)
    jobs, job = np.unique(w.job[groups], return_inverse=True)
    place = pd.Index(servers).get_indexer(w.change_server)
    mine = place >= 0
    before = w.after[jobs] if len(w.after) else w.after
    after = pd.Index(jobs).get_indexer(before)
    for k in np.flatnonzero((after < 0) & (before >= 0)).tolist():
        raise DataError(f"job {w.jobs[jobs[k]]!r} comes after another user's: it has no schedule of its own")
    return replace(
        w, servers=tuple(w.servers[i] for i in servers.tolist()), users=(w.users[user],),
        jobs=tuple(w.jobs[j] for j in jobs.tolist()), capacity=w.capacity[servers], weight=w.weight[[user]],
        leaves=w.leaves[[user]], job_user=np.zeros(len(jobs), dtype=np.int64), job=job.astype(np.int64),
        arrival=w.arrival[groups], demand=w.demand[groups], placement=w.placement[groups],
        eligible=w.eligible[:, servers], first=from_sizes(np.diff(w.first)[groups]),
        duration=w.duration[tasks], change_time=w.change_time[mine], change_server=place[mine].astype(np.int64),
        change_up=w.change_up[mine], after=after.astype(np.int64),
        row=w.row[groups] if len(w.row) else w.row,
    )  # fmt: skip
