"""`State`: what a policy sees when it decides, in NumPy arrays that change as the simulation goes on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .loop import tables as at
from .loop.tables import Tables, first_of
from .workload import Whole, Workload


class State:
    """Who holds what, and what is free; policies read it and do not write to it.

    A *queue* is what shares are compared of: that of a user, or a single one of everybody (`Policy.queue`). Groups are
    numbered by (queue, arrival, place in the workload). What servers have and tasks take is in the policy's own terms
    (`Policy.room`): amounts of resources unless it says otherwise.

    Attributes
    ----------
    workload
    time : microseconds
    capacity, free : (servers, amounts); `free` is -1 where a server is not there
    pool : (amounts,), of all servers that ever are
    demand : (groups, amounts), what a task takes of a server
    cost : (groups, costs), what a task adds to what its queue holds (`Policy.cost`), `total` : (costs,)
    queue, placement : (groups,)
    weight : (queues,)
    allocated : (queues, costs), the costs of running tasks
    running, waiting : (queues,), numbers of tasks
    next_cost : (queues, costs), those of the first waiting task, 0 where nothing waits
    since : (queues,), when the queue was last empty and became active (something runs or waits); -1 if it is idle
    placed : (queues, servers, amounts) that running tasks take, for policies that ask for it (`Policy.per_server`)
    """

    def __init__(self, workload: Workload, tables: Tables) -> None:
        self.workload, self._tables = workload, tables
        self.queue, self.placement = tables.groups[:, at.QUEUE], tables.groups[:, at.PLACEMENT]
        self.running, self.waiting = tables.queues[:, at.RUNS], tables.queues[:, at.WAITS]
        self.since = tables.queues[:, at.SINCE]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tables, name)

    @property
    def time(self) -> int:
        return int(self._tables.n[at.NOW])

    @property
    def next_cost(self) -> Whole:
        first = self._first()
        return np.where(first[:, None] >= 0, self._tables.cost[first], 0)

    @property
    def head(self) -> Whole:
        """(queues,): the first group that waits, or -1, which as an index is the last. Deprecated: see `next_cost`."""
        warnings.warn("State.head is -1 where nothing waits, which as an index is the last group; use State.next_cost",
                      DeprecationWarning, stacklevel=2)  # fmt: skip
        return self._first()

    def _first(self) -> Whole:
        return np.array([first_of.py_func(self._tables, q) for q in range(len(self.running))], dtype=np.int64)

    def dominant_share(self) -> NDArray[np.float64]:
        """(queues,): `max_j allocated[n,j] / (total_j phi_n)`, a single division of whole numbers: 12/18 ties 6/9."""
        t = self._tables
        return np.asarray((t.allocated / (t.total * t.weight[:, None])).max(axis=1))
