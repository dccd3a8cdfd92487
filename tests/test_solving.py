"""What one solve builds: everything once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import SolverError


def test_a_derived_cluster_is_the_checked_one() -> None:
    cluster = fo.Cluster([[4, 2], [1, 1]], [[1, 1], [2, 1]], eligible=[[1, 1], [0, 1]])
    assert cluster.derived(weight=2 * cluster.weight) == cluster.replace(weight=2 * cluster.weight)
    everywhere = cluster.derived(eligible=None)
    assert everywhere == cluster.replace(eligible=None)
    assert not everywhere.constrained
    with pytest.raises(ValueError, match="read-only"):
        everywhere.demand[0, 0] = 5


def _exhausted(*_: object, **__: object) -> Any:
    raise MemoryError


def test_an_engine_without_memory_is_a_candidate_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, mechanism = fo.Cluster([[9, 18], [5, 2]], [[1, 4], [3, 1]]), fo.DRFH()
    expected = mechanism.solve(cluster).user_tasks
    monkeypatch.setattr("fairopt.engines.native.solutions", _exhausted)
    found = mechanism.solve(cluster)
    assert found.stats.engine == "declarative"
    np.testing.assert_allclose(found.user_tasks, expected, rtol=1e-5)
    monkeypatch.setattr("fairopt.engines.reference.declarative.solutions", _exhausted)
    size = "ran out of memory on 2 users x 2 servers x 2 resources, 4 pairs"
    with pytest.raises(SolverError, match=f"native engine {size}; the declarative engine {size}"):
        mechanism.solve(cluster)
