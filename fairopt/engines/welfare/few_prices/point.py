"""Where `few_prices` is, and what its products are measured in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FewPricesPoint:
    """Where the interior point is; also a change of it."""

    price: Array  # (servers, resources), of whole capacities
    idle: Array  # (servers, resources)
    tasks: Array  # (pairs,)
    slack: Array  # (pairs,), what a task costs there beyond what its user pays
    user_price: Array  # (users,), may be negative for who has all its tasks

    def __add__(self, other: FewPricesPoint) -> FewPricesPoint:
        return FewPricesPoint(
            self.price + other.price,
            self.idle + other.idle,
            self.tasks + other.tasks,
            self.slack + other.slack,
            self.user_price + other.user_price,
        )


@dataclass(frozen=True)
class Weights:
    """What products are measured in: what users turn over, (users,), and prices, (servers, resources)."""

    user: Array
    price: Array
