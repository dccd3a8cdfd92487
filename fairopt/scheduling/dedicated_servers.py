"""`dedicated`: every user on dedicated servers, the benchmark of the sharing incentive."""

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
    r"""Simulate every user separately on its part of the servers, the benchmark of the sharing incentive.

    Of the :math:`N_k` servers with the k-th kind of capacity, user n is assigned, by the method of largest remainders,

    .. math:: \Big\lfloor \frac{\phi_n}{\sum_m \phi_m} N_k \Big\rfloor \text{ or one more}

    where :math:`\phi` are weights, m runs over the users with tasks, and ties are broken by the order of users. A
    server with failures is a kind of its own. Users without a server are omitted, and tasks that fit no server of
    their user are "impossible" (`Schedule.state`), unless `impossible="raise"` is given.

    Parameters
    ----------
    workload : Workload
    policy, options
        As in `simulate`.

    Returns
    -------
    dict of str to Schedule
        Schedule of every user with a server.

    Raises
    ------
    DataError
        A job has a predecessor of another user, or an argument is invalid, as in `simulate`.

    Source: the comparison of Wang, Li, Liang, INFOCOM 2014 (DRFH), section VI (arXiv:1308.0083).

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "duration": [10.0, 5.0], "tasks": [2, 2], "cpu": [1, 1]})
    >>> workload = fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [1], "count": [2]}))
    >>> {user: schedule.end for user, schedule in fo.scheduling.dedicated(workload).items()}
    {'ann': 20.0, 'bob': 10.0}
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
    """Index of the user of every server, (servers,), by largest remainders for each kind of server."""
    w = workload
    part = w.weight[users] / w.weight[users].sum()
    changing = np.zeros(len(w.servers), dtype=np.int64)
    changing[w.change_server] = 1 + w.change_server  # a server with changes is a kind of its own
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
    """Workload of one user on some of the servers.

    Raises
    ------
    DataError
        A job has a predecessor of another user.
    """
    groups = np.flatnonzero(w.user == user)
    tasks = np.isin(w.group_of_task, groups)
    jobs, job = np.unique(w.job[groups], return_inverse=True)
    place = pd.Index(servers).get_indexer(w.change_server)
    mine = place >= 0
    before = w.after[jobs] if len(w.after) else w.after
    after = pd.Index(jobs).get_indexer(before)
    for k in np.flatnonzero((after < 0) & (before >= 0)).tolist():
        raise DataError(
            f"job {w.jobs[jobs[k]]!r} comes after a job of another user, and users are simulated separately here"
        )
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
