"""Online task share fairness for indivisible tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..workload import Whole, Workload
from ._base import Policy


@dataclass(frozen=True)
class OnlineTSF(Policy):
    r"""Serve the user with the lowest weighted task share, on the first server with room.

    .. math:: \arg\min_n\ \frac{1}{\phi_n} \sum_{g \text{ of } n} \frac{x_g}{y_g}, \qquad
        y_g = \sum_i \Big\lfloor \min_r \frac{c_{ir}}{d_{gr}} \Big\rfloor

    Group g has :math:`x_g` running tasks, and :math:`y_g` is the number of its tasks that all servers could run for it
    alone without placement constraints. Fractions :math:`1/y_g` are whole multiples of a common unit, exact if the
    least common multiple of all :math:`y_g` fits an integer of 64 bits, and otherwise rounded to a multiple of a small
    unit.

    Source: Wang, Li, Liang, Li, SC 2016; scores as in arXiv 1803.00922.
    """

    name = "tsf"
    title = "online TSF"
    source = "SC 2016"

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        """Fractions 1/y of the groups (groups, 1) in a common unit, and the number (1,) of units in a whole."""
        servers, count = np.unique(workload.capacity, axis=0, return_counts=True)
        kinds, which = np.unique(workload.demand, axis=0, return_inverse=True)
        alone = np.zeros(len(kinds), dtype=np.int64)
        for row, copies in zip(servers, count, strict=True):
            parts = np.where(kinds > 0, row // np.maximum(kinds, 1), np.iinfo(np.int64).max)
            alone += copies * parts.min(axis=1)
        alone = np.maximum(alone, 1)
        most = 2**62 // max(workload.tasks, 1)
        unit = math.lcm(*alone.tolist())
        cost = np.array([unit // y for y in alone.tolist()]) if unit <= most else np.rint(most / alone)
        return cost.astype(np.int64)[which.reshape(-1), None], np.array([min(unit, most)])
