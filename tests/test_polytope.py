"""The feasible set in fractions agrees with the feasible set in tasks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import clusters

from fairopt.certificates import feasibility
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

ANY_SEED = st.integers(0, 2**32 - 1)


@given(clusters(), ANY_SEED)
def test_inside_is_feasible_and_the_way_there_and_back(cluster: Cluster, seed: int) -> None:
    polytope = Polytope(cluster, cluster.max_tasks)
    assert (polytope.use.data > 0).all()
    assert (polytope.use.data <= 1 + 1e-12).all()
    fractions = np.random.default_rng(seed).uniform(-0.2, 1, len(polytope.gamma))
    inside = polytope.inside(fractions)
    assert (inside >= 0).all()
    assert (inside <= np.maximum(fractions, 0)).all()
    tasks = polytope.allocation(inside)
    assert feasibility(cluster, tasks)[0] <= 1e-12
    np.testing.assert_allclose(polytope.fractions(tasks), inside, rtol=1e-12)
    np.testing.assert_allclose(polytope.inside(inside), inside, rtol=1e-12)
    np.testing.assert_allclose(polytope.tasks @ inside, tasks.sum(axis=1)[polytope.users], rtol=1e-12)


def test_users_who_can_run_nothing_are_left_out() -> None:
    cluster = Cluster([[1, 0]], [[1, 0], [1, 1], [2, 0]], max_tasks=[1, 1, 0])
    polytope = Polytope(cluster, cluster.max_tasks)
    assert polytope.users.tolist() == [0]
    assert len(Polytope(cluster, np.zeros(3)).users) == 0
