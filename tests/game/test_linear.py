"""alpha = 0: linear programs, one per server, may leave users without tasks."""

from __future__ import annotations

import pytest

import fairopt as fo


def test_users_without_tasks_are_no_obstacle() -> None:
    """Who needs both resources is served by nobody at alpha = 0; the declared problem divided by what it has."""
    cluster = fo.Cluster([[10, 10.0], [3, 30]], [[1, 0.0], [0, 1], [1, 1]])
    for engine in ("equilibrium", "declarative"):
        found = fo.AlphaPFVDS(0).solve(cluster, engine=engine)
        assert found.arrays.user_tasks == pytest.approx([13, 40, 0], abs=1e-6)
    frame = fo.alpha_path(cluster, [0, 0.5])
    assert list(frame.index) == [0, 0.5]
