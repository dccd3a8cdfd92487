"""The enumeration of whole tasks, against brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from fairopt.model.cluster import Cluster
from fairopt.papers.drf import fairest_whole_tasks


@pytest.mark.parametrize("seed", range(6))
def test_against_all_packings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(1, 4, size=(2, 2)).astype(float)
    cluster = Cluster([rng.integers(4, 8, size=2)] * 3, demand)
    packings = [
        (a, b) for a in range(8) for b in range(8) if (a * demand[0] + b * demand[1] <= cluster.capacity[0]).all()
    ]
    totals = {tuple(np.sum(chosen, axis=0).tolist()) for chosen in combinations_with_replacement(packings, 3)}
    share = cluster.dominant_share_per_task

    def levels(tasks: tuple[int, ...]) -> list[float]:
        return sorted(np.round(np.array(tasks) * share, 12).tolist())

    assert levels(fairest_whole_tasks(cluster)) == max(map(levels, totals))
