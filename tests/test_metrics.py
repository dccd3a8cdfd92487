"""Metrics: by hand, by definition, and their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import clusters

import fairopt as fo
from fairopt.errors import DataError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.papers import instance
from fairopt.result import metrics

EXAMPLE = instance("drf-4.1")


def test_jain_by_hand() -> None:
    assert metrics.jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert metrics.jain_index([0, 0]) == 1
    assert metrics.jain_index([1e-300, 1e-300]) == pytest.approx(1)
    assert metrics.jain_index([1e300, 1e300, 0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("bad", [[], [-1, 1], [np.nan]])
def test_jain_of_nonsense(bad: list[float]) -> None:
    with pytest.raises(DataError, match="at least one value, all finite and >= 0"):
        metrics.jain_index(bad)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_jain_bounds_and_scale(values: list[float], scale: float) -> None:
    found = metrics.jain_index(values)
    assert 1 / len(values) - 1e-12 <= found <= 1 + 1e-12
    if max(values) > 1e-200:
        assert metrics.jain_index([scale * value for value in values]) == pytest.approx(found)


def test_shares_and_price_of_fairness_by_hand() -> None:
    """DRF 4.1: the efficient vertex (45/11, 18/11) has shares 10/11 and 6/11, DRF 2/3 each."""
    fair, efficient = get("drf").solve(EXAMPLE), get("utilitarian", scope="pool").solve(EXAMPLE)
    assert metrics.social_welfare(efficient) == pytest.approx(16 / 11)
    assert metrics.price_of_fairness(fair, efficient) == pytest.approx(1 - (4 / 3) / (16 / 11))
    assert metrics.min_share(efficient) == pytest.approx(6 / 11)
    assert metrics.max_share(efficient) == pytest.approx(10 / 11)


def test_nobody_can_run_anything() -> None:
    idle = get("drf").solve(Cluster([[0]], [[1]]))
    assert np.isinf(metrics.min_share(idle))
    with pytest.raises(DataError, match="no welfare; is anybody able to run a task"):
        metrics.price_of_fairness(idle, idle)


@settings(max_examples=30)
@given(clusters(styles=("nice", "plain")))
def test_fairness_has_a_price_and_use_is_a_part(cluster: Cluster) -> None:
    fair, efficient = get("drfh").solve(cluster), get("utilitarian").solve(cluster)
    use = metrics.utilization(fair).dropna()
    assert ((use >= 0) & (use <= 1 + 1e-9)).all()
    if metrics.social_welfare(efficient) > 0:
        assert -1e-6 <= metrics.price_of_fairness(fair, efficient) < 1
    assert metrics.min_share(fair) >= metrics.min_share(efficient) - 1e-9


def test_a_summary_computes_measures_of_the_allocation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found, due = get("drfh").solve(EXAMPLE), fo.metrics.entitlement(EXAMPLE)
    monkeypatch.setattr("fairopt.mechanisms.Mechanism.solve", lambda *_, **__: pytest.fail("a hidden solve"))
    assert not {*fo.metrics.DUE} & {*found.summary(), *fo.compare(EXAMPLE, [found])}
    assert {*found.summary(["tasks", fo.metrics.distance])} == {"tasks", "distance", "certificate", "seconds"}
    assert fo.compare(EXAMPLE, [found], entitled=due)["distance"].tolist() == [0]
    with pytest.raises(DataError, match="no measure 'distances'; there are tasks, min_share"):
        found.summary(["distances"])
