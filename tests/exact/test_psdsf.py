"""PS-DSF in fractions, by its definition."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np

import fairopt as fo
from fairopt.exact.rational import is_psdsf, nearest_psdsf


def fractions(rows: list[list[object]]) -> np.ndarray:
    return np.array([[F(value) for value in row] for row in rows], dtype=object)


def test_the_definition() -> None:
    """Catalogue, item 41: x_1 may be anything from 4 to 74/17."""
    cluster = fo.papers.instance("found-41")
    found = nearest_psdsf(cluster, fo.PSDSF().solve(cluster, 1e-9).tasks)
    assert F(4) <= found.sum(axis=1)[0] <= F(74, 17)
    assert is_psdsf(cluster, found)
    assert not is_psdsf(cluster, found * F(999, 1000))  # nothing is used up
    assert not is_psdsf(cluster, found * F(1001, 1000))  # more than there is
    assert not is_psdsf(cluster, -found)


def test_levels_decide() -> None:
    cluster = fo.Cluster([[6]], [[1], [2]], [1, 2])
    assert is_psdsf(cluster, fractions([[2], [2]]))  # weighted: 1/3 and 2/3 of the resource
    assert not is_psdsf(cluster, fractions([[3], ["3/2"]]))
    assert not is_psdsf(cluster, fractions([[4], [1]]))
    limited = fo.Cluster([[6]], [[1], [2]], [1, 2], max_tasks=[1, np.inf])
    assert is_psdsf(limited, fractions([[1], ["5/2"]]))
    assert not is_psdsf(limited, fractions([[2], [2]]))
    barred = fo.Cluster([[6], [6]], [[1], [2]], eligible=[[1, 0], [1, 1]])
    assert is_psdsf(barred, fractions([[6, 0], [0, 3]]))
    assert not is_psdsf(barred, fractions([[0, 6], [3, 0]]))


def test_what_is_no_simple_fraction() -> None:
    cluster = fo.Cluster([[6]], [[1], [2]])
    assert nearest_psdsf(cluster, np.array([[3.0], [1.5]])) is not None
    assert nearest_psdsf(cluster, np.array([[3.001], [1.4995]])) is None
    assert nearest_psdsf(cluster, np.array([[np.pi], [1.5]])) is None
