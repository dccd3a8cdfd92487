"""Servers' problems as they are declared: right at every alpha, from every start, or refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import some_zero

import fairopt as fo
from fairopt.errors import SolverError
from fairopt.game import best_response
from fairopt.mechanisms import get
from fairopt.mechanisms.reference.server_problem import Response, ServerProblem, residual
from fairopt.model._arrays import Array
from fairopt.model.polytope import Polytope

#: The variant of PF's example with a third server and a fifth user, free and with limits that bind.
FREE = fo.Cluster(
    [[12.0, 4.0, 75.0], [8.0, 16.0, 0.0], [5.0, 5.0, 5.0]],
    [[1.0, 1.0, 5.0], [1.0, 1 / 3, 0.0], [0.25, 1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.0]],
)
LIMITED = FREE.replace(max_tasks=[math.inf, 3, math.inf, math.inf, 2])


def problem_of(cluster: fo.Cluster, alpha: float, server: int = 0) -> ServerProblem:
    mechanism = get("alphapf-vds", alpha=alpha)
    rule = mechanism.criterion(cluster)
    return ServerProblem(Polytope(cluster, rule.limits(cluster)), rule, server)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, 20.0, 64.0])
@pytest.mark.parametrize("cluster", [FREE, LIMITED], ids=["free", "limited"])
def test_an_equilibrium_stays_where_it_is(cluster: fo.Cluster, alpha: float) -> None:
    """Users with far more than others cannot be seen beside these, nor beside those at their limit.

    Prices were once fitted to users at their limit too, who pay less than they would.
    """
    native = best_response(cluster, alpha, tol=1e-10, max_rounds=5000)
    declared = best_response(cluster, alpha, start=native.tasks, server_solver="cvxpy", max_rounds=3)
    np.testing.assert_allclose(declared.arrays.user_tasks, native.arrays.user_tasks, rtol=1e-6)
    assert "no response would change" in declared.trace.reason
    assert declared.trace.frame["exploitability"].iloc[-1] <= 1e-6


@pytest.mark.parametrize("order", ["cyclic", "jacobi", "asynchronous"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 20.0, 64.0, math.inf])
def test_from_no_tasks_at_all(alpha: float, order: str) -> None:
    given: dict[str, Any] = {"start": np.zeros((5, 3)), "order": order, "rng": 0, "max_rounds": 2, "tol": 1e-12}
    runs = [best_response(FREE, alpha, server_solver=name, throw=False, **given) for name in ("native", "cvxpy")]
    np.testing.assert_allclose(runs[1].arrays.user_tasks, runs[0].arrays.user_tasks, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, 8.0, 20.0, 64.0, 200.0, math.inf])
def test_every_answer_is_right(alpha: float) -> None:
    """Random servers, with users far apart and at limits: tasks and prices meet the conditions.

    Shares that are handed in are in any unit: none, ones, or numbers that have nothing to do with the answer.
    """
    for seed in range(4):
        rng = np.random.default_rng(seed)
        users, resources = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        demand = rng.uniform(0.25, 5, (users, resources))
        if seed % 2:
            demand = some_zero(rng, demand, 0.6)
        cluster = fo.Cluster(rng.uniform(0.25, 5, (1, resources)), demand, rng.uniform(0.5, 2, users))
        elsewhere = rng.choice([0, 0.05, 0.3, 1.5], users) * cluster.gamma[:, 0]
        if seed % 4 > 1:
            room = rng.choice([0.05, 0.1, 0.3, np.inf], users)
            cluster = cluster.replace(max_tasks=elsewhere + room * cluster.gamma[:, 0])
        for share in (np.zeros(users), np.ones(users), 10 ** rng.uniform(-3, 3, users)):
            found = problem_of(cluster, alpha).best(elsewhere, share)
            assert found.residual <= 2e-6, seed


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 8.0, 64.0, math.inf])
def test_the_conditions_notice(alpha: float) -> None:
    """A right answer meets them; with tasks moved, idle or over capacity, or other prices, it does not."""
    problem = problem_of(FREE, alpha)
    program, elsewhere = problem.program, 0.2 * problem_of(FREE, alpha).program.gamma
    right = problem.best(elsewhere, elsewhere / program.gamma)
    assert right.residual <= 1e-6

    def now(fraction: Array, log_price: Array = right.log_price) -> float:
        return residual(program, elsewhere, fraction, log_price)

    assert now(0.99 * right.fraction) > 1e-3
    assert now(1.01 * right.fraction) > 5e-3
    served = int(right.fraction.argmax())
    moved = right.fraction * np.where(np.arange(5) == served, 0.9, 1.0)
    assert now(moved) > 1e-3
    if 0 < alpha < math.inf:
        assert now(right.fraction, right.log_price + 0.1) > 1e-4
        assert now(right.fraction, right.log_price - 0.1) > 1e-4
        assert now(right.fraction, np.full(len(right.log_price), -np.inf)) > 1e-2


def test_what_cannot_be_trusted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    best = ServerProblem.best

    def worse(*given: Any) -> Response:
        return replace(best(*given), residual=2e-4)

    monkeypatch.setattr(ServerProblem, "best", worse)
    with pytest.raises(SolverError, match=r"server 'server1' for alpha=2 .*wrong by 2.0e-04.*server_solver='native'"):
        best_response(FREE, 2.0, server_solver="cvxpy", throw=False)
