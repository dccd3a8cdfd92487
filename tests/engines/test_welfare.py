"""The native engine of alpha-fair welfare against the declarative one, closed forms, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.core.welfare import run
from fairopt.errors import SolverError
from fairopt.model.problem import Problem


def plain(seed: int, users: int = 30, servers: int = 8, resources: int = 3, low: float = 0.3) -> fo.Cluster:
    """Dense and well-conditioned."""
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(low, 5, (servers, resources)), rng.uniform(low, 5, (users, resources)))


@pytest.mark.parametrize("alpha", [16.0, 64.0, 500.0])
def test_1e_9_is_reached_at_large_alpha_too(alpha: float) -> None:
    """Users of little welfare are as right as others."""
    for seed in range(0, 20, 2):
        rng = np.random.default_rng(seed)
        capacity, demand = rng.lognormal(1, 0.7, (6, 3)), rng.lognormal(0, 0.7, (18, 3))
        shared = fo.Cluster(capacity, demand, rng.lognormal(0, 1, 18), rng.random((18, 6)) < 0.5)
        assert fo.AlphaFair(alpha).solve(shared, 1e-9, engine="native").certify().passes(1e-9)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0, 500.0])
def test_limits_far_below_and_above_what_users_want(alpha: float) -> None:
    """Over three decades: limits that bind hard start far from the path, and used to drag the rest off it."""
    shared, rng = plain(17, 60, 25), np.random.default_rng(1)
    tasks = shared.gamma.sum(axis=1) / 60 * 10 ** rng.uniform(-2, 1, 60)
    limited = shared.replace(max_tasks=np.where(rng.random(60) < 0.5, tasks, np.inf))
    assert fo.AlphaFair(alpha).solve(limited, engine="native").certify().passes(1e-6)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("alpha", [16.0, 64.0, 500.0, 5000.0])
def test_zero_demands_at_large_alpha(alpha: float, limited: bool) -> None:
    """Prices of users who lack the scarcest resources are tens of decades below others: pooling them loses nothing."""
    rng = np.random.default_rng([1, limited])
    demand = rng.lognormal(0, 0.5, (100, 4)) * (rng.random((100, 4)) < 0.6)
    demand[~demand.any(axis=1), 0] = 1.0
    shared = fo.Cluster(100 * rng.lognormal(0, 0.5, (30, 4)), demand)
    if limited:
        part = np.where(rng.random(100) < 0.5, 10 ** rng.uniform(-1, 1, 100), np.inf)
        shared = shared.replace(max_tasks=part * shared.gamma.sum(axis=1) / 100)
    found = fo.AlphaFair(alpha).solve(shared, 1e-7)
    assert found.stats.engine == "native"
    assert found.stats.rounds <= 30


def test_prices_prove_that_tasks_are_out_of_reach() -> None:
    """Iterations for tasks that are optimal go on to the end, and for slightly more tasks they end before."""
    problem = Problem(shared := plain(5), fo.CEEI("servers").criterion(shared))
    with np.errstate(all="ignore"):
        found = run(problem, 1e-9)
        tasks = problem.polytope.allocation(found.fractions).sum(axis=1)
        assert [run(problem, 1e-9, wanted=more * tasks).error <= 1e-9 for more in (1.0, 1.0001)] == [True, False]


def test_thousands_of_tied_pairs_keep_their_last_digits() -> None:
    """3,900 pairs without tasks that cost no more than others: 1e-9 by steps of the last digits, not of the path."""
    rng = np.random.default_rng(1)
    capacity, demand = (np.exp(0.5 * rng.standard_normal(shape)) for shape in ((100, 4), (200, 4)))
    found = fo.AlphaFair(3.0).solve(fo.Cluster(100 * capacity, demand), 1e-9)
    assert found.certificate.residual <= 1e-9


@pytest.mark.parametrize(("family", "seed"), [("plain", 0), ("nested", 1), ("proportional", 2)])
def test_tasks_a_hundred_decades_apart_at_small_alpha(family: str, seed: int) -> None:
    """They go like prices to the power -1/alpha, and prices of tasks are apart where shares are `"task"`."""
    found = fo.AlphaFair(0.01, "task").solve(draw(family, seed))
    assert found.certify().passes(1e-6)
    assert found.arrays.user_tasks.min() < 1e-80


def test_tasks_beyond_numbers_are_refused_in_words() -> None:
    with pytest.raises(SolverError, match=r"may span more than numbers hold .* take alpha=0, or one from 0.01"):
        fo.AlphaFair(0.002, "task").solve(draw("plain", 3))
