"""Slots: servers and tasks counted in parts of the largest server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.errors import DataError
from ..workload import Whole, Workload
from ._base import Policy


@dataclass(frozen=True)
class Slots(Policy):
    """Fair shares of slots: the user with the fewest per weight is next, on the first server with enough of them.

        slot_r = max_i c[i,r] / n
        server i has  floor(min_r c[i,r] / slot_r),    a task takes  ceil(max_r d[r] / slot_r)

    Parameters
    ----------
    n : slots of a server that is largest in every resource
    whole : False: every task takes one slot, whatever it demands, as in Hadoop. Servers may then be over-committed
        (`Thrashing`).

    Source: Wang, Li, Liang, arXiv 1308.0083, section VI (table II); Ghodsi et al., NSDI 2011, section 7.2.
    """

    name = "slots"
    title = "slots"
    source = "INFOCOM 2014, VI"

    n: int = 14
    whole: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.n, int) and 1 <= self.n <= 10**6):
            raise DataError(f"n is {self.n!r}; it must be a whole number of slots >= 1")

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        largest = workload.capacity.max(axis=0)
        slots = (self.n * workload.capacity // largest).min(axis=1, keepdims=True)
        taken = (-(-self.n * workload.demand // largest)).max(axis=1, keepdims=True)
        return slots, np.maximum(taken, 1) if self.whole else np.ones_like(taken)
