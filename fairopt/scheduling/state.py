"""`State`: what a policy sees when it decides, in NumPy arrays that change as the simulation goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .workload import Whole, Workload


@dataclass(eq=False)
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
    head : (queues,), the first group that waits, or -1
    since : (queues,), when the queue was last empty and became active (something runs or waits); -1 if it is idle
    placed : (queues, servers, amounts) that running tasks take, for policies that ask for it (`Policy.per_server`)
    """

    workload: Workload
    capacity: Whole
    free: Whole
    pool: Whole
    demand: Whole
    cost: Whole
    total: Whole
    queue: Whole
    placement: Whole
    weight: NDArray[np.float64]
    allocated: Whole
    running: Whole
    waiting: Whole
    head: Whole
    since: Whole
    placed: Whole
    time: int = 0

    def dominant_share(self) -> NDArray[np.float64]:
        """(queues,): `max_j allocated[n,j] / (total_j phi_n)`, a single division of whole numbers: 12/18 ties 6/9.

        It is exact in ties: the quotient of doubles is that of the fractions, rounded.
        """
        share = self.allocated[:, 0] / (self.total[0] * self.weight)
        for j in range(1, len(self.total)):
            np.maximum(share, self.allocated[:, j] / (self.total[j] * self.weight), out=share)
        return np.asarray(share)
