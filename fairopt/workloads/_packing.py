"""Where tasks of made-up clusters run: on nodes that have room for them, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


class Room:
    """What nodes have left, (nodes, resources), in whole units such as milli-CPU and MiB."""

    def __init__(self, capacity: Whole) -> None:
        self.left = np.array(capacity, dtype=np.int64)

    def take(self, asks: Sequence[int], tried: Whole, count: int = 1) -> list[int]:
        """Run on the first `count` of the nodes tried that have room, and say which; where they are fewer, on none."""
        need = np.asarray(asks, dtype=np.int64)
        fits = tried[(self.left[tried] >= need).all(axis=1)]
        chosen = [int(k) for k in dict.fromkeys(fits.tolist())][:count]
        if len(chosen) < count:
            return []
        self.left[chosen] -= need
        return chosen
