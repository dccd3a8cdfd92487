"""Merging: who is merged, that sums are kept, and that the way back is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from strategies import clusters

from fairopt.model import _arrays
from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge

TWINS = Cluster(
    [[2, 4], [1, 3], [6, 12], [2, 4]],
    [[1, 2], [3, 6], [1, 1], [0.5, 1]],
    weight=[1, 2, 1, 1],
    max_tasks=[np.inf, np.inf, np.inf, 7],
)
#: Three users of one demand, with limits of 8 and of 4 units of demand per weight.
LIMITED = Cluster([[9, 18]], [[1, 2], [2, 4], [0.5, 1]], weight=[1, 3, 1], max_tasks=[8, 12, 8])


def test_by_hand() -> None:
    merging = merge(TWINS)
    assert merging.user_of.tolist() == [0, 0, 1, 2]  # user 4 is proportional to user 1, but its tasks are finite
    assert_allclose(merging.cluster.capacity, [[10, 20], [1, 3]])
    assert_allclose(merging.user_part, [1 / 3, 2 / 3, 1, 1])
    assert_allclose(merging.task_size, [1, 3, 1, 1])
    assert merging.cluster.servers == ("server1 x3", "server2")


def test_limits_in_proportion_to_weight_are_summed() -> None:
    merging = merge(LIMITED)
    assert merging.user_of.tolist() == [0, 0, 1]
    assert_array_equal(merging.cluster.max_tasks, [32, 8])  # in tasks of the smallest demand
    full = merging.split_users(merging.cluster.max_tasks[:, None])
    assert_array_equal(full[:, 0], LIMITED.max_tasks)


def test_merged_names_are_distinct() -> None:
    """Somebody may be called like two that are merged: that was a DataError about names that nobody gave."""
    cluster = Cluster([[1, 1], [2, 2], [1, 3]], [[1, 2], [2, 4], [1, 1]], servers=["s", "t", "s x2"])
    merged = merge(cluster.replace(users=["A", "B", "A x2"])).cluster
    assert merged.users == ("A x2 (merged)", "A x2")
    assert merged.servers == ("s x2 (merged)", "s x2")


def test_what_does_not_merge() -> None:
    barred = TWINS.with_eligible("user1", [True, True, False, True])
    assert merge(barred).user_of.tolist() == [0, 1, 2, 3]
    alone = Cluster([[1, 2], [2, 1]], [[1, 2], [2, 1]])
    assert merge(alone).trivial
    assert merge(alone).cluster is alone
    assert merge(TWINS, users=False).cluster.shape[0] == 4
    assert merge(TWINS, servers=False).cluster.shape[1] == 4


def same(numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    return np.asarray(numbers[:, None] == numbers[None, :])


@given(clusters())
def test_groups_of_servers_by_definition(cluster: Cluster) -> None:
    """Merged are servers with proportional capacities and the same usable users, and no others."""
    usable = cluster.gamma > 0
    size = cluster.capacity.max(axis=1, keepdims=True)
    direction = np.divide(cluster.capacity, size, out=np.zeros_like(cluster.capacity), where=size > 0)
    proportional = (np.abs(direction[:, None, :] - direction[None, :, :]) <= 1e-10 * direction[:, None, :]).all(axis=2)
    together = proportional & (usable[:, :, None] == usable[:, None, :]).all(axis=0)
    assert_array_equal(same(merge(cluster, users=False).server_of), together)


@given(clusters(), st.integers(0, 2**32 - 1))
def test_sums_are_kept_and_the_way_back_is_exact(cluster: Cluster, seed: int) -> None:
    merging = merge(cluster)
    merged = merging.cluster
    assert_allclose(merged.pooled_capacity, cluster.pooled_capacity)
    assert merged.weight.sum() == pytest.approx(cluster.weight.sum())
    tasks = np.random.default_rng(seed).uniform(0, 1, merged.shape[:2]) * merged.usable
    split = merging.split_tasks(tasks)
    assert not split[~cluster.usable].any()
    assert_allclose(merging.merged_tasks(split), tasks, rtol=1e-9, atol=1e-12)
    # What is used, per merged server, stays; and is spread in proportion to capacity.
    use = split.T @ cluster.demand
    merged_use = tasks.T @ merged.demand
    assert_allclose(use.sum(axis=0), merged_use.sum(axis=0), rtol=1e-9, atol=1e-12)
    part = merging.server_part[:, None]
    assert_allclose(use, merged_use[merging.server_of] * part, rtol=1e-9, atol=1e-12)
    # Users of one group get work in proportion to weight.
    work = split.sum(axis=1) * cluster.demand.max(axis=1)
    for group in np.unique(merging.user_of):
        members = np.flatnonzero(merging.user_of == group)
        per_weight = work[members] / cluster.weight[members]
        assert_allclose(per_weight, per_weight[0], rtol=1e-9, atol=1e-300)


def test_prices_are_per_unit() -> None:
    merging = merge(TWINS, users=False)
    prices = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_array_equal(merging.split_prices(prices), [[1, 2], [3, 4], [1, 2], [1, 2]])
    assert merging.split_prices(None) is None


def test_rows_are_told_apart_whose_codes_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [3.0, 0.0]])
    nothing = type("Rng", (), {"integers": lambda *_, size, dtype: np.zeros(size, dtype)})
    monkeypatch.setattr(np.random, "default_rng", lambda _: nothing())
    assert _arrays.numbered(rows).tolist() == [0, 1, 0, 2]
