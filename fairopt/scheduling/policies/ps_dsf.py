"""Online PS-DSF for indivisible tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._base import Policy, rule


@dataclass(frozen=True)
class OnlinePSDSF(Policy):
    r"""Serve the (user, server) pair with room that has the lowest weighted virtual dominant share.

    .. math:: \arg\min_{n, i}\ \frac{\sigma_{ni}}{\phi_n} = \max_r \frac{\text{allocated}_{nr}}{c_{ir} \phi_n}

    where the allocated amounts are sums over all servers.

    Source: Khamse-Ashari et al., arXiv 1611.00404; scores as in arXiv 1803.00922, with actual amounts in place of
    :math:`x_n d_{nr}`, so that tasks may have several sizes.
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
