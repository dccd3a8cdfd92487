"""Tetris: placement by the alignment of demands and free resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...model import _validate
from ._base import Policy, rule


@dataclass(frozen=True)
class Tetris(Policy):
    r"""Serve the (user, server) pair of largest inner product of demand and free amounts, both relative to capacity.

    .. math:: \arg\max_{n, i}\ \sum_r \frac{d_{nr}}{c_{ir}} \frac{f_{ir}}{c_{ir}}

    over the users of lowest shares: of the k users with a task that fits, ordered by weighted dominant share, the
    first `ceil((1 - fairness) k)`. The remaining work of jobs, Tetris' third term, is unknown online and not used.

    Parameters
    ----------
    fairness : float
        From 0 (all pairs are compared) to 1 (only pairs of the user of lowest share).

    Raises
    ------
    DataError
        `fairness` is not in [0, 1].

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
            there = max(state.capacity[server, r], 1)  # tasks that fit have no demand where capacity is 0
            value -= state.demand[group, r] / there * (state.free[server, r] / there)
        return value
