"""Mechanisms with floors keep them: by what their docstrings promise, computed here, and not by their criteria."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from fairopt.mechanisms import Mechanism
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster

from .registry import MANY, OTHERS, VARIANTS, applicable, identify, one_answer


def partition(mechanism: Mechanism, cluster: Cluster) -> Array:
    """A part of what each user runs alone with its weight's part of every server that it may use, (users,)."""
    result = np.zeros(len(cluster.users))
    for n, row in enumerate(cluster.demand):
        for i, capacity in enumerate(cluster.capacity):
            if cluster.eligible[n, i]:
                alone = min(c / d for c, d in zip(capacity, row, strict=True) if d > 0)
                result[n] += cluster.weight[n] / sum(cluster.weight) * alone
        result[n] = min(mechanism.part * result[n], cluster.max_tasks[n])  # type: ignore[attr-defined]
    return result


UNIQUE_TOO = [mechanism for mechanism in [*VARIANTS, *OTHERS] if one_answer(mechanism)]
#: A criterion that forgets its floors must not exempt itself: the class says so too (`test_invariances`).
WITH_FLOORS = [mechanism for mechanism in [*VARIANTS, *OTHERS] if mechanism.has_floors]


@pytest.mark.parametrize("mechanism", WITH_FLOORS, ids=identify)
def test_floors_are_kept(mechanism: Mechanism) -> None:
    @settings(max_examples=MANY // 3)
    @given(applicable(mechanism))
    def law(cluster: Cluster) -> None:
        found = mechanism.solve(cluster)
        promised = partition(mechanism, cluster)
        assert (found.arrays.user_tasks >= promised * (1 - 1e-6)).all()

    law()


#: Without floors somebody has less than its part.
SHORT = Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])


@pytest.mark.parametrize("mechanism", WITH_FLOORS, ids=identify)
def test_a_floor_that_binds(mechanism: Mechanism) -> None:
    """The law above would be vacuous if nobody came near a floor. What has no floors does not pass here."""
    promised = partition(mechanism, SHORT)
    without = replace(mechanism, part=0.0).solve(SHORT)  # type: ignore[call-arg]
    if (without.arrays.user_tasks >= promised * (1 - 1e-3)).all():
        assert mechanism.certify(SHORT, without.tasks, without.log_prices)[0].passes()
        return
    assert not mechanism.certify(SHORT, without.tasks, without.log_prices)[0].passes(1e-3)
    for engine in mechanism.engines(mechanism.criterion(SHORT)):
        least = (mechanism.solve(SHORT, engine=engine).arrays.user_tasks / promised).min()
        assert least == pytest.approx(1.0, rel=1e-6) if mechanism in UNIQUE_TOO else least >= 1 - 1e-6


def test_some_floors_bind() -> None:
    alphas = [m for m in WITH_FLOORS if m.solve(SHORT).criterion.surplus(m.solve(SHORT).arrays.user_tasks).min() < 1e-6]
    assert len(alphas) >= 2
