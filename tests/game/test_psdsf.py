"""PS-DSF with positive demands: the greatest of its allocations, which is the limit of alphaPF-VDS."""

from __future__ import annotations

import numpy as np
import pytest
from certificates.reference import definition_4
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.core import choices
from fairopt.core.game import psdsf
from fairopt.papers import instance


def cluster(seed: int, users: int = 8, servers: int = 4, resources: int = 3) -> fo.Cluster:
    """Positive demands, weights, some placement, and one server that lacks a resource."""
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(0.25, 5, (servers, resources))
    if seed % 3 == 0:
        capacity[0, 0] = 0.0
    eligible = rng.random((users, servers)) < 0.8
    eligible[:, -1] = True
    return fo.Cluster(capacity, rng.uniform(0.25, 5, (users, resources)), rng.uniform(0.5, 2, users), eligible=eligible)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6), st.integers(1, 4))
def test_defining_condition(seed: int, users: int, servers: int, resources: int) -> None:
    shared = cluster(seed, users, servers, resources)
    answer = fo.PSDSF().solve(shared, 1e-9)
    assert not any("limit" in note for note in answer.notes)
    assert answer.certify().residual <= 1e-9
    assert definition_4(shared, answer.tasks, 1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_nobody_has_more_in_any_other(seed: int) -> None:
    """Best responses end in PS-DSF allocations, different ones; the greatest has as much for every user as each."""
    shared = cluster(seed, 7, 3, 2)
    most = fo.PSDSF().solve(shared, 1e-9).arrays.user_tasks
    rng = np.random.default_rng(seed)
    for _ in range(4):
        parts = np.where(shared.usable, rng.exponential(size=shared.gamma.shape), 0.0)
        start = shared.gamma * parts / np.maximum(parts.sum(axis=0), 1e-300)
        other = fo.best_response(shared, np.inf, order="random", start=start, rng=rng, tol=1e-9, throw=False)
        if other.certify().residual <= 1e-7:
            assert (other.arrays.user_tasks <= most * (1 + 1e-5)).all()


def test_the_best_of_a_segment() -> None:
    """Every `x = (6, 3, 2) s` is one, x1 from 4 to 74/17; and two equal servers."""
    answer = fo.PSDSF().solve(instance("found-41"), 1e-9).arrays.user_tasks
    np.testing.assert_allclose(answer, 74 / 17 * np.array([1, 1 / 2, 1 / 3]), rtol=1e-9)
    pair = fo.Cluster([[1, 1], [1, 1]], [[1, 0.5], [0.5, 1]])
    np.testing.assert_allclose(fo.PSDSF().solve(pair, 1e-9).arrays.user_tasks, [4 / 3, 4 / 3], rtol=1e-9)


def test_programs_of_any_size_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense tableaus and sparse linear programs, ties or not."""
    for seed in range(8):
        shared = cluster(seed, 15, 8, 3)
        if seed > 3:
            whole = {"capacity": np.ceil(shared.capacity), "demand": np.ceil(shared.demand)}
            shared = shared.replace(**whole, weight=np.ones(15))
        small = fo.PSDSF().solve(shared, 1e-9)
        with monkeypatch.context() as patched:
            patched.setattr(choices, "_TABLEAU", 0)
            large = fo.PSDSF().solve(shared, 1e-9)
        assert small.stats.solver == large.stats.solver == "linear programs"
        np.testing.assert_allclose(large.arrays.user_tasks, small.arrays.user_tasks, rtol=1e-8)


def test_task_counts_that_do_not_bind() -> None:
    shared = cluster(5)
    free = fo.PSDSF().solve(shared, 1e-9).arrays.user_tasks
    loose = fo.PSDSF().solve(shared.replace(max_tasks=1.001 * free), 1e-9).arrays.user_tasks
    np.testing.assert_allclose(loose, free, rtol=1e-9)
    tight = fo.PSDSF().solve(shared.replace(max_tasks=np.where(np.arange(8) == 2, 0.5, 2.0) * free))
    assert tight.arrays.user_tasks[2] <= 0.5 * free[2] * (1 + 1e-9)
    assert tight.certify().passes(1e-6)


@pytest.mark.parametrize("seed", [2, 53])
def test_many_users_on_two_servers(seed: int) -> None:
    """With the second seed half of 50,000 are tied to both; nodes in pairs number more than SciPy's 32 bits count."""
    rng = np.random.default_rng(seed)
    answer = fo.PSDSF().solve(fo.Cluster(rng.lognormal(0, 0.5, (2, 3)), rng.lognormal(0, 0.5, (50_000, 3))))
    assert answer.stats.solver == "linear programs"


@pytest.mark.parametrize(("seed", "crowd"), [(1, np.inf), (52, np.inf), (53, np.inf), (1, 0)])
def test_crowds_of_ties(seed: int, crowd: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users short of one resource on two servers are tied there by the hundred; where many may come, it ends near."""
    rng = np.random.default_rng(seed)
    shape = (5, 4) if seed == 1 else (2, 3)
    shared = fo.Cluster(rng.lognormal(0, 0.5, shape), rng.lognormal(0, 0.5, (400, shape[1])))
    monkeypatch.setattr(choices, "_CROWD", crowd)
    monkeypatch.setattr(psdsf, "_WORK", 0)
    answer, greatest = fo.PSDSF().solve(shared), crowd > 0
    assert answer.stats.solver == ("linear programs" if greatest else "best responses")
    assert any("not proved to be the limit" in note for note in answer.notes) == (not greatest)
