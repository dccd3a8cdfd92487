"""Tetris: tasks to the servers they align with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...model import _validate
from ._base import Policy, rule


@dataclass(frozen=True)
class Tetris(Policy):
    """The pair of user and server with the largest dot product of demand and what is free, in parts of the server.

        max_(n, i) sum_r (d[n,r]/c[i,r]) (f[i,r]/c[i,r]),    n among the (1 - fairness) part of users furthest behind

    Users who have a task that fits are ordered by weighted dominant share; of k of them the first
    `ceil((1 - fairness) k)` count. What is left of jobs, Tetris' third term, plays no part: it is not known online.

    Parameters
    ----------
    fairness : from 0 (packing alone) to 1 (the lowest user alone)

    Source: Grandl et al., "Multi-Resource Packing for Cluster Schedulers", SIGCOMM 2014, sections 3.2 and 3.4.
    """

    name = "tetris"
    title = "Tetris"
    source = "SIGCOMM 2014"

    fairness: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.number(self.fairness, "fairness", "a number from 0 to 1", lambda part: 0 <= part <= 1)

    @property
    def competing(self) -> float:
        return 1 - self.fairness

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        value = 0.0
        for r in range(len(state.pool)):
            there = max(state.capacity[server, r], 1)  # of what a server has not, nothing is demanded here
            value -= state.demand[group, r] / there * (state.free[server, r] / there)
        return value
