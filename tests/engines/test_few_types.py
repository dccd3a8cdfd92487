"""Thousands of users on ten types of servers, as real clusters have them: every engine at its first attempt."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from families import draw

import fairopt as fo
from fairopt.certificates import _linear
from fairopt.model.cluster import Cluster
from fairopt.workloads import alibaba_like, google_like


def many(users: int, seed: int = 0) -> Cluster:
    return google_like(users=users, servers=12583, rng=np.random.default_rng(seed)).cluster


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_welfare_takes_the_steps_that_it_takes_elsewhere(alpha: float) -> None:
    """With columns screened it took 52 to 199 steps on such clusters, or gave up."""
    found = fo.AlphaFair(alpha).solve(many(3000))
    assert found.certificate.passes(1e-6)
    assert found.stats.engine == "native"
    assert found.stats.rounds <= 40


def test_steep_welfare_under_limits_knows_its_few_prices() -> None:
    """Users at their limits pay next to nothing, and prices of servers are decades apart."""
    shared = google_like(np.random.default_rng(0), 100, 1000, max_tasks=True).cluster
    shared = shared.replace(demand=np.maximum(shared.demand, 1e-3 * shared.demand.mean(axis=0)))  # none is zero
    found = fo.AlphaFair(50.0).solve(shared)
    assert found.certificate.passes(1e-6)
    assert found.stats.solver == "interior point"


def test_numbers_beyond_doubles_are_left_to_others() -> None:
    """At alpha = 50 over eight decades products of prices and tasks overflow, and no factors are left."""
    found = fo.AlphaFair(50.0).solve(draw("wide", 3, 60, 25, 4), throw=False)
    assert found.certificate.residual < 1


def test_a_linear_program_without_time_proves_nothing() -> None:
    rng = np.random.default_rng(0)
    value, rows, bounds = rng.uniform(size=200), [sp.csr_matrix(rng.uniform(size=(200, 200)))], [np.ones(200)]
    assert _linear.maximise(value, rows, bounds) is not None
    assert _linear.maximise(value, rows, bounds, seconds=0.0) is None


@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_users_with_all_their_tasks_on_free_servers(alpha: float) -> None:
    """Half of the users at their limits, many on servers that have room left: pay of theirs goes to 0."""
    cluster = alibaba_like(np.random.default_rng(0), 400, 300, max_tasks=True).cluster
    found = fo.AlphaFair(alpha).solve(cluster, 1e-9)
    assert found.stats.solver == "interior point"
    at_limit = found.arrays.user_tasks >= cluster.max_tasks * (1 - 1e-9)
    assert 0.2 < at_limit.mean() < 1
    assert found.certificate.residual <= 1e-9
