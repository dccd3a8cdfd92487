"""Two allocations, or an allocation and a cluster, that do not belong together are an error that says what differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError
from fairopt.result import metrics

CLUSTER = fo.Cluster([[9, 18], [4, 2]], [[1, 4], [3, 1], [2, 2]], users=["a", "b", "c"], servers=["s", "t"])

#: What has other names than CLUSTER, and what is said of it.
NAMED = {
    "other users": (CLUSTER.replace(users=["a", "b", "d"]), "their users differ, first 'c' and 'd'"),
    "order": (
        CLUSTER.select(users=["b", "a", "c"]),
        "their users differ, first 'a' and 'b'",
    ),
    "fewer servers": (CLUSTER.select(servers=["t"]), "their servers differ, first 's' and 't'"),
    "resources": (CLUSTER.replace(resources=["x", "resource2"]), "their resources differ, first 'resource1' and 'x'"),
}
#: What has other numbers.
CHANGED = {
    "capacity": (CLUSTER.with_capacity("t", [4, 3]), "their capacity differs, first of server 't'"),
    "demand": (CLUSTER.with_demand("b", [3, 2]), "their demand differs, first of user 'b'"),
    "weight": (CLUSTER.with_weight("c", 2), "their weight differs, first of user 'c'"),
    "eligible": (CLUSTER.with_eligible("a", [True, False]), "their eligible differs, first of user 'a'"),
    "max_tasks": (CLUSTER.with_max_tasks("b", 1), "their max_tasks differs, first of user 'b'"),
}


played = partial(fo.best_response, alpha=2)


@pytest.mark.parametrize(("other", "what"), (NAMED | CHANGED).values(), ids=(NAMED | CHANGED).keys())
def test_price_of_fairness_is_of_one_cluster(other: fo.Cluster, what: str) -> None:
    fair, efficient = fo.DRFH().solve(CLUSTER), fo.Utilitarian().solve(other)
    with pytest.raises(DataError, match=f"different clusters: {what}.*solve both on the same"):
        metrics.price_of_fairness(fair, efficient)


def test_a_pool_is_the_cluster_that_was_pooled() -> None:
    pooled, spread = fo.DRF().solve(CLUSTER), fo.DRFH().solve(CLUSTER)
    best, best_in_pool = fo.Utilitarian().solve(CLUSTER), fo.Utilitarian(scope="pool").solve(CLUSTER)
    for fair in (pooled, spread):
        for efficient in (best, best_in_pool):
            wanted = 1 - metrics.social_welfare(fair) / metrics.social_welfare(efficient)
            assert metrics.price_of_fairness(fair, efficient) == wanted
    other = CLUSTER.with_capacity("t", [4, 3])
    with pytest.raises(DataError, match="servers differ, first 'pool' and 's'"):
        metrics.price_of_fairness(pooled, fo.Utilitarian().solve(other))
    with pytest.raises(DataError, match="servers differ, first 's' and 'pool'"):
        metrics.price_of_fairness(spread, fo.Utilitarian(scope="pool").solve(other))


#: Pools, all servers at once, the game, and the game played.
SOLVES = [*(one.solve for one in (fo.AlphaPFVDS(2), fo.AlphaFair(2), fo.CEEI(), fo.DRF(), fo.PSDSF())), played]


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize(("other", "what"), NAMED.values(), ids=NAMED.keys())
def test_a_start_is_of_the_same_users_servers_and_resources(
    solve: Callable[..., fo.Allocation], other: fo.Cluster, what: str
) -> None:
    start = solve(other)
    if start.cluster.servers == ("pool",) and other.users == CLUSTER.users and other.resources == CLUSTER.resources:
        assert_allclose(solve(CLUSTER, start=start).tasks, solve(CLUSTER).tasks, 1e-5)
        return  # which servers were pooled does not matter
    turned = what.split(", first")[0]
    with pytest.raises(DataError, match=f"start is of another cluster: {turned}"):
        solve(CLUSTER, start=start)


@pytest.mark.parametrize("solve", [*SOLVES, fo.DRFH().solve])
@pytest.mark.parametrize("other", [pair[0] for pair in CHANGED.values()], ids=CHANGED.keys())
def test_a_start_from_other_numbers_changes_nothing(solve: Callable[..., fo.Allocation], other: fo.Cluster) -> None:
    wanted = fo.AlphaPFVDS(2).solve(CLUSTER) if solve is played else solve(CLUSTER)
    found = solve(CLUSTER, start=solve(other))
    assert_allclose(found.arrays.user_tasks, wanted.arrays.user_tasks, rtol=1e-4)


def test_starts_between_pools_and_servers_are_left_aside() -> None:
    for first, then in ((fo.CEEI(), fo.AlphaFair(2)), (fo.AlphaFair(2), fo.CEEI()), (fo.CEEI(), fo.AlphaPFVDS(2))):
        found = then.solve(CLUSTER, start=first.solve(CLUSTER))
        assert_allclose(found.arrays.user_tasks, then.solve(CLUSTER).arrays.user_tasks, rtol=1e-5)
