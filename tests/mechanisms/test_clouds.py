"""Clouds, many users on many servers of few types: nothing is asked by pair, and crowds are packed from a pool."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.core.engines import native, packed, welfare
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


def crowd(seed: int, resources: int = 2, spread: float = 0.3) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.lognormal(0, spread, (4, resources)), rng.lognormal(0, 0.7, (3000, resources)))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_crowd_is_packed_as_it_is_solved(mechanism: fo.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = [mechanism.solve(crowd(seed)) for seed in range(2)]
    monkeypatch.setattr(welfare, "CROWD", 1000)
    monkeypatch.setattr(packed, "_GROUPS", 2)  # so that groups are split
    for seed, right in enumerate(rights):
        found = mechanism.solve(crowd(seed))
        assert found.stats.solver == "optimum of the pool, packed"
        assert_allclose(found.user_tasks, right.user_tasks, rtol=1e-6)
        assert found.certificate.passes()
        limited = crowd(seed).replace(max_tasks=1.1 * float(right.user_tasks.mean()))
        assert mechanism.solve(limited).certificate.passes()


def test_what_servers_cannot_hold_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = fo.Cluster([[1, 9], [9, 1]], crowd(0).demand)  # no users have demands as different as these capacities
    right = fo.CEEI("servers").solve(odd)
    monkeypatch.setattr(welfare, "CROWD", 1000)
    problem = Problem(odd, right.criterion)
    assert not [*packed.solutions(problem, lambda one: native.solutions(one, 1e-6))]
    assert_allclose(fo.CEEI("servers").solve(odd).user_tasks, right.user_tasks, rtol=1e-6)
    barred = odd.replace(eligible=np.arange(6000).reshape(3000, 2) > 0)
    floors = replace(right.criterion, floor=np.full(3000, 1e-9))
    for other in (Problem(barred, right.criterion), Problem(odd, floors)):
        assert not [*packed.solutions(other, lambda _: pytest.fail("a pool says nothing about these"))]
