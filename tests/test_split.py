"""Split tasks: the same as the whole table, certified the same, and made only when somebody reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import clusters

from fairopt.certificates import Certificate, certify
from fairopt.mechanisms._base import REGISTRY
from fairopt.mechanisms.alphapf_vds import AlphaPFVDS
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.model.merging import Split, merge

#: Two types of servers, five in all; users 3 and 4 are proportional; user 4 may not run on the first type.
TYPED = Cluster(
    [[2, 4], [1, 3], [6, 12], [2, 4], [2, 6]],
    [[1, 2], [1, 1], [2, 1], [1, 0.5], [1, 3]],
    weight=[1, 2, 1, 3, 1],
    eligible=[[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 0, 0, 1]],
)


@given(clusters(), st.booleans(), st.integers(0, 2**32 - 1))
def test_split_is_the_whole_table(cluster: Cluster, users: bool, seed: int) -> None:
    merging = merge(cluster, users=users)
    merged = np.random.default_rng(seed).uniform(0, 1, merging.cluster.shape[:2]) * merging.cluster.gamma
    split, table = Split.of(merging, merged), merging.split_tasks(merged)
    assert_array_equal(split(), table)
    assert split.matches(table)
    assert_allclose(split.user_tasks, table.sum(axis=1), rtol=1e-13)
    assert_allclose(split.use, table.T @ cluster.demand, rtol=1e-12)
    again = Split.from_table(merge(cluster, users=False), table)
    assert_allclose(again.merged, split.merged, rtol=1e-12)


def test_another_split_does_not_match() -> None:
    merging = merge(TYPED.replace(eligible=None), users=False)
    split = Split.of(merging, np.ones(merging.cluster.shape[:2]))
    table = split().copy()
    table[4, [0, 2]] += [1e-9, -1e-9]  # the same sum on the merged server
    assert split.matches(table, 1e-8)
    assert not split.matches(table)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, math.inf])
@settings(max_examples=8)
@given(
    cluster=clusters(styles=("nice", "plain"), max_servers=3),
    seed=st.integers(0, 2**32 - 1),
    bad=st.sampled_from([None, None, -0.5, math.nan, 1e3]),
)
def test_certificates_of_any_tasks_agree(alpha: float, cluster: Cluster, seed: int, bad: float | None) -> None:
    """Feasible or not, tasks or not, optimal or not: judged split or whole."""
    capacity, eligible = np.vstack([cluster.capacity, 3 * cluster.capacity]), np.tile(cluster.eligible, 2)
    cluster = cluster.replace(capacity=capacity, eligible=eligible, servers=None)
    merging = merge(cluster, users=False)
    assert not merging.trivial
    merged = np.random.default_rng(seed).uniform(0, 0.6, merging.cluster.shape[:2]) * merging.cluster.gamma
    if bad is not None and merging.cluster.usable[0, 0]:
        merged[0, 0] = bad
    split = Split.of(merging, merged)
    rule = AlphaPFVDS(alpha).criterion(cluster)
    one, other = certify(cluster, split, rule)[0], certify(cluster, split(), rule)[0]
    assert one.feasibility == pytest.approx(other.feasibility, rel=1e-12, abs=1e-12)
    assert one.optimality == pytest.approx(other.optimality, rel=1e-9, abs=1e-12)
    assert one.measure == other.measure


def test_a_task_where_it_cannot_run() -> None:
    merging = merge(TYPED, users=False)
    merged = np.zeros(merging.cluster.shape[:2])
    merged[4, 0] = 1.0
    certificate = certify(TYPED, Split.of(merging, merged), AlphaPFVDS(2.0).criterion(TYPED))[0]
    assert certificate.feasibility == math.inf
    assert "user5" in certificate.worst


def test_a_mechanism_with_its_own_certificate_is_given_the_table() -> None:
    shapes = []

    @dataclass(frozen=True)
    class Own(AlphaPFVDS):
        name = "own-certificate"

        def certify(self, cluster: Cluster, tasks: Array, prices: Array | None = None) -> tuple[Certificate, None]:
            shapes.append(np.asarray(tasks).shape)
            return Certificate(0.0, 0.0, "complaint", "none"), None

    try:
        Own(2.0).solve(TYPED)
    finally:
        REGISTRY.pop("own-certificate")
    assert shapes[-1] == TYPED.shape[:2]
