"""`find_weights`: weights that are asked for come back as tasks, and what no weights give is said with names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from families import EXAMPLE
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import DataError, FairoptError, NotConverged
from fairopt.mechanisms import Mechanism
from fairopt.study.find_weights import matched

EXACT: tuple[Mechanism, ...] = (
    fo.DRF(),
    fo.DRFH(),
    fo.TSF(),
    fo.AssetFairness(),
    fo.CEEI("servers"),
    fo.AlphaFair(0.5),
    fo.AlphaFair(3, "task"),
    fo.AlphaFair(16),
    fo.AlphaPFVDS(1),
)
SEARCHED: tuple[Mechanism, ...] = (fo.AlphaPFVDS(0.5), fo.AlphaPFVDS(4), fo.PSDSF(), fo.PerServerDRF())


def cluster(seed: int, limits: bool = False) -> fo.Cluster:
    """2 to 7 users, 1 to 4 servers; with `limits` some users have few tasks, and one can run nowhere."""
    rng = np.random.default_rng(seed)
    users, servers, resources = (int(rng.integers(low, high)) for low, high in ((2, 8), (1, 5), (1, 4)))
    found = fo.Cluster(rng.uniform(1, 5, (servers, resources)) * users, rng.uniform(0.25, 5, (users, resources)))
    if not limits:
        return found
    tasks = np.where(rng.random(users) < 0.4, 0.3 / users * found.gamma.sum(axis=1), np.inf)
    found = found.replace(max_tasks=tasks)
    return found.with_eligible(found.users[-1], [users < 3] * servers)


def given(mechanism: Mechanism, shared: fo.Cluster, weights: Any = None) -> np.ndarray:
    """The tasks with these weights; of a seed with random ones, of nothing with the cluster's own."""
    if isinstance(weights, int):
        weights = np.random.default_rng([weights, 1]).lognormal(0, 0.7, len(shared.users))
    if weights is not None:
        shared = shared.replace(weight=np.asarray(weights))
    return mechanism.solve(shared, 1e-8).arrays.user_tasks


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("mechanism", EXACT, ids=str)
def test_weights_of_global_mechanisms_come_back_as_tasks(mechanism: Mechanism, limits: bool) -> None:
    for seed in range(2):
        shared = cluster(seed, limits)
        tasks = given(mechanism, shared, seed)
        found = fo.find_weights(shared, mechanism, tasks=tasks)
        # Not by what it says of itself: an answer of its own.
        assert_allclose(given(mechanism, shared, found.weights), tasks, rtol=3e-6)
        assert found.weights[shared.runnable].mean() == pytest.approx(1)
        assert found.solves <= 5  # the closed form, not a search


@pytest.mark.parametrize("mechanism", SEARCHED, ids=str)
def test_weights_of_the_game_come_back_as_tasks(mechanism: Mechanism) -> None:
    """In nearly all: where answers have kinks the search may end short, and says so."""
    found = 0
    for seed in range(5):
        shared = cluster(seed)
        tasks = given(mechanism, shared, seed)
        try:
            weights = fo.find_weights(shared, mechanism, tasks=tasks).weights
        except NotConverged as error:
            if "no proof that there are none" not in str(error):
                raise
            continue
        assert_allclose(given(mechanism, shared, weights), tasks, rtol=3e-6)
        found += 1
    assert found >= 4


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.AlphaFair(3)], ids=str)
def test_the_ends_of_ranges_give_the_same_tasks_and_what_is_beyond_does_not(mechanism: Mechanism) -> None:
    open_ranges = 0
    for seed in range(4):
        shared = cluster(seed, limits=True)
        if len(shared.servers) == 1:
            continue
        tasks = given(mechanism, shared, seed)
        found = fo.find_weights(shared, mechanism, tasks=tasks)
        ranges, reference = found.ranges, found.ranges.attrs["reference"]
        low, weight, high = (ranges[name] for name in ("lowest", "weight", "highest"))
        assert found.unique == bool((high - low <= 1e-6 * weight).all())
        assert low[reference] == pytest.approx(high[reference])
        assert ((low <= weight * (1 + 1e-6)) & (high >= weight * (1 - 1e-6))).all()
        open_ranges += not found.unique
        for user in ranges.index.drop(reference):
            for beyond in (low[user] * 0.98, high[user] * 1.02):
                if 0 < beyond < np.inf:
                    other = given(mechanism, shared.replace(weight=found.weights.to_numpy()).with_weight(user, beyond))
                    assert np.abs(other - tasks)[shared.runnable].max() > 1e-5 * tasks.max(), (seed, user, beyond)
    assert open_ranges > 0


def test_shares_and_names() -> None:
    shared = EXAMPLE.replace(users=["a", "b"])
    tasks = given(fo.DRF(), shared, [3, 1])
    for numbers in (
        {"tasks": pd.Series(tasks[::-1], index=["b", "a"])},
        {"tasks": tasks[::-1], "users": ["b", "a"]},
        {"shares": dict(zip("ab", tasks * shared.dominant_share_per_task, strict=True))},
    ):
        found = fo.find_weights(shared, "drf", **numbers)
        assert_allclose(found.weights, [1.5, 0.5], rtol=1e-6)
    assert list(found.to_frame().columns) == ["weight", "tasks", "reached"]
    assert repr(found).startswith("weights for DRF, mean 1; tasks agree to 1e-")


SHARED = fo.Cluster(
    [[9, 18], [4, 4]],
    [[1, 4], [3, 1], [1, 1]],
    max_tasks=[np.inf, 2.5, np.inf],
    resources=["cpu", "ram"],
    users=["a", "b", "c"],
)


INFEASIBLE = r"infeasible: .*'(cpu|ram)' of 'server\d'.* would not do for more than 0\.\d+ times"


@pytest.mark.parametrize(
    ("tasks", "more", "message"),
    [
        ([8, 2, 8], {}, INFEASIBLE),
        ([1, 2, 1], {}, r"users could use idle capacity.*for user '[ac]' \(\d+.*% more\)"),
        ([1, 0, 1], {}, r"tasks of user 'b' is 0, although it could.*drop_user"),
        ([1, 3, 1], {}, r"user 'b' has 3 tasks, and only 2.5 to run"),
        ([1, np.nan, 1], {}, r"tasks of user 'b' is nan"),
        ([1, -1, 1], {}, r"tasks of user 'b' is -1"),
        ([1, 1], {}, r"one number per user, 3 in all .*got shape \(2,\)"),
        ({"a": 1, "b": 1, "d": 1}, {}, r"missing: c; unknown: d"),
        ([1, 1], {"users": ["a", "c"]}, r"lacks b"),
        ([1], {"users": ["z"]}, r"users has 'z'"),
        (None, {}, r"give either tasks or shares"),
        ([1, 1, 1], {"shares": [1, 1, 1]}, r"give either tasks or shares"),
    ],
)
def test_what_no_weights_give_is_named(tasks: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.find_weights(SHARED, fo.DRFH(), tasks=tasks, **more)


@pytest.mark.parametrize(
    ("mechanism", "tasks", "message"),
    [
        (fo.AlphaPFVDS(1), [1, 2, 1], r"idle capacity"),
        (fo.PSDSF(), [8, 2, 8], r"these tasks are infeasible"),
        (fo.Utilitarian(), [1, 1, 1], r"weights do not matter to utilitarian"),
        (fo.MQDRF(), [1, 1, 1], r"weights do not matter to MQDRF"),
        (fo.FDS(2, -1), [1, 1, 1], r"not of the alpha-fair family"),
        (fo.GuaranteedAlphaFair(), [1, 1, 1], r"has floors"),
    ],
)
def test_which_mechanisms_have_none(mechanism: Mechanism, tasks: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.find_weights(SHARED, mechanism, tasks=tasks)


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.AlphaFair(2), fo.AlphaPFVDS(3)], ids=str)
@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_nearest_that_can_be_given(mechanism: Mechanism, factor: float) -> None:
    shared, game = cluster(9), mechanism == fo.AlphaPFVDS(3)
    tasks = given(mechanism, shared, 9)
    with pytest.raises((DataError, NotConverged), match="nearest=True"):
        fo.find_weights(shared, mechanism, tasks=factor * tasks)
    found = fo.find_weights(shared, mechanism, tasks=factor * tasks, nearest=True)
    assert_allclose(found.allocation.arrays.user_tasks, found.tasks, rtol=1e-6)
    assert found.allocation.certificate.passes(1e-6)
    # Nobody has less than was stated where that is feasible.
    assert found.scale == pytest.approx(min(1, 1 / factor), rel=0.2 if game and factor > 1 else 1e-6)
    if factor > 1 and not game:
        assert_allclose(found.tasks, tasks, rtol=1e-5)


def test_who_runs_nowhere_has_the_weight_1_and_no_tasks() -> None:
    shared = fo.Cluster([[9, 18]], [[1, 4], [3, 1], [1, 1]], eligible=[[True], [True], [False]])
    found = fo.find_weights(shared, "drf", tasks=[3, 2, 0])
    assert found.weights.iloc[2] == 1
    with pytest.raises(DataError, match="tasks of user 'user3' is 1, but it can run nowhere"):
        fo.find_weights(shared, "drf", tasks=[3, 2, 1])
    with pytest.raises(FairoptError, match="no user of the cluster can run anything"):
        fo.find_weights(shared.replace(eligible=np.zeros((3, 1), bool)), "drf", tasks=[0, 0, 0])


def test_the_clusters_own_weights_come_first_where_many_will_do() -> None:
    """Two users who share nothing have all that they can use, whatever their weights."""
    cluster = fo.Cluster([[9.0, 6]], [[1.0, 0], [0, 1]], weight=[1, 3])
    found = fo.find_weights(cluster, fo.DRFH(), tasks=[9, 6])
    assert_allclose(found.weights, [0.5, 1.5], rtol=1e-12)
    assert found.solves == 1
    assert found.ranges.loc["user1"].tolist() == [0.5, 0, np.inf]


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.AlphaFair(2)], ids=str)
def test_whose_limit_binds_is_no_reference(mechanism: Mechanism) -> None:
    """User 1 has all its tasks at any weight that is large enough; the others have theirs at one ratio only."""
    cluster = fo.Cluster([[6.0]], [[1.0]] * 3, weight=[8, 1, 1], max_tasks=[2, np.inf, np.inf])
    ranges = fo.find_weights(cluster, mechanism, tasks=[2, 2, 2]).ranges
    assert ranges.attrs["reference"] != "user1"
    assert_allclose(ranges["lowest"], 0.3, rtol=1e-6)
    assert_allclose(ranges["highest"], [np.inf, 0.3, 0.3], rtol=1e-6)


def test_the_answer_is_on_the_servers_as_they_are() -> None:
    """Servers that are alike are one server while weights are looked for."""
    cluster = fo.Cluster([[9.0, 18]] * 3, [[1, 4], [3, 1]])
    found = fo.find_weights(cluster, "drfh", tasks=fo.DRFH().solve(cluster.replace(weight=[2, 1])).user_tasks)
    assert found.allocation.cluster.servers == cluster.servers
    assert found.allocation.tasks.shape == (2, 3)


def test_the_nearest_of_all_answers_is_kept_not_the_last() -> None:
    seen: list[Any] = []

    def answer(weights: np.ndarray) -> Any:
        seen.append(SimpleNamespace(arrays=SimpleNamespace(user_tasks=np.array([1.0, 3.0 if seen else 1.1]))))
        return seen[-1]

    found = matched(answer, [np.ones(2), np.full(2, 2.0)], np.ones(2), np.arange(2), 1e-6)
    assert len(seen) > 2
    assert found.allocation is seen[0]
    assert (found.found_at, found.error) == (1, pytest.approx(1 - 1 / 1.1))
