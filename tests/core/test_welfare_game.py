"""The game by the core's interior point, whichever is eliminated first: conditions as they are written."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.welfare import run
from fairopt.model.problem import Problem


@pytest.mark.parametrize("shape", [(5, 120), (60, 12)])
@pytest.mark.parametrize("game", [True, False])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0, 8.0])
def test_conditions(alpha: float, game: bool, shape: tuple[int, int]) -> None:
    """No row is overused, priced rows are full, and users run where a task costs them what it is worth."""
    rng, (users, servers) = np.random.default_rng(3), shape
    capacity, demand = rng.gamma(4, 0.25, (servers, 2)) + 0.05, rng.gamma(2, 0.5, (users, 2)) + 0.05
    eligible = np.ones(shape, dtype=bool)
    eligible[1, ::3] = False
    cluster = fo.Cluster(capacity, demand, eligible=eligible)
    mechanism = fo.AlphaPFVDS(alpha) if game else fo.AlphaFair(alpha)
    problem = Problem(cluster, mechanism.criterion(cluster))
    polytope, found = problem.polytope, run(problem, 1e-9)
    assert found.error < 1e-7
    tasks = polytope.user_tasks(found.fractions)
    price = polytope.by_server(np.exp(found.log_rows))
    idle = 1 - polytope.by_server(polytope.used(polytope.allocation(found.fractions)))
    user, server = polytope.pair_user, polytope.pair_server
    marginal = problem.criterion.log_marginal(tasks)
    worth = np.exp(marginal[user, server] if game else marginal[user])
    slack = (polytope.pair_use * price[server]).sum(axis=1) / polytope.gamma / worth - 1
    assert (found.fractions >= 0).all()
    assert idle.min() > -1e-7
    assert slack.min() > -1e-6
    assert (found.fractions * polytope.gamma / tasks[user] * np.maximum(slack, 0)).max() < 1e-6
    assert (price / price.max(axis=1, keepdims=True) * np.maximum(idle, 0)).max() < 1e-6
