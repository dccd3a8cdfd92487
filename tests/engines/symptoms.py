"""Clusters whose answers are known, and what tests of symptoms ask of an engine that was made worse."""

from __future__ import annotations

import numpy as np

from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

ENGINES = ("native", "declarative")
#: PF figure 1, the variant: where alpha matters on the second server.
VARIANT = Cluster([[12, 4, 75], [8, 16, 0]], [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [1, 0.5, 0]])


def nine_eighteen(alpha: float) -> Array:
    """DRF 4.1: the vertex up to ln 2 / ln(5/3), then CPU alone binds."""
    if alpha <= np.log(2) / np.log(5 / 3):
        return np.array([45 / 11, 18 / 11])
    u = 1.0 if np.isinf(alpha) else 2 / (1 + 2 ** (1 - 1 / alpha))
    x = 4.5 * (2 / 3 if np.isinf(alpha) else u)
    return np.array([x, (9 - x) / 3])
