"""DRF on every server on its own, task by task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._base import Policy, rule


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

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        value = 0.0
        for r in range(len(state.pool)):
            there = max(state.capacity[server, r], 1)
            value = max(value, state.placed[queue, server, r] / (there * state.weight[queue]))
        return value
