"""alpha = 0: linear programs, one per server."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw
from scipy.optimize import linprog

import fairopt as fo


def best_sum(cluster: fo.Cluster, server: int) -> float:
    """The largest sum of fractions that a server can serve when there are no task counts."""
    users = np.flatnonzero(cluster.usable[:, server])
    capacity = cluster.capacity[server]
    use = (cluster.gamma[users, server, None] * cluster.demand[users] / np.where(capacity > 0, capacity, 1.0)).T
    return float(-linprog(-np.ones(len(users)), A_ub=use, b_ub=np.ones(len(use)), bounds=(0, None)).fun)


@pytest.mark.parametrize("seed", range(5))
def test_every_server_has_the_best_sum_of_fractions(seed: int) -> None:
    cluster = draw("plain", seed, 30, 12).replace(max_tasks=None)
    tasks = fo.AlphaPFVDS(0).solve(cluster).tasks
    for i in range(len(cluster.servers)):
        users = np.flatnonzero(cluster.usable[:, i])
        if len(users):
            assert (tasks[users, i] / cluster.gamma[users, i]).sum() == pytest.approx(best_sum(cluster, i), rel=1e-7)


def test_users_without_tasks_are_no_obstacle() -> None:
    """Who needs both resources is served by nobody at alpha = 0; the declared problem divided by what it has."""
    cluster = fo.Cluster([[10, 10.0], [3, 30]], [[1, 0.0], [0, 1], [1, 1]])
    for engine in ("equilibrium", "declarative"):
        found = fo.AlphaPFVDS(0).solve(cluster, engine=engine)
        assert found.arrays.user_tasks == pytest.approx([13, 40, 0], abs=1e-6)
    frame = fo.alpha_path(cluster, [0, 0.5])
    assert list(frame.index) == [0, 0.5]
