"""MQDRF: caps by age."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from ..state import State
from ._base import Numbers, Policy, kernel


@dataclass(frozen=True)
class OnlineMQDRF(Policy):
    """The user with the lowest dominant share whose next task stays below the cap of its level, on the first server.

    Levels are by age: of the users who have something running or waiting, the `sizes[0]` that have for the shortest
    time are in level 1, the `sizes[1]` before them in level 2, and so on; all that are left in the last. A user in
    level k may hold at most `shares[k-1] / sizes[k-1]` of every resource. Those who become active together are ordered
    by their place, the last being the newest. Running tasks stay when a cap falls. Weights play no part.

    Parameters
    ----------
    shares : DK_1 >= DK_2 >= ..., the part of the cluster for each level
    sizes : N_1, N_2, ..., the users of each level

    Source: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing"; the cap is per user, as its
    experiment needs (see `fairopt.mechanisms.mqdrf`).
    """

    name = "mqdrf"
    title = "online MQDRF"
    source = "Liu, Liu, definition 1"

    shares: tuple[float, ...] = (0.4, 0.3, 0.3)
    sizes: tuple[int, ...] = (1, 1, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shares", tuple(map(float, self.shares)))
        object.__setattr__(self, "sizes", tuple(map(int, self.sizes)))
        if not self.shares or len(self.sizes) != len(self.shares) or min(self.sizes) < 1:
            raise DataError(f"sizes {self.sizes} must be whole numbers >= 1, one per share of {self.shares}")
        if min(self.shares) <= 0 or list(self.shares) != sorted(self.shares, reverse=True):
            raise DataError(f"shares {self.shares} must be > 0, and not increase from level to level")

    @kernel("unweighted")
    def share(self, state: State) -> Numbers:
        return np.asarray((state.allocated / state.total).max(axis=1))

    @kernel("age")
    def limit(self, state: State) -> Numbers:
        active = np.flatnonzero(state.since >= 0)
        newest = active[np.lexsort([-active, -state.since[active]])]
        level = np.searchsorted(np.cumsum(self.sizes[:-1]), np.arange(len(newest)), side="right")
        limit = np.zeros(len(state.since))
        limit[newest] = np.divide(self.shares, self.sizes)[level]
        return limit
