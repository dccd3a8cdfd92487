"""`Runs`: what a simulation writes down, a row per start of a task, in order of starts."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .workload import Whole

#: How a run ended: it goes on when the simulation ends; the task is done; its server left; its user left.
RUNNING, DONE, EVICTED, GONE = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Runs:
    """Every start: the task, its server, when it began and ended (microseconds; `NEVER` if it goes on), and how.

    `time` is when the simulation stopped, `instants` at how many times something happened.
    """

    task: Whole
    server: Whole
    start: Whole
    end: Whole
    how: NDArray[np.int8]
    time: int
    instants: int
    interrupted: bool = False

    def same(self, other: Runs) -> bool:
        """Are both the same, event by event?"""
        mine, others = (
            [getattr(one, field.name) for field in fields(one) if field.name != "interrupted"] for one in (self, other)
        )
        return all(np.array_equal(a, b) for a, b in zip(mine, others, strict=True))
