"""The per-server game: best responses against other methods, reweighted programs, acceleration, finite tasks."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import plain_clusters

from fairopt.certificates import backward_error
from fairopt.errors import NotConverged
from fairopt.game.reference import declarative, reweighted
from fairopt.game.reference.declarative import Acceleration
from fairopt.game.reference.server_problem import ServerProblem
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope
from fairopt.model.problem import Problem

Array = NDArray[np.float64]

VARIANT = Cluster([[12, 4, 75], [8, 16, 0]], [[1, 1, 5], [1, 1 / 3, 5], [0.25, 1, 0], [1, 0.5, 0]])


def filling(cluster: Cluster, server: int, elsewhere: Array) -> Array:
    """Progressive filling: raise the lowest virtual dominant shares together, freeze who meets a full resource."""
    gamma = cluster.gamma[:, server] * cluster.weight
    here = np.zeros(cluster.shape[0])
    active = np.ones(cluster.shape[0], dtype=bool)
    room = cluster.capacity[server].copy()
    while active.any():
        level = (elsewhere + here) / gamma
        lowest = level[active].min()
        rising = active & (level <= lowest * (1 + 1e-12) + 1e-15)
        above = level[active & ~rising]
        rate = (gamma * rising) @ cluster.demand
        steps = room[rate > 0] / rate[rate > 0]
        step = steps.min()
        if len(above) and above.min() - lowest < step:
            step = above.min() - lowest
        here = here + step * gamma * rising
        room = room - step * rate
        full = room <= 1e-12 * cluster.capacity[server]
        active &= ~(cluster.demand[:, full] > 0).any(axis=1)
    return here


@settings(max_examples=40)
@given(plain_clusters(max_servers=1, max_users=5), st.integers(0, 2**32 - 1))
def test_maxmin_response_is_progressive_filling(cluster: Cluster, seed: int) -> None:
    psdsf = get("ps-dsf")
    criterion = psdsf.criterion(cluster)
    polytope = Polytope(cluster, criterion.limits(cluster))
    elsewhere = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], cluster.shape[0]) * cluster.gamma[:, 0]
    fractions, _ = ServerProblem(polytope, criterion, 0, psdsf.formulate).respond(elsewhere, np.ones(cluster.shape[0]))
    wanted = filling(cluster, 0, elsewhere)
    np.testing.assert_allclose(fractions * cluster.gamma[:, 0], wanted, rtol=1e-6, atol=1e-8)


def test_filling_itself() -> None:
    np.testing.assert_allclose(filling(Cluster([[9, 18]], [[1, 4], [3, 1]]), 0, np.zeros(2)), [3, 2])


# -- finite tasks: a generalised Nash equilibrium ------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, np.inf])
def test_finite_tasks(alpha: float) -> None:
    """User 3 of the variant needs 4 tasks only: user 4 gets what it leaves of the CPU, 8 - 4/4 = 7 tasks."""
    found = get("alphapf-vds", alpha=alpha).solve(VARIANT.with_max_tasks("user3", 4))
    np.testing.assert_allclose(found.arrays.user_tasks[2:], [4, 7], rtol=1e-3)
    np.testing.assert_allclose(found.arrays.user_tasks[:2], [2, 6], rtol=1e-3)


# -- the dynamics --------------------------------------------------------------------------------


def test_reweighted_programs_approach_the_equilibrium() -> None:
    """Each solve is less wrong, on the variant for alpha = 3, whose equilibrium is known."""
    criterion = get("alphapf-vds", alpha=3.0).criterion(VARIANT)
    polytope = Polytope(VARIANT, criterion.limits(VARIANT))
    gaps, tasks = [], np.zeros((4, 2))
    start = polytope.inside(np.full(len(polytope.gamma), 0.2))
    for _, (fractions, prices, _) in zip(range(12), reweighted.solves(polytope, criterion, start), strict=False):
        tasks = polytope.allocation(polytope.inside(fractions))
        gaps.append(backward_error(polytope, criterion, tasks, np.log(np.maximum(prices, 1e-300))).error)
    assert gaps[-1] < 1e-4
    assert gaps[-1] < gaps[0]
    x3 = 32 / (1 + 2 ** (1 - 1 / 3))
    np.testing.assert_allclose(tasks.sum(axis=1), [2, 6, x3, 8 - x3 / 4], rtol=1e-3)


def test_reweighted_programs_give_way_where_weights_are_too_wide() -> None:
    wide = Cluster([[1, 1e4], [1e4, 1]], [[1, 1], [1, 1e-4]])
    criterion = get("alphapf-vds", alpha=30.0).criterion(wide)
    polytope = Polytope(wide, criterion.limits(wide))
    assert list(reweighted.solves(polytope, criterion, np.full(4, 0.1))) == []


def test_not_converged_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[9, 6], [14, 5], [3, 8]], [[1, 1], [3, 1], [2, 3], [1, 4]])
    monkeypatch.setattr(declarative, "solutions", partial(declarative.solutions, max_rounds=1))
    with pytest.raises(
        NotConverged, match=r"after \d+ steps .* misses tol=1e-12 .*Relax tol .* take the answer flagged"
    ):
        get("ps-dsf").solve(cluster, tol=1e-12, engine="declarative")


@pytest.mark.parametrize("worst", [np.inf, np.nan])
def test_reweighted_programs_end_when_nothing_is_known_of_them(monkeypatch: pytest.MonkeyPatch, worst: float) -> None:
    # A user without tasks makes the exploitability infinite: comparing infinities once went on for ever.
    monkeypatch.setattr(declarative, "_worst", lambda *_: worst)
    mechanism = get("alphapf-vds", alpha=3.0)
    criterion = mechanism.criterion(VARIANT)
    found = declarative.solutions(Problem(VARIANT, criterion), mechanism.formulate, 1e-4, max_rounds=2)
    assert len(list(islice(found, 10))) < 10


def test_mixing_foresees_a_linear_map() -> None:
    """x -> A x + b: after a few steps the proposal is the fixed point, which plain iteration only approaches."""
    rng = np.random.default_rng(1)
    matrix = 0.9 * np.linalg.qr(rng.normal(size=(3, 3)))[0]
    fixed = np.array([1.0, -2.0, 0.5])
    acceleration, point = Acceleration(), np.zeros(3)
    proposal = point
    for _ in range(6):
        image = fixed + matrix @ (point - fixed)
        proposal = next(acceleration.proposals(point, image), (proposal, 1.0))[0]
        point = image
    assert np.linalg.norm(proposal - fixed) < 1e-6
    assert np.linalg.norm(point - fixed) > 0.1


def test_a_steady_drift_is_jumped_to_where_somebody_has_left() -> None:
    acceleration, point, step = Acceleration(), np.array([1.0, 0.2, 0.0]), np.array([-0.01, 0.0, 0.01])
    jumps: list[Array] = []
    for _ in range(4):
        jumps = [proposal for proposal, wanted in acceleration.proposals(point, point + step) if wanted > 1]
        point = point + step
    assert jumps
    np.testing.assert_allclose(jumps[0], [0, 0.2, 1.0], atol=1e-9)


def test_nothing_is_proposed_from_two_points() -> None:
    acceleration = Acceleration()
    assert list(acceleration.proposals(np.zeros(2), np.ones(2))) == []
    assert list(acceleration.proposals(np.ones(2), np.ones(2) * 1.5)) == []
