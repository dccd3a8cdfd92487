"""HUG: by hand on two tenants, and by its defining conditions, of which no lie pays (docs/fluid.md)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairopt as fo
from fairopt.errors import DataError
from fairopt.scheduling.hug import LinkShares, hug

from .draw import pools

#: Two tenants on two links of capacity 1.
PAIR = fo.Cluster([[1, 1]], [[0.5, 1], [1, 1 / 6]], users=["A", "B"], resources=["one", "two"])


def test_two_tenants_by_hand() -> None:
    """P* = 1/(1 + 1/2); link two has 1 - 2/3 - 1/9 to spare, which B gets, as A is at the cap."""
    found = hug(PAIR)
    assert found.guarantee == pytest.approx(2 / 3)
    np.testing.assert_allclose(found.parts, [[1 / 3, 2 / 3], [2 / 3, 1 / 3]])
    assert found.parts.sum(axis=0) == pytest.approx([1, 1])
    assert found.to_frame().loc["B", "two"] == pytest.approx(1 / 3)


@given(cluster=pools(least=0))
def test_it_is_what_its_conditions_say(cluster: fo.Cluster) -> None:
    found = hug(cluster)
    assert found.violation <= 1e-12
    np.testing.assert_allclose(found.to_frame()[list(cluster.resources)], found.parts * cluster.capacity)
    np.testing.assert_allclose(found.progress, cluster.weight * found.guarantee)
    # No larger guarantee is feasible: one link is full after stage 1.
    assert found.first.sum(axis=0).max() == pytest.approx(1)
    with_one = fo.DRF().solve(cluster).arrays.user_tasks * cluster.dominant_share_per_task / cluster.weight
    assert with_one.min() == pytest.approx(found.guarantee)  # the first level of DRF


@given(cluster=pools(least=0), seed=st.integers(0, 2**32))
def test_violations_are_seen(cluster: fo.Cluster, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = hug(cluster)
    moved = found.parts.copy()
    k, i = (int(rng.integers(size)) for size in moved.shape)
    moved[k, i] += 0.01 if moved[k, i] < 0.5 else -0.01
    assert LinkShares(found.cluster, found.guarantee, found.first, moved).violation >= 0.001
    assert LinkShares(found.cluster, 0.9 * found.guarantee, 0.9 * found.first, 0.9 * found.parts).violation >= 0.05


def test_what_it_does_not_know_is_named() -> None:
    with pytest.raises(DataError, match="'A' needs a resource"):
        hug(PAIR.replace(capacity=[[1, 0]]))
