"""Enclosures contain true answers, and nothing is enclosed that is no answer."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.properties import _enclosure, get
from fairopt.properties._enclosure import Enclosure, enclosed
from fairopt.properties._search import draw


def box(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> Enclosure | None:
    found = mechanism.solve(cluster, 1e-9)
    return enclosed(found.cluster, found.criterion, found.tasks, found.log_prices)


def contains(found: Enclosure | None, tasks: list[F]) -> bool:
    return all(a <= x <= b for a, x, b in zip(found.low.sum(axis=1), tasks, found.high.sum(axis=1), strict=True))


def test_answers_that_are_known() -> None:
    cluster = fo.papers.instance("drf-4.1")
    assert contains(box(fo.CEEI(), cluster), [F(45, 11), F(18, 11)])  # DRF 5.2
    lie = fo.papers.instance("drf-thm4")
    assert contains(box(fo.AlphaPFVDS(1.0), lie), [F(100, 31), F(1500, 31)])  # DRF, theorem 4
    # Both users hold the one resource, x_n d_n proportional to d_n^(1 - 1/alpha): 1/3 and 2/3 at alpha = 2, d = 1, 4.
    found = box(fo.mechanisms.get("alpha-fair", alpha=2.0, share="task"), fo.Cluster([[6]], [[1], [4]]))
    assert contains(found, [F(2), F(1)])


@pytest.mark.parametrize("alpha", [0.3, 0.5, 2.0, 3.0, 16.0])
def test_random_clusters(alpha: float) -> None:
    """Boxes are narrow, around the computed tasks, and within the capacities."""
    rng, seen = np.random.default_rng(int(10 * alpha)), 0
    for _ in range(20):
        cluster = draw(rng, get("envy-freeness"))
        answer = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
        found = enclosed(cluster, answer.criterion, answer.tasks, answer.log_prices)
        if found is None:
            continue
        seen += 1
        tasks = np.array(found.low, dtype=float)
        assert_allclose(tasks.sum(axis=1), answer.arrays.user_tasks, rtol=1e-6, atol=1e-9)
        width = (found.high - found.low).max()
        assert width <= F(1, 10**12) * (1 + found.high.max())
        use = np.array([(found.high[:, i] * row).sum() for i in range(len(tasks.T)) for row in cluster.demand.T])
        assert (use.astype(float) <= cluster.capacity.ravel() * (1 + 1e-9)).all()
    assert seen >= 5


def test_what_is_no_answer_is_not_enclosed() -> None:
    cluster = fo.Cluster([[9, 18], [4, 6]], [[1, 4], [3, 1]])
    answer = fo.AlphaPFVDS(2.0).solve(cluster, 1e-9)
    good = enclosed(cluster, answer.criterion, answer.tasks, answer.log_prices)
    assert good is not None
    # Everybody on one server, which is an equilibrium of that server and not of both.
    alone = fo.AlphaPFVDS(2.0).solve(cluster.select(servers=[cluster.servers[0]]), 1e-9)
    tasks = np.column_stack([alone.arrays.user_tasks, [0, 0]])
    assert enclosed(cluster, answer.criterion, tasks, np.vstack([alone.log_prices, [[-np.inf] * 2]])) is None
    # Another alpha has another answer: Newton's method goes there, and not to these tasks.
    other = fo.AlphaPFVDS(4.0).solve(cluster, 1e-9)
    moved = enclosed(cluster, other.criterion, answer.tasks, answer.log_prices)
    if moved is not None:
        assert_allclose(moved.low.sum(axis=1).astype(float), other.arrays.user_tasks, rtol=1e-9)


def test_limits() -> None:
    """A user with all its tasks is at its limit exactly, and the other takes the rest."""
    cluster = fo.Cluster([[6, 6]], [[1, 2], [2, 1]], max_tasks=[1, np.inf])
    found = box(fo.AlphaPFVDS(2.0), cluster)
    assert found.low[0, 0] == found.high[0, 0] == 1
    assert contains(found, [F(1), F(5, 2)])


def test_ties_are_not_enclosed() -> None:
    """Identical servers leave the split free; and max-min has no equations of this kind."""
    cluster = fo.Cluster([[2], [2]], [[1], [2]])
    assert box(fo.AlphaPFVDS(2.0), cluster) is None
    assert box(fo.DRF(), cluster) is None
    answer = fo.AlphaPFVDS(2.0).solve(cluster)
    assert enclosed(cluster, answer.criterion, answer.tasks, None) is None


def test_too_many_equations_are_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = fo.Cluster([[2.0]], [[1], [2]])
    assert box(fo.AlphaPFVDS(2.0), cluster) is not None
    monkeypatch.setattr(_enclosure, "_SIZE", 2)
    assert box(fo.AlphaPFVDS(2.0), cluster) is None
