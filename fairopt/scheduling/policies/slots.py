"""Slots: servers and tasks in fractions of the largest server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.errors import DataError
from ..workload import Whole, Workload
from ._base import Policy


@dataclass(frozen=True)
class Slots(Policy):
    r"""Serve the user with the fewest slots per weight, on the first server with enough slots.

    .. math:: \text{slot}_r = \frac{1}{n} \max_i c_{ir}, \qquad
        \text{slots}_i = \Big\lfloor \min_r \frac{c_{ir}}{\text{slot}_r} \Big\rfloor, \qquad
        \text{slots of a task} = \Big\lceil \max_r \frac{d_r}{\text{slot}_r} \Big\rceil

    Parameters
    ----------
    n : int
        Number of slots of a server that is largest in every resource.
    whole : bool
        True: tasks use as many slots as they need. False: every task uses one slot whatever its demand, as in Hadoop.
        Servers may then be over-committed (`Thrashing`).

    Raises
    ------
    DataError
        `n` is not an integer from 1 to 10^6.

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
