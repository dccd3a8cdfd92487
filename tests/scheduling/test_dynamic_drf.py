"""Dynamic DRF: as its program says, and exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import fairopt as fo
from fairopt.errors import DataError
from fairopt.scheduling.dynamic_drf import dynamic_drf

from .draw import pools


@settings(max_examples=15)
@given(cluster=pools(least=0))
def test_the_program_as_written_gives_the_same(cluster: fo.Cluster) -> None:
    np.testing.assert_allclose(dynamic_drf(cluster).level, dynamic_drf(cluster, engine="declarative").level, rtol=1e-7)


@given(cluster=pools())
def test_every_step_is_exact(cluster: fo.Cluster) -> None:
    """Nobody loses, the least rise to where a resource is used up, and to their part at least.

    As everybody needs all resources, one that is used up makes the step optimal, and dynamically Pareto.
    """
    found = dynamic_drf(cluster)
    weight = cluster.weight / cluster.weight.sum()
    demand = cluster.share_per_task / cluster.dominant_share_per_task[:, None]
    before = np.zeros(len(weight))
    for k, x in enumerate(found.share):
        there = np.arange(len(weight)) <= k
        np.testing.assert_allclose(x, np.where(there, np.maximum(before, found.level[k] * weight), 0), 1e-12)
        assert (x >= weight * there * (1 - 1e-12)).all()
        assert (x @ demand).max() == pytest.approx(weight[there].sum(), rel=1e-12)
        before = x


def test_the_order_is_that_of_arrivals_and_servers_are_pooled() -> None:
    cluster = fo.Cluster([[4, 9], [5, 9]], [[1, 4], [3, 1]], users=["A", "B"])
    tasks = dynamic_drf(cluster, ["B", "A"]).tasks
    assert tasks.index.tolist() == ["B", "A"]
    assert tasks["B"].tolist() == pytest.approx([1.5, 2])
    assert tasks["A"].tolist() == pytest.approx([0, 3])


@pytest.mark.parametrize(
    ("cluster", "options", "said"),
    [
        (fo.Cluster([[1]], [[1], [1]]), {"order": ["user1"]}, "order must name every user once"),
        (fo.Cluster([[1, 0]], [[1, 0], [1, 1]]), {}, "'user2' needs a resource"),
        (fo.Cluster([[1]], [[1]], max_tasks=[3]), {}, "task count"),
        (fo.Cluster([[1]], [[1]]), {"engine": "magic"}, "engine is 'magic'"),
    ],
)
def test_what_it_does_not_know_is_named(cluster: fo.Cluster, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        dynamic_drf(cluster, **options)
