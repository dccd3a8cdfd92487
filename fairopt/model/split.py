"""Tasks of a cluster kept as those of its merged servers.

A split in proportion to capacity uses the same part of every resource on each of the servers that were merged. It is
therefore feasible if and only if the merged tasks are, and as good: merging servers keeps every `x_n` possible, no
other ones become possible, and a server's own problem is that of the merged server in other units (`merging`). So both
parts of a certificate follow from the merged tasks; feasibility is still computed from the capacities as they are.
A table of 5,000 users and 12,583 servers takes 0.5 GB; split it takes 0.4 MB.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array
from ._frozen import read_only
from .cluster import Cluster
from .merging import Merging, merge


@dataclass(frozen=True, eq=False)
class Split:
    """`merged` (users, merged servers), for a `merging` of servers alone. Called, it gives the whole table."""

    merging: Merging
    merged: Array

    @classmethod
    def of(cls, merging: Merging, tasks: Array) -> Split:
        """Split of tasks (merged users, merged servers): users are split, servers stay merged."""
        unmerged = len(merging.cluster.users) == len(merging.original.users)
        return cls(merging if unmerged else merge(merging.original, users=False), merging.split_users(tasks))

    @classmethod
    def from_table(cls, merging: Merging, tasks: Array) -> Split:
        """Split of tasks (users, servers), added up; `matches` tells whether they were split like this."""
        return cls(merging, tasks if merging.trivial else merging.merged_tasks(tasks))

    @classmethod
    def from_answer(cls, cluster: Cluster, tasks: Array | Split) -> Split:
        """Split of an answer: returned as it is, or a table (users, servers) added up over proportional servers."""
        return tasks if isinstance(tasks, Split) else cls.from_table(merge(cluster, users=False), tasks)

    def matches(self, tasks: Array, tol: float = 1e-12) -> bool:
        """True if `tasks` (users, servers) are these, relative to each user's total."""
        apart = self.merging.split_servers(self.merged)
        apart -= tasks
        return not (np.abs(apart, out=apart) > tol * tasks.sum(axis=1, keepdims=True)).any()

    def __call__(self) -> Array:
        """Tasks (users, servers), read-only."""
        return read_only(self.merging.split_servers(self.merged))

    @property
    def user_tasks(self) -> Array:
        """`x_n`, (users,)."""
        groups = self.merging.server_of
        return np.asarray(self.merged @ np.bincount(groups, self.merging.server_part, self.merged.shape[1]))

    @property
    def use(self) -> Array:
        """`sum_n x[n,i] d[n,r]`, (servers, resources), in resource units."""
        whole = self.merged.T @ self.merging.original.demand
        return np.asarray(whole[self.merging.server_of] * self.merging.server_part[:, None])
