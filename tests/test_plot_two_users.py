"""What two users can have, by hand; the picture of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError
from fairopt.result.plot import border


def test_the_border_of_two_servers_is_the_sum_of_theirs() -> None:
    """Sides of both, in the order of their slopes (Minkowski)."""
    cluster = fo.Cluster([[9, 18], [8, 2]], [[1, 4], [3, 1]])
    alone = [border(cluster.select(servers=[server])) for server in cluster.servers]
    sides = np.vstack([np.diff(one, axis=0) for one in alone])
    sides = sides[np.argsort(np.arctan2(-sides[:, 0], sides[:, 1]))]
    corners = alone[0][0] + alone[1][0] + np.vstack([np.zeros(2), np.cumsum(sides, axis=0)])
    both = border(cluster)
    assert_allclose(np.interp(corners[:, 1], both[:, 1], both[:, 0]), corners[:, 0], atol=1e-8)
    assert_allclose(both[[0, -1]], corners[[0, -1]], atol=1e-9)


PLACED = fo.Cluster([[4], [6]], [[1], [1]], eligible=[[True, False], [True, True]], max_tasks=[np.inf, 7])


def test_limits_and_placement_count() -> None:
    assert_allclose(border(PLACED), [[4, 6], [3, 7]], atol=1e-9)


def test_it_needs_two_users_that_can_run_something() -> None:
    with pytest.raises(DataError, match="needs two; this cluster has 3"):
        border(fo.Cluster([[1]], [[1], [1], [1]]))
    here, there = (fo.DRF().solve(fo.Cluster([[9, 18]], [[1, k], [3, 1]])) for k in (4, 5))
    with pytest.raises(DataError, match="several"):
        fo.plot.two_users(here, there)
    with pytest.raises(DataError, match="draws answers"):
        fo.plot.two_users(PLACED)  # type: ignore[arg-type]


def test_the_picture() -> None:
    cluster = fo.papers.instance("drf-4.1")
    path = fo.alpha_path(cluster, [1, 4, float("inf")], mechanism="alpha-fair").allocations
    figure = fo.plot.two_users(fo.DRF().solve(cluster), fo.CEEI().solve(cluster), path=list(path))
    marks = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    assert_allclose(marks["DRF"], [[3, 2]], rtol=1e-6)
    assert_allclose(marks["path of α"][[0, -1]], [[45 / 11, 18 / 11], [3, 2]], rtol=1e-6)


def test_the_area_goes_down_to_the_axis() -> None:
    """Where user 1 leaves user 2 something even at its most, as 4 of 10 servers that only user 2 may use."""
    (area,) = fo.plot.two_users(fo.DRFH().solve(PLACED.with_max_tasks("user1", 3))).axes[0].patches
    assert area.contains_point(area.get_transform().transform((2.9, 0.1)))
    assert not area.contains_point(area.get_transform().transform((3.1, 0.1)))


def test_every_corner_is_found() -> None:
    """Resources whose limits touch the unit circle: corners lie between neighbours, where their lines meet."""
    angles = np.linspace(0.1, 1.4, 9)
    found = border(fo.Cluster(np.ones((1, 9)), [np.cos(angles), np.sin(angles)]))
    middle, half = (angles[1:] + angles[:-1]) / 2, (angles[1] - angles[0]) / 2
    corners = np.column_stack([np.cos(middle), np.sin(middle)]) / np.cos(half)
    assert_allclose(found[1:-1], corners, atol=1e-9)
    assert len(found) == 10
