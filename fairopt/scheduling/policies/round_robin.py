"""Round robin over servers in random order, each of which serves the user of lowest share under another policy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...model._arrays import Array
from ..workload import Whole, Workload
from ._base import REGISTRY, Policy


@dataclass(frozen=True)
class RoundRobin(Policy):
    r"""Let each server in turn start a task of the user of lowest share, in a new random order in every round.

    .. math:: i = \text{next server in the order of the round}, \qquad n = \arg\min_m\ \text{share}_{mi}

    over users m with a task that fits server i. The share of user m on server i is defined by the policy `by`; in DRFH
    and TSF, but not in PS-DSF, it is the same on all servers. Rounds begin anew at every instant. The random generator
    of a round is seeded with `seed`, the instant and the index of the round.

    Parameters
    ----------
    by : str
        Policy whose shares are compared; it must have no limits.
    seed : int
        Seed of the orders of servers.

    Raises
    ------
    DataError
        The policy `by` is unknown, has limits, compares only some queues (`tetris`), or is `round-robin`.

    Source: Shan et al., arXiv 1803.00922 (RRR); the fine-grained allocator of its authors' Mesos, branch
    multi-scheduler, which shuffles servers.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "tasks": 50, "duration": 60.0, "cpu": [5, 1], "memory": [1, 5]})
    >>> servers = pd.DataFrame({"cpu": [100, 30], "memory": [30, 100]})
    >>> run = fo.simulate(fo.Workload.from_frames(tasks, servers), "round-robin(by='ps-dsf')", until=1)
    >>> int((run.tasks["state"] == "running").sum())
    41
    """

    name = "round-robin"
    title = "round robin over servers"
    source = "arXiv 1803.00922"

    by: str = "first-fit-drfh"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._by.limits or self._by.competing < 1 or isinstance(self._by, RoundRobin):
            raise DataError(f"round-robin compares the shares of a policy by={self.by!r}, which must have no limits")

    @cached_property
    def _by(self) -> Policy:
        made: Policy = REGISTRY.one(self.by, Policy)
        return made

    @property
    def numbers(self) -> Array:
        return self._by.numbers

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        return self._by.room(workload)

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        return self._by.cost(workload)

    def value(self, state: Any, group: int, servers: Whole) -> Array:
        """Turn of each server, an integer, plus the share, mapped from [0, inf] to [0, 1]."""
        queue = state.queue[group]
        share = self._by.value(state, group, servers) if self._by.pairs else self._by.share(state)[queue]
        turn = state.started * len(state.capacity)
        for round_ in np.unique(state.started):
            order = np.random.default_rng((self.seed, state.time, int(round_))).permutation(len(turn))
            turn += np.where(state.started == round_, order, 0)
        return np.asarray(turn[servers] + share / (1 + share))
