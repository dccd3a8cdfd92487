"""Where there is room for all tasks, everybody has all of them, and engines say so at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.engines.welfare.served import everybody_served
from fairopt.mechanisms import one
from fairopt.model.polytope import Polytope


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
    assert found.stats.status == "everybody has all its tasks"
    assert found.certificate.residual <= 1e-12


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), load=st.floats(0.1, 1.3))
def test_what_is_found_is_feasible(seed: int, load: float) -> None:
    there = cluster(seed, load, 8, 4)
    polytope = Polytope(there, there.max_tasks)
    found = everybody_served(polytope)
    if found is not None:
        assert (polytope.use @ found <= 1 + 1e-12).all()
        np.testing.assert_allclose(polytope.user_tasks(found), there.max_tasks)
    if load < 0.3:
        assert found is not None
    if load > 1.001:
        assert found is None


def test_no_limit_or_one_that_nobody_can_reach_is_none() -> None:
    there = cluster(1, 0.5)
    assert everybody_served(Polytope(there, np.full(60, np.inf))) is None
    beyond = np.array(there.max_tasks)
    beyond[0] = 1e9
    assert everybody_served(Polytope(there, beyond)) is None
