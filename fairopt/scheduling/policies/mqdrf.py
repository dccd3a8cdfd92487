"""MQDRF: caps on dominant shares by the age of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...model import _validate
from ...model._arrays import Array
from ..loop.tables import SINCE
from ._base import Policy, rule


@dataclass(frozen=True)
class OnlineMQDRF(Policy):
    r"""Serve the user of lowest dominant share that stays within the cap of its level, on the first server with room.

    .. math:: \max_r \frac{\text{allocated}_{nr}}{C_r} \le \frac{DK_k}{N_k} \quad \text{for n in level k}

    Levels are by age: the `sizes[0]` most recently activated users are in level 1, the `sizes[1]` users before them in
    level 2, and so on; all remaining users are in the last level. Of users that become active together, the user of
    larger index counts as the newer. Running tasks continue when a cap decreases. Weights are ignored.

    Parameters
    ----------
    shares : tuple of float
        `DK_1 >= DK_2 >= ...`, fraction of the cluster for each level.
    sizes : tuple of int
        `N_1, N_2, ...`, number of users of each level.

    Raises
    ------
    DataError
        A share is not positive, a size is not an integer >= 1, their numbers differ, or the shares increase.

    Source: Liu, Liu, "Multi-Level Queue Dominant Resource Fairness in Cloud Computing"; the cap is per user, as the
    experiment of the paper needs (see `fairopt.mechanisms.mqdrf`).
    """

    name = "mqdrf"
    title = "online MQDRF"
    source = "Liu, Liu, definition 1"

    shares: tuple[float, ...] = (0.4, 0.3, 0.3)
    sizes: tuple[int, ...] = (1, 1, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = tuple(
            _validate.number(share, "a share", "a number > 0", lambda share: share > 0) for share in self.shares
        )
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "sizes", tuple(_validate.whole(size, "a size") for size in self.sizes))
        if not shares or len(self.sizes) != len(shares):
            raise DataError(f"sizes {self.sizes} must be one per share of {shares}")
        if list(shares) != sorted(shares, reverse=True):
            raise DataError(f"shares {shares} must not increase from level to level")

    @property
    def numbers(self) -> Array:
        return np.array([np.cumsum(self.sizes), np.divide(self.shares, self.sizes)])

    @rule
    def share(state: Any, queue: int) -> float:
        share = 0.0
        for j in range(len(state.total)):
            share = max(share, state.allocated[queue, j] / state.total[j])
        return share

    @rule
    def limit(state: Any, queue: int) -> float:
        upto, since, newer, level = state.numbers[0], state.queues[queue, SINCE], 0, 0
        for other in range(len(state.queues)):
            then = state.queues[other, SINCE]
            if then > since or (then == since and other > queue):
                newer += 1
                if newer == upto[level]:
                    level += 1
                    if level == len(upto) - 1:
                        break
        cap: float = state.numbers[1, level]
        return cap
