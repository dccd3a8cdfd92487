"""Games in which ties abound."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo


def tied(seed: int, limits: bool = False) -> fo.Cluster:
    """Small integers, many zero demands: users and servers that tie exactly."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 3, (10, 3)).astype(float)
    demand[~demand.any(axis=1), 0] = 1.0
    counts = rng.choice([0.5, 5.0, np.inf], 10) if limits else None
    return fo.Cluster(rng.integers(1, 4, (5, 3)).astype(float), demand, rng.integers(1, 3, 10), max_tasks=counts)


@pytest.mark.parametrize("alpha", [8.0, 64.0, 500.0])
def test_ties_are_solved(alpha: float) -> None:
    """Whole clusters of ties, through the mechanism: interior points or the homotopy, whichever ends."""
    for seed in range(10):
        assert fo.AlphaPFVDS(alpha).solve(tied(seed, limits=True)).certify().residual <= 1e-6
