"""Servers of equal prices: when they are one server, and that answers move as that server's does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fairopt as fo
from fairopt.sensitivity import answer
from fairopt.sensitivity.linear import LeastSquares, Options
from fairopt.sensitivity.pooling import Pooling, alone, pooling

from .differences import compared

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
    for seed in range(3):
        cluster = dense(seed)
        fewer += len(cluster.servers) - pools(mechanism.solve(cluster, 1e-9))
        for one in compared(mechanism, cluster, rng, most=5):
            assert one.verdict in ("right", "near"), (mechanism, seed, one)
    assert fewer >= 6


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_one_server_for_several_says_what_they_say(
    mechanism: fo.mechanisms.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = mechanism.solve(dense(1), 1e-9)
    together = found.sensitivity()
    monkeypatch.setattr(answer, "pooling", lambda cluster, *_: alone(cluster))
    apart = found.sensitivity()
    assert len(together.derivatives.pooling.first) < len(apart.derivatives.pooling.first)
    for by in ("alpha", "weights", "demands", "capacities", "counts"):
        there = apart.tasks(by).notna()
        np.testing.assert_allclose(together.tasks(by)[there], apart.tasks(by)[there], atol=1e-6)
    there = apart.measures.notna()
    np.testing.assert_allclose(together.measures[there], apart.measures[there], atol=1e-6)
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


def seen(
    runs: list[list[float]],
    prices: list[list[float]],
    capacity: list[list[float]] | None = None,
    mechanism: fo.mechanisms.Mechanism | None = None,
) -> Pooling:
    """What becomes of two servers on which three users run."""
    demand = [[1, 0.5], [1, 0.5], [1, 0.2]]
    cluster = fo.Cluster([[4, 2], [4, 9]] if capacity is None else capacity, demand)
    found = (mechanism or fo.AlphaFair(2.0)).solve(cluster)
    with np.errstate(divide="ignore"):
        return pooling(cluster, found.criterion, np.array(runs), np.log(np.array(prices)))


def test_what_is_used_up_without_a_price_must_be_free_too() -> None:
    """Both resources of server 1 are used up: users 1 and 2 alone cannot leave one of them as it is."""
    prices = [[1.0, 0]] * 2
    assert len(seen([[2, 2], [2, 2], [0, 0]], prices).first) == 2
    assert len(seen([[2, 2], [5 / 3, 1], [1 / 3, 1]], prices).first) == 1  # its second resource is not used up
    assert len(seen([[2, 1.5], [1.5, 1.5], [0.5, 1]], prices, [[4, 1.85], [4, 9]]).first) == 1


def test_prices_that_differ_keep_servers_apart() -> None:
    runs = [[1.5, 1], [1.5, 1], [1, 2]]
    assert len(seen(runs, [[1, 0], [1, 0]]).first) == 1
    assert len(seen(runs, [[1, 0], [1 + 1e-4, 0]]).first) == 2
    assert len(seen(runs, [[1, 0], [1 + 1e-4, 0]], mechanism=fo.AlphaFair(64.0)).first) == 1  # prices go with x^-64
    assert len(seen(runs, [[1, 0], [1 + 1e-6, 0]]).first) == 1
    assert len(seen(runs, [[1, 0], [1, 0.1]]).first) == 2
    assert len(seen([[1.5, 1], [1.5, 1], [0, 2]], [[1, 0.1], [1, 0.1]], [[3, 1.5], [4, 1.4]]).first) == 2


def test_a_server_that_lacks_a_resource_has_its_users_prices() -> None:
    """All users of server 2 need the first resource alone, whose price is the same; user 3 cannot go there."""
    cluster = fo.Cluster([[4, 2], [4, 0]], [[1, 0], [1, 0], [1, 1]])
    found = fo.AlphaFair(2.0).solve(cluster)
    for price, left in ((1.0, 1), (1.1, 2)):
        log_prices = np.log([[1.0, 0.5], [price, 1e-300]])
        together = pooling(cluster, found.criterion, np.array([[1, 2], [1, 2], [2, 0.0]]), log_prices)
        assert len(together.first) == left
    assert fo.DRFH().solve(cluster, 1e-9).sensitivity().capacities.notna().all(axis=None)


@pytest.mark.parametrize(("little", "left"), [(0, 2), (1e-6, 2), (1e-2, 1)])
def test_strays_do_not_move(little: float, left: int) -> None:
    """Who has next to nothing on a server cannot give any of it up."""
    assert len(seen([[4, little], [0, 2], [0, 2]], [[1, 0]] * 2, [[4, 3], [4, 9]]).first) == left


def test_pools_have_the_capacities_of_their_servers() -> None:
    together = seen([[1.5, 1], [1.5, 1], [1, 2]], [[1, 0], [1, 0]])
    assert together.cluster.capacity.tolist() == [[8, 11]]
    assert np.allclose(together.part, [[0.5, 2 / 11], [0.5, 9 / 11]])
    assert together.pooled(np.array([[1.0, 2]])).tolist() == [[3.0]]
    assert together.cluster.servers == ("server1 and 1 of its prices",)


def test_the_game_has_every_server_for_itself() -> None:
    runs, prices = [[1.5, 1], [1.5, 1], [1, 2]], [[1.0, 0]] * 2
    assert len(seen(runs, prices).first) == 1
    assert len(seen(runs, prices, mechanism=fo.AlphaPFVDS(2.0)).first) == 2


def test_without_prices_every_server_is_itself() -> None:
    cluster = dense(1)
    found = fo.DRFH().solve(cluster)
    assert len(pooling(cluster, found.criterion, found.tasks, None).first) == len(cluster.servers)


def test_singular_equations_do_not_lead_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solution that went far in a direction that the equations hardly see is not taken."""
    found = fo.AlphaFair(3.0).solve(dense(1), 1e-9)
    expected = found.sensitivity().weights
    solve = LeastSquares.solve
    noise = np.random.default_rng(0).standard_normal
    monkeypatch.setattr(LeastSquares, "solve", lambda self, given: solve(self, given) + noise(self.matrix.shape[1]))
    np.testing.assert_allclose(found.sensitivity().weights, expected, atol=1e-6)


@pytest.mark.parametrize("dense", [0, 300])
def test_damped_solutions(dense: int) -> None:
    regular = LeastSquares(sparse.csr_matrix([[2.0, 1], [1, 3]]), options=Options(dense=dense))
    np.testing.assert_allclose(regular.damped(np.array([3.0, 4])), [1, 1], rtol=1e-9)
    singular = LeastSquares(sparse.csr_matrix([[1.0, 1], [1, 1]]), options=Options(dense=dense))
    np.testing.assert_allclose(singular.damped(np.array([2.0, 2 + 1e-8])), [1, 1], rtol=1e-7)
