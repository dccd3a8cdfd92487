"""Derivatives of measures where users tie for one, by types of servers, and by what a share does not follow alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fairopt as fo
from fairopt.result import metrics

MECHANISMS = (fo.AlphaFair(2.0), fo.DRFH(), fo.AlphaPFVDS(2.0))
TIED = fo.Cluster([[6.0, 6, 9]], [[2.0, 1, 1], [1, 2, 1], [1, 1, 2.5]])  # users 1 and 2 have the smallest share
PLAIN = fo.Cluster(*(np.random.default_rng(3).uniform(1, 5, (rows, 3)) for rows in (3, 5)))


def slopes(mechanism: fo.mechanisms.Mechanism, ends: list[fo.Cluster], step: float) -> dict[str, float]:
    """By differences: of all measures between two clusters, the second of which has the smaller data."""
    after, before = (mechanism.solve(cluster, 1e-10).summary() for cluster in ends)
    return {name: (after[name] - before[name]) / (2 * step) for name in metrics.MEASURES if name in after}


@pytest.mark.parametrize(
    ("mechanism", "cluster"),
    [(fo.AlphaFair(2.0), TIED), *((one, PLAIN) for one in MECHANISMS)],
    ids=lambda one: str(one) if isinstance(one, fo.mechanisms.Mechanism) else f"{one.shape}",
)
def test_measures_move_as_solves_say_and_a_tie_for_one_leaves_the_others(
    mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster
) -> None:
    table, tied = mechanism.solve(cluster, 1e-10).sensitivity().measures, cluster == TIED
    assert list(table.columns) == [name for name in metrics.MEASURES if name in table]
    for by, field, at, label in (
        ("weights", "weight", (0,), ("user1", "")),
        ("weights", "weight", (2,), ("user3", "")),
        ("demands", "demand", (1, 1), ("user2", "resource2")),
        ("capacities", "capacity", (0, 2), ("server1", "resource3")),
    ):
        ends = []
        for sign in (1, -1):
            values = np.array(getattr(cluster, field))
            values[at] *= np.exp(sign * 1e-5)
            ends.append(cluster.replace(**{field: values}))
        mine = table.loc[(by, *label)].dropna()
        assert not tied or len(mine) >= len(table.columns) - 1
        for name, slope in slopes(mechanism, ends, 1e-5).items():
            if name in mine:
                assert mine[name] == pytest.approx(slope, rel=0 if tied else 1e-4, abs=1e-5), (by, label, name)
    if tied:
        unknown = table.index[table["min_share"].isna()]
        assert {("weights", "user1", ""), ("demands", "user2", "resource2")} <= {*unknown}
        assert ("demands", "user3", "resource1") in unknown  # users 1 and 2 lose differently
        assert table.loc[("weights", "user3", ""), "min_share"] == pytest.approx(-0.14235, abs=1e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_type_of_servers_is_all_of_its_capacities(mechanism: fo.mechanisms.Mechanism) -> None:
    cluster = fo.Cluster([[6.1, 4.0]] * 2 + [[3.0, 7.3]], [[3, 1], [1, 2.2], [2, 1.7]])
    table = mechanism.solve(cluster, 1e-9).sensitivity().measures
    own = [("capacities", "server3", resource) for resource in cluster.resources]
    np.testing.assert_allclose(table.loc[("counts", "server3", "")], sum(table.loc[one] for one in own), atol=1e-9)
    more = np.array([[1e-4], [1e-4], [0]])
    slope = slopes(mechanism, [cluster.replace(capacity=cluster.capacity * np.exp(h)) for h in (more, -more)], 1e-4)
    for name in ("utilization", "welfare", "tasks"):
        assert table.loc[("counts", "server1 x2", ""), name] == pytest.approx(slope[name], abs=1e-3), name


def test_a_user_with_two_dominant_resources() -> None:
    """Tasks have derivatives, as they follow no dominant share; welfare, which is a sum of these, has none."""
    cluster = fo.Cluster([[4.0, 4, 4.5]], [[2, 2, 1], [1, 1.5, 3]])
    found = fo.CEEI().solve(cluster, 1e-9).sensitivity()
    table = found.measures["welfare"]
    assert found.demands.notna().all(axis=None)
    nan = {label for label, value in table.items() if np.isnan(value) and label[0] != "counts"}
    whose = (("demands", "user1"), ("capacities", "server1"))
    assert nan == {(*whom, resource) for whom in whose for resource in ("resource1", "resource2")}


def test_one_sided_values_of_jumps_are_none() -> None:
    cluster = fo.Cluster([[6.0]], [[1.0]] * 3, max_tasks=[2, np.inf, np.inf])  # user 1 just reaches its limit
    found = fo.DRFH().solve(cluster, 1e-9).sensitivity()
    assert found.one_sided().loc[("weights", "user1", "", "left"), "user1"] == pytest.approx(2 / 3, abs=1e-4)
    base = found.answer.arrays.user_tasks
    jumps = dataclasses.replace(found, solve=lambda label, step: base * np.exp(np.sqrt(abs(step))))
    assert jumps.one_sided().isna().all(axis=None)
