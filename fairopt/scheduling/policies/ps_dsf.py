"""PS-DSF, task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..state import State
from ..workload import Whole
from ._base import Numbers, Policy, kernel


@dataclass(frozen=True)
class OnlinePSDSF(Policy):
    """The pair of user and server with the lowest virtual dominant share, of those where a task fits.

        s[n,i] / phi_n = max_r allocated[n,r] / (c[i,r] phi_n),    allocated: all that user n holds, on whichever server

    Source: Khamse-Ashari et al., arXiv 1611.00404; scores as in arXiv 1803.00922, with what a user's tasks really hold
    in place of `x_n d[n,r]`, so that tasks may be of several sizes.
    """

    name = "ps-dsf"
    title = "online PS-DSF"
    source = "arXiv 1803.00922"

    @kernel("virtual")
    def value(self, state: State, group: int, servers: Whole) -> Numbers:
        n = state.queue[group]
        value = np.zeros(len(servers))
        for r in range(state.capacity.shape[1]):
            if (allocated := state.allocated[n, r]) > 0:
                with np.errstate(divide="ignore"):
                    np.maximum(value, allocated / (state.capacity[servers, r] * state.weight[n]), out=value)
        return value
