"""The feasible set in fractions agrees with the feasible set in tasks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import clusters

from fairopt.certificates import feasibility
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

ANY_SEED = st.integers(0, 2**32 - 1)


@given(clusters(), ANY_SEED)
def test_inside_is_feasible_and_the_way_there_and_back(cluster: Cluster, seed: int) -> None:
    polytope = Polytope(cluster, cluster.max_tasks)
    assert ((polytope.use.data > 0) & (polytope.use.data <= 1 + 1e-12)).all()
    fractions = np.random.default_rng(seed).uniform(-0.2, 1, len(polytope.gamma))
    inside = polytope.inside(fractions)
    assert ((inside >= 0) & (inside <= np.maximum(fractions, 0))).all()
    tasks = polytope.allocation(inside)
    assert feasibility(cluster, tasks)[0] <= 1e-12
    assert_allclose(polytope.fractions(tasks), inside, rtol=1e-12)
    assert_allclose(polytope.inside(inside), inside, rtol=1e-12)
    assert_allclose(polytope.tasks @ inside, tasks.sum(axis=1)[polytope.users], rtol=1e-12)


@given(clusters(), ANY_SEED)
def test_rows_are_the_capacities(cluster: Cluster, seed: int) -> None:
    polytope = Polytope(cluster, cluster.max_tasks)
    fractions = np.random.default_rng(seed).uniform(0, 1, len(polytope.gamma))
    tasks = polytope.allocation(fractions)
    use = tasks.T @ cluster.demand
    rows = polytope.row_server, polytope.row_resource
    assert_allclose(polytope.use @ fractions, use[rows] / cluster.capacity[rows], rtol=1e-9)
    users, reach = polytope.users, polytope.reach
    assert_allclose(reach, np.minimum(cluster.gamma.sum(axis=1), cluster.max_tasks)[users])
    limited = polytope.limited
    assert (cluster.gamma.sum(axis=1)[users] > cluster.max_tasks[users])[limited].all()
    if len(limited):
        part = tasks.sum(axis=1)[users] / polytope.limit
        assert_allclose(polytope.use_of_limit @ fractions, part[limited])


@given(clusters(), ANY_SEED)
def test_prices_of_rows_and_of_units(cluster: Cluster, seed: int) -> None:
    polytope = Polytope(cluster, cluster.max_tasks)
    rows = np.random.default_rng(seed).uniform(0, 1, polytope.use.shape[0])
    unit = polytope.unit_prices(rows)
    assert_allclose(polytope.row_prices(unit), rows, rtol=1e-12)
    costs = (unit @ cluster.demand.T)[polytope.pair_server, polytope.users[polytope.pair_user]]
    assert_allclose(polytope.price_per_task(rows), costs, rtol=1e-9)
