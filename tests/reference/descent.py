"""Newton steps down the path of the interior point, boldly or slowly."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from .interior import State, System


class Manner(NamedTuple):
    """How boldly steps are taken: the part of the way to a boundary, residuals allowed over mu, the cut of mu asked."""

    way: str = "0.99"
    residual: str = "10"
    cut: str = "0.1"


#: From bold to slow: each solves a few that the others do not.
MANNERS = (
    Manner(),
    Manner("0.7"),
    Manner("0.9", "1", "0.3"),
    Manner("0.5", "100", "0.3"),
    Manner("0.9", "0.1", "0.5"),
    Manner("0.3", "1000", "0.5"),
)


def descend(
    of: System,
    at: State,
    until: str,
    enough: str,
    manner: Manner,
    central: bool,
    most: int = 200,
    end: float = math.inf,
) -> State | None:
    """Newton steps until products are at most `until` and residuals at most `enough`; `None` if they do not get there.

    Not `central`, products fall in proportion: the way to the middle of all splits and prices of an answer, which are
    seldom unique, may bend much. Residuals below `enough` do not hold it up. No step is begun after `end`, by
    `time.perf_counter`.
    """
    goal, slip, one = of.number(until), of.number(enough), of.number(1)
    residual, last, slow = of.residual(at), of.number(0), -1
    for _ in range(most):
        products = of.products(at)
        mu = products.sum() / len(products)
        if mu <= goal and residual <= slip:
            return at
        if time.perf_counter() > end:
            return None
        # The better the last step went, the more is asked of this one.
        sigma = (
            of.number("0.5")
            if last < 0.3
            else of.number(manner.cut)
            if last < 0.9
            else max(mu, of.number(manner.cut) ** 4)
        )
        if residual > max(mu * 1000, slip):
            sigma = one
        slow = slow + 1 if last < 0.01 else 0
        if slow > 20:
            return None
        by = of.direction(at, sigma, central)
        if by is None:
            return None
        step = one
        for a, b in zip(at.parts(), by.parts(), strict=True):
            falling = np.asarray(b < 0, dtype=bool)
            if falling.any():
                step = min(step, (a[falling] / -b[falling]).min() * of.number(manner.way))
        while step > of.number("1e-4"):
            allowed = max(residual * (1 - step / 10), of.number(manner.residual) * mu, slip)
            moves = ((of.residual(new), new) for new in of.moves(at, by, step))
            taken = next(((left, new) for left, new in moves if left <= allowed), None)
            if taken is not None:
                break
            step = step / 2
        else:
            return None
        residual, at, last = *taken, step
    return None
