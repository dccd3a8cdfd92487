"""DRF on every server on its own, task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..state import State
from ..workload import Whole
from ._base import Numbers, Policy, kernel


@dataclass(frozen=True)
class OnlinePerServerDRF(Policy):
    """The pair of user and server with the lowest dominant share of that server, of those where a task fits.

        max_r allocated[n,i,r] / (c[i,r] phi_n),    allocated: what user n's tasks hold on server i

    Source: Wang, Li, Liang, arXiv 1308.0083, section III: the naive extension of DRF.
    """

    name = "per-server-drf"
    title = "per-server DRF"
    source = "INFOCOM 2014, III"
    per_server = True

    @kernel("per-server")
    def value(self, state: State, group: int, servers: Whole) -> Numbers:
        n = state.queue[group]
        value = np.zeros(len(servers))
        for r in range(state.capacity.shape[1]):
            allocated, there = state.placed[n, servers, r], state.capacity[servers, r]
            np.maximum(value, allocated / (np.maximum(there, 1) * state.weight[n]), out=value)
        return value
