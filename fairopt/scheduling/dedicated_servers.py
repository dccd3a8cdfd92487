"""`dedicated`: every user on servers of its own, the benchmark of sharing incentive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from . import policies
from .policies import Policy
from .schedule import Schedule
from .simulator import simulate
from .workload import Whole, Workload


def dedicated(workload: Workload, policy: str | Policy = "best-fit-drfh", **options: Any) -> Schedule:
    """Simulate every user with tasks on its own part of the servers: its tasks may run there, and no others.

    A user's part is its weight over that of all users who have tasks. Servers stay whole: of servers of one capacity
    (those that go and come are kinds of their own) everybody has the whole number below its part, and those with the
    largest fractions one more, ties to the first user. So every server is somebody's, and where there are fewer servers
    than users some have none: tasks that fit no server of their user are "impossible" (`Schedule.state`), unless
    `impossible="raise"` is given.

    The comparison is that of DRFH section VI: is a user better off in the shared cluster, or on dedicated servers?

    Parameters
    ----------
    policy, options : as for `simulate`

    Raises
    ------
    DataError
        Under the policy users wait for each other whatever their servers are.
    """
    chosen = policies.one(policy)
    if chosen.strict or chosen.limits or chosen.queue == "one":
        raise DataError(f"under {chosen} users wait for each other, on servers of their own too; "
                        "choose a policy of queues by user, without limits, and with strict=False")  # fmt: skip
    w = workload
    owner = servers_of(w, np.flatnonzero(np.bincount(w.user, minlength=len(w.users))))
    kinds, placement = np.unique(np.column_stack([w.placement, w.user]), axis=0, return_inverse=True)
    own = w.eligible[kinds[:, 0]] & (owner == kinds[:, 1:])
    anywhere = np.ones((1, len(owner)), dtype=bool)
    alone = replace(w, eligible=np.concatenate([anywhere, own]), placement=placement.reshape(-1) + 1)
    return simulate(alone, chosen, **({"impossible": "report"} | options))


def servers_of(workload: Workload, users: Whole | NDArray[np.intp]) -> Whole:
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
