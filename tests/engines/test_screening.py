"""Column screening: the same answers as with all pairs, and equations that hold while pairs leave and return."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.engines.linalg import column_screening as rule
from fairopt.engines.welfare import interior_point
from fairopt.model.problem import Problem


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small clusters are screened too."""
    monkeypatch.setattr(rule, "applies", lambda pairs, gap, *_: bool(np.isfinite(gap)))


def spread(seed: int, users: int = 60, servers: int = 40) -> fo.Cluster:
    """Dense, no two servers or users alike."""
    rng = np.random.default_rng(seed)
    capacity = 20 * np.exp(rng.standard_normal((servers, 4)))
    return fo.Cluster(capacity, np.exp(rng.standard_normal((users, 4))))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("alpha", "seed"), [(0.0, 0), (0.3, 1), (1.0, 2), (3.0, 3), (64.0, 0)])
def test_answers_are_those_of_all_pairs(alpha: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = spread(seed)
    found = fo.AlphaFair(alpha).solve(cluster, 1e-9, engine="native")
    monkeypatch.setattr(rule, "applies", lambda *_: False)
    other = fo.AlphaFair(alpha).solve(cluster, 1e-9, engine="native")
    assert found.stats.rounds <= 1.25 * other.stats.rounds + 2  # what those who left had still counts
    if alpha == 0:  # tasks are not unique
        share = found.criterion.share
        assert share @ found.arrays.user_tasks == pytest.approx(share @ other.arrays.user_tasks, rel=1e-8)
    else:  # strict concavity leaves about the square root of the gap
        assert found.arrays.user_tasks == pytest.approx(other.arrays.user_tasks, rel=2e-4)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("seed", range(18))
def test_drawn_clusters_with_limits_weights_zeros_and_placement(seed: int) -> None:
    cluster = draw(("nice", "plain")[seed % 2], seed)
    alpha = (0.0, 0.5, 1.0, 2.0, 8.0, 64.0)[seed % 6]
    found = fo.AlphaFair(alpha).solve(cluster, engine="native")
    assert found.certify().passes(1e-6)
    assert found.arrays.user_tasks.any() == cluster.runnable.any()


@pytest.mark.usefixtures("always")
def test_starts_for_the_next_alpha_have_all_pairs() -> None:
    cluster = spread(5)
    first = fo.AlphaFair(2.0)
    found = list(interior_point.solutions(Problem(cluster, first.criterion(cluster)), 1e-6))[-1]
    next_one = fo.AlphaFair(2.2).criterion(cluster)
    warm = list(interior_point.solutions(Problem(cluster, next_one), 1e-6, found.warm))
    cold = list(interior_point.solutions(Problem(cluster, next_one), 1e-6))
    assert found.warm is not None
    assert warm[-1].tasks.sum(axis=1) == pytest.approx(cold[-1].tasks.sum(axis=1), rel=1e-3)
    assert warm[0].rounds < cold[0].rounds
