"""Dynamic DRF: as its program says, exact, and with the properties that its paper proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.errors import DataError
from fairopt.scheduling.dynamic_drf import DynamicShares, dynamic_drf

Array = np.ndarray[Any, Any]


@st.composite
def clusters(draw: st.DrawFn, positive: bool = True, weighted: bool = False) -> fo.Cluster:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    users, resources = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    demand = rng.integers(1 if positive else 0, 6, (users, resources)).astype(float)
    demand[demand.sum(axis=1) == 0] = 1
    weight = rng.integers(1, 5, users) if weighted else np.ones(users)
    return fo.Cluster([rng.integers(1, 9, resources)], demand, weight)


def parts(found: DynamicShares) -> tuple[Array, Array]:
    """D and w, from the cluster."""
    c = found.cluster
    share = c.demand / c.capacity[0]
    return share / share.max(axis=1, keepdims=True), c.weight / c.weight.sum()


@settings(max_examples=12)
@given(cluster=clusters(positive=False, weighted=True))
def test_the_program_as_written_gives_the_same(cluster: fo.Cluster) -> None:
    np.testing.assert_allclose(dynamic_drf(cluster).level, dynamic_drf(cluster, engine="declarative").level, rtol=1e-7)


@given(cluster=clusters(weighted=True))
def test_it_is_fair_at_every_step(cluster: fo.Cluster) -> None:
    """Nobody loses, the least rise to where a resource is used up; sharing incentive, dynamic envy-freeness.

    As everybody needs all resources, one that is used up makes the step optimal, exact and dynamically Pareto.
    """
    found = dynamic_drf(cluster)
    demand, weight = parts(found)
    n = len(weight)
    for k in range(n):
        x, before = found.share[k], found.share[k - 1] if k else np.zeros(n)
        assert (x[: k + 1] >= weight[: k + 1] * (1 - 1e-12)).all()
        np.testing.assert_allclose(
            x, np.where(np.arange(n) <= k, np.maximum(before, found.level[k] * weight), 0), 1e-12
        )
        assert (x @ demand).max() == pytest.approx(weight[: k + 1].sum(), rel=1e-12)
        for i in range(k + 1):
            for j in range(k + 1):
                envied = (x[j] * demand[j] / demand[i]).min() * weight[i] / weight[j] > x[i] * (1 + 1e-9)
                assert not envied or (j < i and x[j] == found.share[i - 1, j])


@given(cluster=clusters(weighted=True), seed=st.integers(0, 2**32))
def test_lies_do_not_pay(cluster: fo.Cluster, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(cluster.users)
    liar = int(rng.integers(n))
    lie = np.array(cluster.demand)
    lie[liar] *= rng.choice([1.0, 1.0, 0.5, 2.0, 5.0], lie.shape[1])
    truth, lied = dynamic_drf(cluster), dynamic_drf(cluster.replace(demand=lie))
    bundle = lied.share[:, [liar]] * parts(lied)[0][liar]
    useful = (bundle / parts(truth)[0][liar]).min(axis=1)
    assert (useful <= truth.share[:, liar] * (1 + 1e-9)).all()


def test_who_envies_came_later() -> None:
    """Envy-freeness itself does not hold: two have shared what the third would have liked."""
    found = dynamic_drf(fo.Cluster([[1, 1]], [[1, 0.5], [0.5, 1], [1, 0.1]]))
    demand, _ = parts(found)
    assert found.share[-1].tolist() == pytest.approx([4 / 9, 4 / 9, 1 / 3])
    assert (found.share[-1, 0] * demand[0] / demand[2]).min() == pytest.approx(4 / 9)  # is more than 1/3


def test_the_order_is_that_of_arrivals_and_servers_are_pooled() -> None:
    cluster = fo.Cluster([[4, 9], [5, 9]], [[1, 4], [3, 1]], users=["A", "B"])
    tasks = dynamic_drf(cluster, ["B", "A"]).tasks
    assert tasks.index.tolist() == ["B", "A"]
    assert tasks.loc["B"].to_dict() == pytest.approx({"B": 1.5, "A": 0})
    assert tasks.loc["A"].to_dict() == pytest.approx({"B": 2, "A": 3})
    frame = dynamic_drf(cluster).to_frame()
    assert frame["released"].tolist() == [0.5, 1]
    assert frame.loc["B", "resource1"] == pytest.approx(1)
    assert "DynamicShares of 2 users" in repr(dynamic_drf(cluster))


@pytest.mark.parametrize(
    ("cluster", "options", "said"),
    [
        *(
            (fo.Cluster([[1]], [[1], [1]]), {"order": order}, "order must name every user once")
            for order in (["user1"], [0, 1], ["user1", 1], 1)
        ),
        (fo.Cluster([[1, 0]], [[1, 0], [1, 1]]), {}, "'user2' needs a resource"),
        (fo.Cluster([[1]], [[1]], max_tasks=[3]), {}, "task count"),
        (fo.Cluster([[1]], [[1]]), {"engine": "magic"}, "engine is 'magic'"),
    ],
)
def test_what_it_does_not_know_is_named(cluster: fo.Cluster, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        dynamic_drf(cluster, **options)
