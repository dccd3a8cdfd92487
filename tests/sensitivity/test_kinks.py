"""What has no derivative, how far that reaches, and what only seems to have none."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo

from .differences import compared, sensitivity

EVERYBODY = (fo.TaskMaxMin(), fo.DRFH(), fo.AlphaFair(2.0), fo.AlphaPFVDS(3.0))


@pytest.mark.parametrize("mechanism", EVERYBODY[:3], ids=str)
def test_a_small_part_of_the_capacity_has_the_kinks_of_all(mechanism: fo.mechanisms.Mechanism) -> None:
    """Server 2 is a ten millionth of what there is; user 1 just reaches its limit."""
    cluster = fo.Cluster([[6.0 - 6e-7], [6e-7]], [[1.0]] * 3, max_tasks=[2, np.inf, np.inf])
    found = sensitivity(mechanism, cluster)
    assert found.capacities.isna().all(axis=None)
    assert found.counts.isna().all(axis=None)
    assert found.weights.isna().all(axis=None)
    why = found.not_differentiable.loc[("capacities", "server2", "resource1"), "why"]
    assert "just reaches its task limit" in why


@pytest.mark.parametrize("mechanism", EVERYBODY, ids=str)
def test_a_limit_that_is_nearly_reached_is_no_kink(mechanism: fo.mechanisms.Mechanism) -> None:
    for limit, slope in ((2 * (1 + 1e-5), 0), (2 * (1 - 1e-5), 1)):
        found = mechanism.solve(fo.Cluster([[6.0]], [[1.0]] * 3, max_tasks=[limit, np.inf, np.inf]), 1e-9)
        assert found.sensitivity().max_tasks.loc["user1", "user1"] == pytest.approx(slope, abs=1e-6)


def test_servers_that_are_alike_concern_their_own_users() -> None:
    """Users 4 and 5 run on server 4 alone, whatever happens to one of servers 1 and 2."""
    cluster = fo.Cluster(
        [[6.1, 4.0]] * 2 + [[3.0, 7.3], [5.0, 4.0]],
        [[3, 1], [1, 2.2], [2, 1.7], [1, 2], [2, 1]],
        eligible=[[1, 1, 1, 0]] * 3 + [[0, 0, 0, 1]] * 2,
    )
    found = sensitivity(fo.AlphaPFVDS(3.0), cluster)
    assert found.capacities.loc[["server1", "server2"], ["user1", "user2", "user3"]].isna().all(axis=None)
    assert (found.capacities.loc[["server1", "server2"], ["user4", "user5"]].abs() < 1e-12).all(axis=None)


def test_prices_may_make_up_for_a_change_of_one_of_two_servers_that_are_alike() -> None:
    """As many users as prices on their type: the one that changes keeps all of them, at prices of its own."""
    capacity = [[3.9, 2.3, 2.1]] * 2 + [[7.7, 8.4, 6.2]]
    cluster = fo.Cluster(capacity, [[3.1, 2.4, 3.8], [3.4, 0.5, 3.5], [0.6, 3.1, 1.1]])
    mechanism = fo.AlphaPFVDS(3.0)
    found = sensitivity(mechanism, cluster)
    assert found.capacities.notna().all(axis=None)
    for one in compared(mechanism, cluster, np.random.default_rng(0)):
        assert one.verdict in ("right", "near"), one


def test_users_with_two_dominant_resources() -> None:
    """More of a type changes what is dominant, where it has either resource; one type has no say in that."""
    demand = [[1, 1, 0.1], [0, 0.3, 1], [0.3, 0, 1]]
    several = sensitivity(fo.AlphaFair(3.0), fo.Cluster([[3, 4, 5], [2, 1, 3], [0, 0, 7]], demand))
    assert several.counts.loc[["server1", "server2"]].isna().all(axis=None)
    assert several.counts.loc["server3"].notna().all()
    assert several.capacities.loc[("server3", "resource3")].notna().all()
    one = sensitivity(fo.AlphaFair(3.0), fo.Cluster([[5, 5, 4.0]], demand))
    assert one.counts.notna().all(axis=None)
    assert one.capacities.loc[[("server1", "resource1"), ("server1", "resource2")]].isna().all(axis=None)


def test_users_who_pay_little_do_not_tie_for_that() -> None:
    """Users 1 to 8 have 1e-5 of the others' weight: nothing that they could pay elsewhere is much."""
    rng = np.random.default_rng([81, 5])
    eligible = rng.random((12, 5)) < 0.5
    eligible[:, 0] |= ~eligible.any(axis=1)
    weight = np.where(np.arange(12) < 8, 1e-5, 1)
    cluster = fo.Cluster(rng.uniform(1, 3, (5, 2)), np.exp(rng.normal(size=(12, 2))), weight, eligible)
    assert sensitivity(fo.DRFH(), cluster).demands.notna().all(axis=None)


@pytest.mark.parametrize("mechanism", EVERYBODY, ids=str)
def test_who_is_served_in_full_where_nothing_has_a_price(mechanism: fo.mechanisms.Mechanism) -> None:
    """User 1 has all its tasks on server 2, which idles; users 2 and 3 share server 1, where user 1 may run too."""
    cluster = fo.Cluster(
        [[6.0, 5], [9, 9]], [[1, 1], [1, 0.5], [1, 0.7]], eligible=[[1, 1], [1, 0], [1, 0]], max_tasks=[3, 99, 99]
    )
    found = sensitivity(mechanism, cluster)
    frames = [found.weights, found.demands, found.capacities, found.max_tasks]
    assert all(frame.notna().all(axis=None) for frame in frames)
    assert found.max_tasks.loc["user1", "user1"] == pytest.approx(1)
    for frame in frames[:3]:
        assert (frame["user1"].abs() < 1e-9).all()
    assert (found.weights.loc["user1"].abs() < 1e-9).all()


def test_what_sets_gamma_does_not_count_at_alpha_1() -> None:
    cluster = fo.Cluster([[6, 4, 100.0]], [[3, 2, 1], [1, 0.5, 1]])  # two resources set gamma of user 1
    found = sensitivity(fo.AlphaPFVDS(1.0), cluster)
    assert found.demands.notna().all(axis=None)
    assert found.capacities.notna().all(axis=None)
