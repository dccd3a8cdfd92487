"""Clouds, many users on many servers of few types: nothing is asked by pair, and crowds are solved by groups."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.core.engines import welfare
from fairopt.core.game import crowd as by_sample
from fairopt.core.game import groups
from fairopt.errors import DataError
from fairopt.model import _arrays
from fairopt.model.problem import Problem

MECHANISMS = [fo.DRFH(), fo.CEEI("servers"), fo.AlphaFair(2)]


@pytest.fixture(scope="module")
def cloud() -> fo.Cluster:
    cluster = fo.workloads.google_like(np.random.default_rng(1), 2000, 20_000).cluster
    twice = np.arange(2500) % 2000  # some users are alike
    return fo.Cluster(cluster.capacity, cluster.demand[twice])


@pytest.mark.parametrize("mechanism", [*MECHANISMS, fo.AlphaPFVDS(2)], ids=str)
def test_nothing_is_dense_on_the_way(cloud: fo.Cluster, mechanism: fo.Mechanism) -> None:
    mechanism.solve(cloud)  # compiled
    tracemalloc.start()
    found = mechanism.solve(cloud.replace(weight=2.0))
    assert found.certify().residual == pytest.approx(found.certificate.residual, abs=1e-9)
    texts = [repr(found), found._repr_html_(), repr(cloud), cloud._repr_html_()]
    row, table = found["user7"], found.tasks_by_type
    assert cloud != found.cluster == found.cluster.replace(weight=2.0)
    fewer = cloud.drop_user("user7")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(cloud.users) * len(cloud.servers) / 4
    assert all(texts)
    assert len(fewer.users) == len(cloud.users) - 1
    assert found.certificate.passes()
    assert_allclose(row.sum(), found.user_tasks["user7"])
    assert_allclose(table.sum(axis=1), found.user_tasks)
    assert table.shape[1] == len(fo.merge(cloud, users=False).cluster.servers)
    assert not any(f"x{n}" in found.certificate.worst for n in range(10)), "merged labels are not the user's"


def test_tables_without_memory_are_refused_in_words() -> None:
    with pytest.raises(DataError, match=r"no memory for a table of 10,000,000,000 x 10,000,000 numbers.*: merge"):
        _arrays.table((10**10, 10**7), "merge")


def crowd(kind: str) -> fo.Cluster:
    rng = np.random.default_rng(len(kind))
    capacity, demand = rng.lognormal(0, 0.5, (3, 2)), rng.lognormal(0, 0.7, (3000, 2))
    if kind == "zeros":
        demand[:1000, 0] = 0.0
    if kind == "odd":  # no users have demands as different as these capacities
        capacity = np.array([[1.0, 9.0], [9.0, 1.0], [1.0, 1.0]])
    limits = np.where(rng.random(3000) < 0.5, 1e-3 * rng.random(3000), np.inf) if kind == "limits" else None
    eligible = rng.random((3000, 3)) < [0.5, 1.0, 1.0] if kind == "placed" else None
    return fo.Cluster(capacity, demand, rng.uniform(1, 3, 3000), max_tasks=limits, eligible=eligible)


@pytest.mark.parametrize("kind", ["plain", "zeros", "odd", "limits", "placed"])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, fo.AlphaPFVDS(3)], ids=str)
def test_a_crowd_is_solved_by_groups_as_by_users(
    mechanism: fo.Mechanism, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = mechanism.solve(crowd(kind))
    monkeypatch.setattr(welfare, "CROWD", 1000)
    monkeypatch.setattr(groups, "PART", 0.5)  # more groups than of larger crowds
    monkeypatch.setattr(by_sample, "_SAMPLED", 300)
    found = mechanism.solve(crowd(kind))
    welfare_program = mechanism in MECHANISMS[1:]
    assert found.stats.solver == ("sample of users" if welfare_program else "groups of users")
    assert_allclose(found.user_tasks, right.user_tasks, rtol=1e-6)


def test_groups_do_not_solve_pools_and_floors() -> None:
    cluster = crowd("plain")
    floors = replace(fo.CEEI("servers").criterion(cluster), floor=np.full(3000, 1e-9))
    others = fo.CEEI("pool").criterion(cluster), fo.PSDSF().criterion(cluster)
    for rule in (floors, *others):
        assert not [*by_sample.solutions(Problem(cluster, rule), 1e-6, "native")]
