"""The native engine of alpha-fair welfare against the declarative one, closed forms, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw
from numpy.typing import NDArray

import fairopt as fo
from fairopt.errors import CertificateError, SolverError

Array = NDArray[np.float64]
ALPHAS = (0.0, 0.1, 0.5, 0.9999, 1.0, 1.0001, 2.0, 3.0, 8.0, 50.0, 500.0)


def plain(seed: int, users: int = 30, servers: int = 8, resources: int = 3, low: float = 0.3) -> fo.Cluster:
    """Dense and well-conditioned."""
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(low, 5, (servers, resources)), rng.uniform(low, 5, (users, resources)))


def allowed(found: fo.Allocation, other: fo.Allocation) -> Array:
    """By how much the log of tasks may differ, (users,), for two answers with these gaps: strict concavity."""
    criterion, tasks = found.criterion, other.arrays.user_tasks
    with np.errstate(divide="ignore", invalid="ignore"):
        log_worth = np.where(tasks > 0, criterion.log_marginal(tasks) + np.log(tasks), -np.inf)
    part = np.exp(log_worth - np.logaddexp.reduce(log_worth))
    gaps = found.certificate.residual + other.certificate.residual + 1e-14
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(2 * np.sqrt(2 * gaps / (criterion.alpha * part)) + 1e-9)


@pytest.mark.long  # every commit: tests/laws/test_engines.py
@pytest.mark.parametrize("block", range(10))
def test_agreement_with_the_declarative_engine(block: int) -> None:
    """500 clusters, a fifth of them over eight decades: certified, and the tasks that strict concavity leaves."""
    fallbacks, narrow = 0, 0
    refused: list[str] = []
    for seed in range(50 * block, 50 * block + 50):
        shared = draw("wide" if seed % 5 == 0 else ("nice", "plain")[seed % 2], seed)
        alpha = ALPHAS[seed % len(ALPHAS)]
        if not shared.runnable.any():
            continue
        found = fo.AlphaFair(alpha).solve(shared)
        assert found.certify().passes(1e-6)
        fallbacks += found.stats.engine != "native"
        try:
            other = fo.AlphaFair(alpha).solve(shared, engine="declarative")
        except (SolverError, CertificateError):  # what CVXPY's solvers call optimal differs by machine
            assert found.stats.engine == "native"  # one of the two at least
            assert seed % 5 == 0 or alpha == 500  # over eight decades, of numbers or of welfare
            refused.append(f"{seed} at alpha {alpha}")
            continue
        if alpha == 0:
            levels = found.criterion.share @ found.arrays.user_tasks, other.criterion.share @ other.arrays.user_tasks
            assert levels[0] == pytest.approx(levels[1], rel=2e-6)
            continue
        bound = allowed(found, other)
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.abs(np.log(found.arrays.user_tasks) - np.log(other.arrays.user_tasks))
        seen = shared.runnable & (bound < 0.3)
        assert (off[seen] <= bound[seen]).all(), (seed, alpha)
        narrow += int((bound[seen] < 1e-3).sum())
    assert fallbacks <= 3
    assert len(refused) <= 3, f"the declarative engine gave up {', '.join(refused)}"
    assert narrow > 50


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


def test_thousands_of_tied_pairs_keep_their_last_digits() -> None:
    """3,900 pairs without tasks that cost no more than others: 1e-9 by steps of the last digits, not of the path."""
    rng = np.random.default_rng(1)
    capacity, demand = (np.exp(0.5 * rng.standard_normal(shape)) for shape in ((100, 4), (200, 4)))
    found = fo.AlphaFair(3.0).solve(fo.Cluster(100 * capacity, demand), 1e-9)
    assert found.certificate.residual <= 1e-9
