"""What must not change an answer: names, order, units, the scale of weights, and merging what is proportional."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import plain_clusters

from fairopt.mechanisms import Mechanism
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge

from .registry import (
    GAMES,
    SCALE_FREE_GAMES,
    UNIQUE,
    VARIANTS,
    applicable,
    counts_tasks,
    has_floors,
    identify,
    one_answer,
    resources,
    share_of,
    weighs_ratios,
    weighs_users,
)

TOL = 1e-4


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_who_is_exempt(mechanism: Mechanism) -> None:
    """A criterion that forgets the weights, or the task, must not exempt itself from the laws below, which ask it."""
    facts = {
        "uses_weights": weighs_users(mechanism),
        "relative_weights": weighs_ratios(mechanism),
        "counts_tasks": counts_tasks(mechanism),
        "unique": one_answer(mechanism),
        "relative_shares": mechanism not in GAMES or mechanism in SCALE_FREE_GAMES,
        "has_floors": has_floors(mechanism),
    }
    stated = {name: getattr(mechanism, name) for name in facts}
    assert stated == facts, f"set these class variables of {type(mechanism).__name__} (see Mechanism): {facts}"


@pytest.mark.parametrize("mechanism", [m for m in VARIANTS if m.uses_weights], ids=identify)
@pytest.mark.parametrize("capacity", [[[12]], [[8], [4]]])
def test_equal_users_share_by_weight(mechanism: Mechanism, capacity: list[list[float]]) -> None:
    """Of one resource, on one server or two."""
    found = mechanism.solve(Cluster(capacity, [[2], [2]], weight=[1, 3]))
    assert_allclose(found.arrays.user_tasks, [1.5, 4.5], rtol=1e-6)


def certified_elsewhere(mechanism: Mechanism, after: Cluster, tasks: Array, prices: Array | None) -> None:
    """Transformed tasks of one cluster are an answer of the other: the law for mechanisms with several answers."""
    seen = mechanism.prepare(after)[0]
    certificate = mechanism.certify(seen, tasks, prices)[0]
    assert certificate.residual <= 10 * mechanism.default_tol, certificate


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_invariances(mechanism: Mechanism) -> None:
    """Units do not matter; nor does the scale of the weights. Of names and order `test_order.py` says more."""

    @settings(max_examples=share_of(mechanism, 9))
    @given(applicable(mechanism), st.integers(0, 9), st.sampled_from([0.2, 3.0, 100.0]))
    def law(cluster: Cluster, place: int, scale: float) -> None:
        n, _, r = cluster.shape
        found = mechanism.solve(cluster)
        size, unit = (np.where(np.arange(count) == place % count, scale, 1.0) for count in (n, r))
        measured = cluster.replace(capacity=cluster.capacity * unit, demand=cluster.demand * unit)
        cases = [(measured, np.ones(n), unit)]
        if weighs_ratios(mechanism):
            cases.append((cluster.replace(weight=cluster.weight * scale), np.ones(n), np.ones(r)))
        if not counts_tasks(mechanism):
            cut = cluster.replace(demand=cluster.demand * size[:, None], max_tasks=cluster.max_tasks / size)
            cases.append((cut, 1 / size, np.ones(r)))
        for other, factor, units in cases:
            prices = None if found.log_prices is None else found.log_prices - np.log(units)
            certified_elsewhere(mechanism, other, found.tasks * factor[:, None], prices)
            if mechanism in UNIQUE:
                after = mechanism.solve(other).arrays.user_tasks
                assert_allclose(after, found.arrays.user_tasks * factor, rtol=TOL, atol=1e-9)

    law()


@pytest.mark.parametrize("mechanism", UNIQUE, ids=identify)
def test_merging_changes_nothing(mechanism: Mechanism) -> None:
    """Proportional servers and users, merged by hand, give the tasks that `split_tasks` undoes."""

    @settings(max_examples=share_of(mechanism, 9))
    @given(plain_clusters(max_users=3, max_servers=2, max_resources=resources(mechanism)))
    def law(cluster: Cluster) -> None:
        twice = Cluster(
            np.vstack([cluster.capacity, cluster.capacity[:1] * 2.5]),
            np.vstack([cluster.demand, cluster.demand[-1:] * 0.4]),
            np.append(cluster.weight, cluster.weight[-1] * 3),
        )
        # Task counts do not scale with the task; and where weights do not matter two users are not one of theirs.
        keep_users = counts_tasks(mechanism) or not weighs_users(mechanism)
        merging = merge(twice, users=not keep_users)
        assert merging.cluster.shape[1] < twice.shape[1]
        assert keep_users or merging.cluster.shape[0] < twice.shape[0]
        pool = mechanism.prepare(twice)[0].shape[1] < twice.shape[1]
        apart, joined = mechanism.solve(twice), mechanism.solve(merging.cluster)
        tasks = joined.tasks
        if pool:
            tasks = tasks.sum(axis=1, keepdims=True) * np.eye(1, merging.cluster.shape[1])
        split = merging.split_tasks(tasks).sum(axis=1)
        assert_allclose(split, apart.arrays.user_tasks, rtol=TOL, atol=1e-9)  # log1p may leave nothing

    law()


@pytest.mark.parametrize("mechanism", SCALE_FREE_GAMES, ids=identify)
def test_merged_equilibria_are_equilibria(mechanism: Mechanism) -> None:
    @settings(max_examples=9)
    @given(plain_clusters(max_users=3, max_servers=2))
    def law(cluster: Cluster) -> None:
        twice = cluster.replace(
            capacity=np.vstack([cluster.capacity, cluster.capacity[:1] * 2.5]), servers=None, eligible=None
        )
        merging = merge(twice, users=False)
        found = mechanism.solve(merging.cluster)
        split = merging.split_tasks(found.tasks)
        certificate = mechanism.certify(twice, split, merging.split_prices(found.log_prices))[0]
        assert certificate.residual <= 10 * mechanism.default_tol, certificate

    law()
