"""If all task limits are feasible together, engines return them at once."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.mechanisms import one


def cluster(seed: int, load: float, users: int = 60, servers: int = 12) -> fo.Cluster:
    """Users whose tasks need so much of the scarcest resource; a tenth may run on half of the servers only."""
    rng = np.random.default_rng(seed)
    capacity, demand = rng.lognormal(1, 0.5, (servers, 3)), rng.lognormal(-3, 0.5, (users, 3))
    eligible = np.ones((users, servers), dtype=bool)
    eligible[: users // 10, : servers // 2] = False
    tasks = rng.integers(1, 9, users).astype(float)
    tasks *= load / ((tasks @ demand) / capacity.sum(axis=0)).max()
    return fo.Cluster(capacity, demand, eligible=eligible, max_tasks=tasks)


@pytest.mark.parametrize(
    "mechanism", ["drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)", "alpha-fair(alpha=2)"]
)
def test_all_have_all_their_tasks(mechanism: str) -> None:
    there = cluster(1, 0.6)
    found = one(mechanism).solve(there)
    np.testing.assert_allclose(found.arrays.user_tasks, there.max_tasks, rtol=1e-12)
    assert found.stats.status == "all task limits are attained"
    assert found.certificate.residual <= 1e-12
