"""What is no allocation at all, or leaves somebody with nothing, never passes; the reason is named."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE

from fairopt.certificates import Certificate, feasibility
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster

REASONS = [
    ([[4.0], [2.0]], "largest for 'resource1' of 'server1', overused", 10 / 9 - 1),
    ([[3.0], [np.nan]], "not finite", np.inf),
    ([[-0.3], [2.0]], "largest for user 'user1', with negative tasks", 0.3 / 4.5),
    ([[3.0]], "shape", np.inf),
]


@pytest.mark.parametrize(("tasks", "reason", "size"), REASONS)
@pytest.mark.parametrize("name", ["drf", "ceei", "ps-dsf", "alphapf-vds", "bottleneck-fairness", "per-server-drf"])
def test_infeasible_tasks_are_caught_with_the_reason(
    name: str, tasks: list[list[float]], reason: str, size: float
) -> None:
    worst, where = feasibility(EXAMPLE, np.array(tasks))
    assert worst == pytest.approx(size)
    assert reason in where
    found = get(name).certify(EXAMPLE, np.array(tasks))[0]
    assert not found.passes(1e-2)
    if name == "bottleneck-fairness" and np.isinf(size):  # its own judge
        assert reason in found.worst
    else:
        assert found.feasibility == pytest.approx(size)


def test_ineligible_and_without_tasks_to_run() -> None:
    barred = EXAMPLE.replace(eligible=[[True], [False]])
    worst, where = feasibility(barred, np.array([[3.0], [1e-9]]))
    assert np.isinf(worst)
    assert "user 'user2' has tasks on 'server1', which cannot run them" in where
    nothing = EXAMPLE.replace(max_tasks=[0, np.inf])
    assert feasibility(nothing, np.array([[1e-6], [1.0]]))[0] > 1
    assert feasibility(nothing, np.array([[0.0], [1.0]])) == (0.0, "feasible")


@pytest.mark.parametrize(
    "name", ["drf", "drfh", "ceei", "alpha-fair", "tsf", "ps-dsf", "alphapf-vds", "fds", "per-server-drf"]
)
def test_a_runnable_user_left_with_nothing_never_passes(name: str) -> None:
    two = Cluster([[9, 18], [3, 4]], EXAMPLE.demand)
    cluster = get(name).prepare(two)[0]
    found = get(name).certify(cluster, np.full((1, cluster.shape[1]), 0.5) * [[1], [0]])[0]
    assert found.optimality == np.inf
    assert name != "drfh" or "'user2' has no tasks, although it could run some" in found.worst
    assert "user2" in found.worst
    few = get(name).certify(cluster, np.full((1, cluster.shape[1]), 0.5) * [[1], [1e-310]])[0]
    assert not few.passes(0.1)
    assert not np.isfinite(few.condition) or few.optimality < np.inf  # and is read without an error


def test_residual_is_the_worse_and_nan_never_passes() -> None:
    assert Certificate(1e-9, 2e-9, "backward error", "").residual == 2e-9
    assert Certificate(3e-9, 2e-9, "backward error", "").residual == 3e-9
    for bad in (Certificate(np.nan, 0.0, "", ""), Certificate(0.0, np.nan, "", "")):
        assert bad.residual == np.inf
        assert not bad.passes(1e9)
    assert Certificate(0.0, 1e-6, "", "").passes(1e-6)
    assert "backward error=2.0e-09" in repr(Certificate(1e-9, 2e-9, "backward error", "x"))
