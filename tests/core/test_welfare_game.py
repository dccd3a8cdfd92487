"""The game by the core's interior point, whichever is eliminated first: conditions as they are written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificates import certify
from fairopt.certificates.backward import error_at
from fairopt.core import welfare
from fairopt.core.market import Market
from fairopt.core.welfare import run
from fairopt.model.problem import Problem


@pytest.mark.parametrize("shape", [(5, 120), (60, 12)])
@pytest.mark.parametrize("game", [True, False])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0, 8.0])
def test_conditions(alpha: float, game: bool, shape: tuple[int, int]) -> None:
    """To the certificate, which knows nothing of the engine; it tries several levels, of which the engine knows one."""
    rng, (users, servers) = np.random.default_rng(3), shape
    capacity, demand = rng.gamma(4, 0.25, (servers, 2)) + 0.05, rng.gamma(2, 0.5, (users, 2)) + 0.05
    eligible = np.ones(shape, dtype=bool)
    eligible[1, ::3] = False
    cluster = fo.Cluster(capacity, demand, eligible=eligible)
    problem = Problem(cluster, (fo.AlphaPFVDS if game else fo.AlphaFair)(alpha).criterion(cluster))
    polytope, found = problem.polytope, run(problem, 1e-9)
    assert found.error < 1e-7
    tasks, prices = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    certificate = certify(cluster, tasks, problem.criterion, prices)[0]
    assert certificate.feasibility <= 1e-12
    assert certificate.optimality <= found.error * (1 + 1e-3) + 1e-13
    rows = polytope.log_row_prices(prices)
    assert error_at(polytope, problem.criterion, tasks, rows, 1e-9) == pytest.approx(found.error, rel=1e-3, abs=1e-13)


@pytest.mark.parametrize("shape", [(5, 120), (60, 12)])
def test_prices_that_are_hundreds_of_decades_apart(shape: tuple[int, int]) -> None:
    """Two parts, one of which has twice as much: its prices are 2^-500 of the other's, which doubles hold."""
    rng, (users, servers) = np.random.default_rng(3), shape
    late = np.arange(servers) % 3 == 0
    capacity, demand = rng.gamma(4, 0.25, (servers, 2)) + 0.05, rng.gamma(2, 0.5, (users, 2)) + 0.05
    eligible = (np.arange(users) % 3 == 0)[:, None] == late
    cluster = fo.Cluster(capacity, demand, eligible=eligible)
    level = fo.AlphaFair(np.inf, share="task").solve(cluster).arrays.user_tasks
    capacity[late] *= 2.1 * level[1] / level[0]
    cluster = fo.Cluster(capacity, demand, eligible=eligible)
    assert run(Problem(cluster, fo.AlphaFair(500.0, share="task").criterion(cluster)), 1e-6).error <= 1e-6


def test_the_start_of_many_pairs_is_split_by_weight() -> None:
    """Weights over ten decades: after an even split prices at alpha = 4 are 40 decades apart, and no step is long."""
    shared = fo.open_source("lognormal?users=160&servers=130&seed=1").cluster
    shared = shared.replace(weight=10 ** np.random.default_rng(1).uniform(-5, 5, 160))
    found = run(Problem(shared, fo.AlphaFair(64.0).criterion(shared)), 1e-6)
    assert found.error <= 1e-6
    assert found.steps <= 40


def test_tasks_split_anew_need_no_more_steps() -> None:
    """Of pairs that nearly tie many get a few tasks too many, at prices that are accurate already."""
    shared = fo.open_source("lognormal?users=200&servers=50&seed=1").cluster
    problem = Problem(shared, fo.AlphaFair(64.0).criterion(shared))
    state, number, error = welfare._Run(Market(problem), 1e-9, None, np.inf, 0), 0, np.inf
    while error > 1e-3:
        state.step(number)
        number, error = number + 1, state.judged(number).error if state.now.mu < 1e-10 else np.inf
    assert run(problem, 1e-9, max_steps=number).error < 0.2 * error


def test_prices_of_one_level_are_kept_while_alpha_rises() -> None:
    """In a dense cluster users share one level: prices tend to a limit, and tasks follow without a new residual."""
    shared = fo.open_source("lognormal?users=200&servers=50&seed=1").cluster
    market = Market(Problem(shared, fo.AlphaFair(500.0).criterion(shared)))
    state, residual = welfare._Run(market, 1e-6, None, np.inf, 0), []
    for number in range(20):
        alpha = market.own.alpha
        state.step(number)
        if market.own.alpha > alpha:
            residual.append(state.now.residual)
    assert market.at_final_alpha
    assert max(residual) < 0.2


def test_alpha_rises_only_near_the_central_path() -> None:
    """Three servers a user: after early increases of alpha products of a few pairs grow, and steps become short."""
    rng = np.random.default_rng(5)
    capacity, demand = rng.gamma(4, 0.25, (500, 2)) + 0.05, rng.gamma(2, 0.5, (2000, 2)) + 0.05
    eligible = np.zeros((2000, 500), dtype=bool)
    for row in eligible:
        row[rng.choice(500, 3, replace=False)] = True
    cluster = fo.Cluster(capacity, demand, eligible=eligible)
    assert run(Problem(cluster, fo.AlphaFair(500.0).criterion(cluster)), 1e-6).error <= 1e-6


@pytest.mark.parametrize(("residual", "stalled"), [(0.8e-8, 0), (1e-8, 2)])
def test_short_steps_that_reduce_residuals_go_on(residual: float, stalled: int) -> None:
    """A fifth of a Newton step removes a fifth of the residual, unless rounding errors dominate."""
    shared = fo.open_source("lognormal?users=30&servers=8&seed=1").cluster
    state = welfare._Run(Market(Problem(shared, fo.AlphaFair(3.0).criterion(shared))), 1e-6, None, np.inf, 0)
    state.now = SimpleNamespace(mu=1e-10, residual=1e-8)  # type: ignore[assignment]
    assert not state._fruitless(SimpleNamespace(residual=residual), 0.2, 50)  # type: ignore[arg-type]
    assert state.stalled == stalled
