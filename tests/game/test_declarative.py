"""The per-server game as it is declared: responses against progressive filling, finite tasks, the end of rounds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import plain_clusters

from fairopt.errors import NotConverged
from fairopt.game.reference import declarative
from fairopt.game.reference.server_problem import ServerProblem
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

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


def test_not_converged_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([[9, 6], [14, 5], [3, 8]], [[1, 1], [3, 1], [2, 3], [1, 4]])
    monkeypatch.setattr(declarative, "solutions", partial(declarative.solutions, max_rounds=1))
    with pytest.raises(
        NotConverged, match=r"after \d+ steps .* misses tol=1e-12 .*Relax tol .* take the answer flagged"
    ):
        get("ps-dsf").solve(cluster, tol=1e-12, engine="declarative")
