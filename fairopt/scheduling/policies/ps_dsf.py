"""PS-DSF, task by task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._base import Policy, rule


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
    index = "types"

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        value = 0.0
        for r in range(len(state.pool)):
            if state.allocated[queue, r] > 0:
                value = max(value, state.allocated[queue, r] / (state.capacity[server, r] * state.weight[queue]))
        return value
