"""What two users can have, by hand; the picture of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.result.plot import border


def test_the_border_of_two_servers_is_the_sum_of_theirs() -> None:
    """Sides of both, in the order of their slopes (Minkowski)."""
    first, second = ([[9.0, 18.0]], [[8.0, 2.0]])
    demand = [[1, 4], [3, 1]]
    both = border(fo.Cluster(first + second, demand))
    sides = np.vstack([np.diff(border(fo.Cluster(one, demand)), axis=0) for one in (first, second)])
    sides = sides[np.argsort(np.arctan2(-sides[:, 0], sides[:, 1]))]
    start = border(fo.Cluster(first, demand))[0] + border(fo.Cluster(second, demand))[0]
    np.testing.assert_allclose(both[-1], start + sides.sum(axis=0), atol=1e-9)
    for corner in np.vstack([start, start + np.cumsum(sides, axis=0)]):
        assert min(_away(corner, a, b) for a, b in pairwise(both)) < 1e-8


def _away(point: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    part = np.clip((point - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    return float(np.abs(a + part * (b - a) - point).max())


def test_limits_and_placement_count() -> None:
    cluster = fo.Cluster([[4], [6]], [[1], [1]], eligible=[[True, False], [True, True]], max_tasks=[np.inf, 7])
    np.testing.assert_allclose(border(cluster), [[4, 6], [3, 7]], atol=1e-9)


def test_it_needs_two_users_that_can_run_something() -> None:
    with pytest.raises(DataError, match="needs two; this cluster has 3"):
        border(fo.Cluster([[1]], [[1], [1], [1]]))
    with pytest.raises(DataError, match="draws answers"):
        fo.plot.two_users()
    here, there = (fo.DRF().solve(fo.Cluster([[9, 18]], [[1, k], [3, 1]])) for k in (4, 5))
    with pytest.raises(DataError, match="several"):
        fo.plot.two_users(here, there)


def test_the_picture() -> None:
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    path = fo.alpha_path(cluster, [1, 4, float("inf")], mechanism="alpha-fair").allocations
    figure = fo.plot.two_users(fo.DRF().solve(cluster), fo.CEEI().solve(cluster), path=list(path))
    axes = figure.axes[0]
    assert axes.get_xlabel() == "tasks of A"
    marks = {line.get_label(): line.get_xydata() for line in axes.lines}
    np.testing.assert_allclose(marks["DRF"], [[3, 2]], rtol=1e-6)
    np.testing.assert_allclose(marks["path of α"][[0, -1]], [[45 / 11, 18 / 11], [3, 2]], rtol=1e-6)


def test_the_area_goes_down_to_the_axis() -> None:
    """Where user 1 leaves user 2 something even at its most, as 4 of 10 servers that only user 2 may use."""
    cluster = fo.Cluster([[4], [6]], [[1], [1]], eligible=[[True, False], [True, True]], max_tasks=[3, 7])
    (area,) = fo.plot.two_users(fo.DRFH().solve(cluster)).axes[0].patches
    assert area.contains_point(area.get_transform().transform((2.9, 0.1)))
    assert not area.contains_point(area.get_transform().transform((3.1, 0.1)))


def test_every_corner_is_found() -> None:
    """Resources whose limits touch the unit circle: corners lie between neighbours, where their lines meet."""
    angles = np.linspace(0.1, 1.4, 9)
    found = border(fo.Cluster(np.ones((1, 9)), [np.cos(angles), np.sin(angles)]))
    middle, half = (angles[1:] + angles[:-1]) / 2, (angles[1] - angles[0]) / 2
    corners = np.column_stack([np.cos(middle), np.sin(middle)]) / np.cos(half)
    np.testing.assert_allclose(found[1:-1], corners, atol=1e-9)
    assert len(found) == 10
