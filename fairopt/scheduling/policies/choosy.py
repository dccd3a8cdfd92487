"""Choosy: max-min fairness of tasks under placement constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..workload import Whole, Workload
from ._base import Policy


@dataclass(frozen=True)
class Choosy(Policy):
    r"""Serve the user with the fewest running tasks per weight and a task that fits, on the first server with room.

    .. math:: \arg\min_n\ x_n / \phi_n

    Source: Ghodsi, Zaharia, Shenker, Stoica, "Choosy", EuroSys 2013: constrained max-min fairness, online.
    """

    name = "choosy"
    title = "Choosy"
    source = "EuroSys 2013"

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        return np.ones((workload.groups, 1), dtype=np.int64), np.ones(1, dtype=np.int64)
