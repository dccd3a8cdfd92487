"""Newton steps down the path of the interior point, boldly or slowly."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from .interior import State, System


class Manner(NamedTuple):
    """How boldly steps are taken: the part of the way to a boundary, residuals allowed over mu, the cut of mu asked."""

    way: float = 0.99
    residual: float = 10.0
    cut: float = 0.1


#: From bold to slow: each solves a few that the others do not.
MANNERS = (
    Manner(),
    Manner(0.7),
    Manner(0.9, 1.0, 0.3),
    Manner(0.5, 100.0, 0.3),
    Manner(0.9, 0.1, 0.5),
    Manner(0.3, 1000.0, 0.5),
)
#: Where products and residuals are small enough to guess which equations hold.
ENOUGH = 1e-9


def descend(of: System, at: State, manner: Manner, end: float = math.inf) -> State | None:
    """Newton steps until products and residuals are at most `ENOUGH`; `None` if they do not get there.

    Residuals below that do not hold it up. No step is begun after `end`, by `time.perf_counter`.
    """
    residual, last, slow = of.residual(at), 0.0, -1
    for _ in range(200):
        products = of.products(at)
        mu = products.sum() / len(products)
        if mu <= ENOUGH and residual <= ENOUGH:
            return at
        # The better the last step went, the more is asked of this one.
        sigma = 0.5 if last < 0.3 else manner.cut if last < 0.9 else max(mu, manner.cut**4)
        if residual > max(mu * 1000, ENOUGH):
            sigma = 1.0
        slow = slow + 1 if last < 0.01 else 0
        by = None if slow > 20 or time.perf_counter() > end else of.direction(at, sigma)
        if by is None:
            return None
        step = 1.0
        for a, b in zip(at.parts(), by.parts(), strict=True):
            falling = b < 0
            step = min(step, (a[falling] / -b[falling]).min(initial=np.inf) * manner.way)
        while step > 1e-4:
            allowed = max(residual * (1 - step / 10), manner.residual * mu, ENOUGH)
            moves = ((of.residual(new), new) for new in of.moves(at, by, step))
            taken = next(((left, new) for left, new in moves if left <= allowed), None)
            if taken is not None:
                break
            step = step / 2
        else:
            return None
        residual, at, last = *taken, step
    return None
