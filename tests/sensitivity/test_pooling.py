"""Servers of equal prices: when they are one server, and that answers move as that server's does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.result import derivatives

from .differences import compared, sensitivity

MECHANISMS = (fo.AlphaFair(3.0), fo.AlphaFair(0.5, "task"), fo.DRFH(), fo.TSF())


def dense(seed: int, users: int = 40, servers: int = 8) -> fo.Cluster:
    """Demands differ more than servers do: everybody may be anywhere."""
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(1, 3, (servers, 2)) * (rng.random((servers, 2)) < 0.9)
    return fo.Cluster(np.where(capacity.any(1, keepdims=True), capacity, 1), np.exp(rng.normal(size=(users, 2))))


def pools(found: fo.Allocation) -> int:
    """How many servers are left of an answer's cluster."""
    return len(found.sensitivity().derivatives.pooling.first)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_where_all_pairs_tie_answers_have_derivatives(mechanism: fo.mechanisms.Mechanism) -> None:
    rng, fewer = np.random.default_rng(0), 0
    for seed in (4, 5, 6):  # whose prices are equal whichever of max-min's is found
        cluster = dense(seed)
        fewer += len(cluster.servers) - pools(mechanism.solve(cluster, 1e-9))
        for one in compared(mechanism, cluster, rng, most=5):
            assert one.verdict in ("right", "near"), (mechanism, seed, one)
    assert fewer >= 6


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_one_server_for_several_says_what_they_say(
    mechanism: fo.mechanisms.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = mechanism.solve(dense(5), 1e-9)
    together = found.sensitivity()
    monkeypatch.setattr(derivatives, "_chosen", lambda cluster, *_: np.arange(len(cluster.servers)))
    apart = found.sensitivity()
    assert len(together.derivatives.pooling.first) < len(apart.derivatives.pooling.first)
    for by in ("alpha", "weights", "demands", "capacities", "counts"):
        there = apart.tasks(by).notna()
        assert_allclose(together.tasks(by)[there], apart.tasks(by)[there], atol=1e-6)
    there = apart.measures.notna()
    assert_allclose(together.measures[there], apart.measures[there], atol=1e-6)
    assert there.to_numpy().mean() > 0.3


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_nobody_moves_to_where_it_may_not_run(mechanism: fo.mechanisms.Mechanism) -> None:
    """Users 1 to 8 have two servers, which are dearer than the other four."""
    rng, cluster = np.random.default_rng(0), dense(1, 24, 6)
    few, first = np.arange(24) < 8, np.arange(6) < 2
    apart = cluster.replace(eligible=few[:, None] == first[None, :], weight=np.where(few, 4.0, 1.0))
    assert pools(mechanism.solve(apart, 1e-9)) < 6
    for one in compared(mechanism, apart, rng, most=6):
        assert one.verdict in ("right", "near"), (mechanism, one)


def test_who_cannot_move_keeps_servers_apart() -> None:
    """Prices are equal as the servers are alike; only user 1 runs on both, which is too little for two resources."""
    eligible = [[1, 1], [1, 0], [0, 1], [1, 0], [0, 1]]
    cluster = fo.Cluster([[4.0, 4]] * 2, [[1.0, 1], [2, 1], [2, 1], [1, 2], [1, 2]], eligible=eligible)
    found = fo.AlphaFair(2.0, "task").solve(cluster, 1e-9)
    assert pools(found) == 2
    more = found.sensitivity().capacities.loc[("server1", "resource1")]
    assert more["user2"] > more["user3"] + 0.1


def test_a_server_that_lacks_a_resource_is_no_kink() -> None:
    """All users of server 2 need the first resource alone, whose price is the same; user 3 cannot go there."""
    cluster = fo.Cluster([[4, 2], [4, 0]], [[1, 0], [1, 0], [1, 1]])
    assert sensitivity(fo.DRFH(), cluster).capacities.notna().all(axis=None)
