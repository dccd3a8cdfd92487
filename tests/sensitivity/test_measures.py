"""Derivatives of measures where users tie for one, by types of servers, and by what a share does not follow alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.result import metrics

from .differences import sensitivity

MECHANISMS = (fo.AlphaFair(2.0), fo.DRFH(), fo.AlphaPFVDS(2.0))
TIED = fo.Cluster([[6.0, 6, 9]], [[2.0, 1, 1], [1, 2, 1], [1, 1, 2.5]])  # users 1 and 2 have the smallest share
PLAIN = fo.Cluster(*(np.random.default_rng(3).uniform(1, 5, (rows, 3)) for rows in (3, 5)))


def slopes(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster, field: str, more: object) -> dict[str, float]:
    """By differences: of all measures where data of a field are times `exp(more)`, and times `exp(-more)`."""
    step = np.max(more)
    after, before = (
        mechanism.solve(cluster.replace(**{field: getattr(cluster, field) * np.exp(h)}), 1e-10).summary()
        for h in (np.array(more), -np.array(more))
    )
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
        ("weights", "weight", 0, ("user1", "")),
        ("weights", "weight", 2, ("user3", "")),
        ("demands", "demand", (1, 1), ("user2", "resource2")),
        ("capacities", "capacity", (0, 2), ("server1", "resource3")),
    ):
        more = np.zeros(getattr(cluster, field).shape)
        more[at] = 1e-5
        mine, there = table.loc[(by, *label)].dropna(), slopes(mechanism, cluster, field, more)
        assert not tied or len(mine) >= len(table.columns) - 1
        names = [name for name in there if name in mine]
        expected = [there[name] for name in names]
        assert mine[names].tolist() == pytest.approx(expected, rel=0 if tied else 1e-4, abs=1e-5), (by, label)
    if tied:
        least = table["min_share"]
        # Users 1 and 2 lose differently where user 3 needs more.
        for label in (("weights", "user1", ""), ("demands", "user2", "resource2"), ("demands", "user3", "resource1")):
            assert np.isnan(least[label])
        assert least["weights", "user3", ""] == pytest.approx(-0.14235, abs=1e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_type_of_servers_is_all_of_its_capacities(mechanism: fo.mechanisms.Mechanism) -> None:
    cluster = fo.Cluster([[6.1, 4.0]] * 2 + [[3.0, 7.3]], [[3, 1], [1, 2.2], [2, 1.7]])
    table = sensitivity(mechanism, cluster).measures
    own = table.loc["capacities"].loc["server3"].sum()
    assert_allclose(table.loc[("counts", "server3", "")], own, atol=1e-9)
    there = slopes(mechanism, cluster, "capacity", [[1e-4], [1e-4], [0]])
    for name in ("utilization", "welfare", "tasks"):
        assert table.loc[("counts", "server1 x2", ""), name] == pytest.approx(there[name], abs=1e-3), name


def test_a_user_with_two_dominant_resources() -> None:
    """Tasks have derivatives, as they follow no dominant share; welfare, which is a sum of these, has none."""
    found = sensitivity(fo.CEEI(), fo.Cluster([[4.0, 4, 4.5]], [[2, 2, 1], [1, 1.5, 3]]))
    assert found.demands.notna().all(axis=None)
    welfare = found.measures["welfare"]
    whose = (("demands", "user1"), ("capacities", "server1"))
    expected = {(*whom, resource) for whom in whose for resource in ("resource1", "resource2")}
    assert {label for label in welfare.index[welfare.isna()] if label[0] != "counts"} == expected


def test_one_sided_values_of_jumps_are_none() -> None:
    cluster = fo.Cluster([[6.0]], [[1.0]] * 3, max_tasks=[2, np.inf, np.inf])  # user 1 just reaches its limit
    found = sensitivity(fo.DRFH(), cluster)
    assert found.one_sided().loc[("weights", "user1", "", "left"), "user1"] == pytest.approx(2 / 3, abs=1e-4)
    base = found.answer.arrays.user_tasks
    jumps = dataclasses.replace(found, solve=lambda by, k, step: base * np.exp(np.sqrt(abs(step))))
    assert jumps.one_sided().isna().all(axis=None)
