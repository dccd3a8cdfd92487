"""Online rPS-DSF: PS-DSF on residual capacities, for indivisible tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._base import Policy, rule


@dataclass(frozen=True)
class ResidualPSDSF(Policy):
    r"""Serve the (user, server) pair with room that has the lowest ratio of allocated to free amounts.

    .. math:: \arg\min_{n, i}\ \max_{r:\, f_{ir} > 0} \frac{\text{allocated}_{nr}}{f_{ir} \phi_n}

    where the allocated amounts are sums over all servers, as in online PS-DSF, and the free amounts f replace the
    capacities c of PS-DSF. Resources of which a server has nothing free are left out: a task that fits has no demand
    for them.

    Source: Shan et al., arXiv 1803.00922 (rPS-DSF); the sorter `rpsdsf` of its authors' Mesos, branch multi-scheduler.

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob"], "tasks": 50, "duration": 60.0, "cpu": [5, 1], "memory": [1, 5]})
    >>> servers = pd.DataFrame({"cpu": [100, 30], "memory": [30, 100]})
    >>> workload = fo.Workload.from_frames(tasks, servers)
    >>> [int((fo.simulate(workload, p, until=1).tasks["state"] == "running").sum()) for p in ("ps-dsf", "rps-dsf")]
    [41, 42]
    """

    name = "rps-dsf"
    title = "online rPS-DSF"
    source = "arXiv 1803.00922"

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        value = 0.0
        for r in range(len(state.pool)):
            if state.free[server, r] > 0:
                value = max(value, state.allocated[queue, r] / (state.free[server, r] * state.weight[queue]))
        return value
