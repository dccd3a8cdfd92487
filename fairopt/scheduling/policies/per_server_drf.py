"""Online DRF on every server separately, for indivisible tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._base import Policy, rule


@dataclass(frozen=True)
class OnlinePerServerDRF(Policy):
    r"""Serve the (user, server) pair with room in which the user has the lowest weighted dominant share of the server.

    .. math:: \arg\min_{n, i}\ \max_r \frac{\text{allocated}_{nir}}{c_{ir} \phi_n}

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
