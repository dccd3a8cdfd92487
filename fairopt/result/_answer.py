"""What numbers and pictures read of an allocation."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..model.cluster import Cluster

Array = NDArray[np.float64]


class Answer(Protocol):
    """An allocation, as far as metrics and plots need to know it."""

    @property
    def mechanism(self) -> str:
        """Its label."""

    @property
    def cluster(self) -> Cluster:
        """What was shared."""

    @property
    def user_tasks(self) -> Array:
        """(users,)."""

    @property
    def dominant_shares(self) -> Array:
        """(users,), in [0, 1]."""

    @property
    def usage(self) -> Array:
        """(users, servers, resources), in units of the resources."""
