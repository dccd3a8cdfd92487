"""Patterns of rows and of who can use what, against their definitions over all pairs."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given, settings
from numpy.typing import NDArray
from strategies import clusters

from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge


def same(numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    return np.asarray(numbers[:, None] == numbers[None, :])


@settings(max_examples=80)
@given(clusters())
def test_groups_of_servers_by_definition(cluster: Cluster) -> None:
    """Merged are servers with proportional capacities and the same usable users, and no others."""
    usable = cluster.gamma > 0
    size = cluster.capacity.max(axis=1, keepdims=True)
    direction = np.divide(cluster.capacity, size, out=np.zeros_like(cluster.capacity), where=size > 0)
    proportional = (np.abs(direction[:, None, :] - direction[None, :, :]) <= 1e-10 * direction[:, None, :]).all(axis=2)
    together = proportional & (usable[:, :, None] == usable[:, None, :]).all(axis=0)
    np.testing.assert_array_equal(same(merge(cluster, users=False).server_of), together)


@settings(max_examples=50)
@given(clusters())
def test_constrained(cluster: Cluster) -> None:
    assert cluster.constrained == (not cluster.eligible.all())
    assert pickle.loads(pickle.dumps(cluster)).constrained == cluster.constrained


def test_everywhere_takes_no_room() -> None:
    for eligible in (None, np.ones((3, 4)), np.ones((3, 4), dtype=bool)):
        cluster = Cluster(np.ones((4, 1)), np.ones((3, 1)), eligible=eligible)
        assert cluster.eligible.shape == (3, 4)
        assert cluster.eligible.all()
        assert cluster.eligible.strides == (0, 0)
        assert not cluster.eligible.flags.writeable
        assert cluster.replace(weight=2.0).eligible.strides == (0, 0)
    assert cluster.with_eligible("user1", [True, False, True, True]).constrained
    nobody = Cluster([[1.0]], [[1.0]], eligible=[[False]])
    assert nobody.constrained
    assert not nobody.runnable.any()
