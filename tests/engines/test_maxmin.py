"""The native engine of max-min: against exact arithmetic, against the reference, and what its prices prove."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from families import some_zero
from hypothesis import given, settings
from strategies import clusters

from fairopt.certificates import _linear, certify, rational
from fairopt.core import level
from fairopt.core import leximin as core
from fairopt.core.engines import maxmin
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

#: Users 1..4 may run on the first servers only, each on one more: prices fall from server to server.
NESTED = Cluster([[4, 4], [6, 3], [3, 9], [8, 8]], [[1, 1], [1, 2], [2, 1], [1, 1]], eligible=np.tri(4, dtype=bool))


@settings(max_examples=50)
@given(clusters(styles=("nice", "plain"), max_users=8, max_servers=6))
def test_proved_by_arithmetic_alone(cluster: Cluster) -> None:
    """Whatever the engine answers comes with prices that leave nothing to the judge's linear programs."""

    def never(*_: object) -> None:
        raise AssertionError("the prices did not prove it")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_linear, "maximise", never)
        found = get("drfh").solve(cluster, engine="native")
        assert found.certificate.residual <= 1e-6
        again = found.certify()  # of the whole table, where servers were merged: rounded otherwise
        assert again.residual == pytest.approx(found.certificate.residual, abs=1e-12)


def test_the_reference_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "advance", lambda *_: None)
    assert get("drfh").solve(NESTED).stats.solver == "rational simplex"
    monkeypatch.setattr(rational, "WORK", 0)
    found = get("drfh").solve(NESTED)
    assert found.stats.engine == "declarative"
    assert "the native engine did not reach the tolerance" in found.notes[-1]


def test_water_filling_of_a_large_pool() -> None:
    rng = np.random.default_rng(0)
    demand = some_zero(rng, np.exp(rng.standard_normal((20_000, 5))), 0.7)
    limit = np.where(rng.random(20_000) < 0.3, rng.uniform(0, 1e-4, 20_000), np.inf)
    cluster = Cluster(np.ones((1, 5)), demand, max_tasks=limit)
    floor = np.where(rng.random(20_000) < 0.1, np.minimum(2e-5, limit), 0.0)
    criterion = replace(get("drf").criterion(cluster), floor=floor)
    tasks = maxmin.filled(Polytope(cluster, cluster.max_tasks), criterion)
    assert 100 < (tasks[:, 0] == floor)[floor > 0].sum() < 1000
    # Rounding in sums of 20,000 users is large beside those who need little of what blocks them.
    assert certify(cluster, tasks, criterion)[0].residual < 1e-6


def test_an_answer_with_weak_proofs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels known to 1e-5 only: an answer for the judge, not nothing."""
    bounds = level.State.bounds
    monkeypatch.setattr(level.State, "bounds", lambda at: (bounds(at)[0], bounds(at)[1] * (1 + 1e-5), bounds(at)[2]))
    found = get("drfh").solve(NESTED, engine="native", throw=False)
    assert found.stats.status == "levels with loose bounds"
    assert found.certificate.residual < 1e-6


@pytest.mark.parametrize("seed", [575, 4091])
def test_a_step_corrected_in_the_same_direction_twice(seed: int) -> None:
    """Two to four users, of whom some stop at their limits: what is left wrong is one number, and gone at once."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(2, 5))
    demand = some_zero(rng, np.exp(rng.standard_normal((users, 2))), 0.6)
    capacity = 10 * np.exp(rng.standard_normal((2, 2)))
    limit = np.where(rng.random(users) < 0.4, rng.random(users) * 5, np.inf)
    found = get("drfh").solve(Cluster(capacity, demand, max_tasks=limit))
    assert found.stats.engine == "native"
    assert found.certificate.residual < 1e-9
