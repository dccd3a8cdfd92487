"""Clusters with a sparse demand: the answers of the dense ones, certified, or a refusal in words."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.certificates.sparse_pool import rise
from fairopt.errors import DataError
from fairopt.model import _intake
from fairopt.model.cluster import SparseCluster

POOLED = ("drf", "asset-fairness", "mqdrf")
ON_SERVERS = ("drfh", "tsf", "task-maxmin", "alpha-fair(alpha=inf)")


def drawn(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Arguments with a dense demand, and the same sparse one: many ties, zeros, limits, weights, servers to pool."""
    users, servers, resources = rng.integers(1, 9), rng.integers(1, 3), 12
    demand = np.where(rng.random((users, resources)) < 0.15, rng.integers(1, 5, (users, resources)), 0.0)
    demand[demand.sum(axis=1) == 0, 0] = 1
    data: dict[str, Any] = {
        "capacity": rng.integers(rng.integers(2), 9, (servers, resources)),
        "demand": demand,
        "weight": rng.integers(1, 4, users),
        "max_tasks": np.where(rng.random(users) < 0.3, rng.integers(0, 4, users), np.inf),
    }
    return data, sp.coo_array(demand)


def test_answers_are_those_of_dense_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_intake, "_DENSE", 0)
    rng, forged = np.random.default_rng(8), 0
    for _ in range(20):
        data, demand = drawn(rng)
        dense, sparse = fo.Cluster(**data), fo.Cluster(**data | {"demand": demand})
        if not isinstance(sparse, SparseCluster):  # half of the entries are not zero
            continue
        assert_allclose(sparse.gamma0, dense.gamma0)
        for name in POOLED + ON_SERVERS * (len(dense.servers) == 1):
            mechanism = fo.mechanisms.one(name)
            right, found = mechanism.solve(dense), mechanism.solve(sparse, 1e-9)
            assert_allclose(found.user_tasks, right.user_tasks, rtol=1e-6, atol=1e-9, err_msg=name)
            assert_allclose(found.utilization, right.utilization, rtol=1e-6, atol=1e-9)
            assert found.certify().passes(1e-9)
            for n in np.flatnonzero(found.tasks[:, 0])[:2]:
                less, more = found.tasks.copy(), found.tasks.copy()
                less[n], more[n], forged = 0.999 * less[n], 1.001 * more[n], forged + 2
                for tasks in (less, more):
                    assert not fo.certificates.certify(found.cluster, tasks, found.criterion)[0].passes(1e-5)
    assert forged > 150


@pytest.fixture(scope="module")
def large() -> SparseCluster:
    rng = np.random.default_rng(1)
    users, resources = 2000, 1000
    place = np.repeat(np.arange(users), 4), rng.integers(0, resources, 4 * users)
    demand = sp.csr_array((rng.uniform(0.1, 1, 4 * users), place), (users, resources))
    cluster = fo.Cluster(rng.uniform(5, 20, (1, resources)), demand)
    assert isinstance(cluster, SparseCluster)
    return cluster


def test_nothing_is_dense_on_the_way(large: SparseCluster) -> None:
    fo.DRF().solve(large)  # compiled
    tracemalloc.start()
    found = fo.DRF().solve(large.replace(weight=2.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < large.shape[0] * large.shape[2] * 8 / 4
    assert found.certificate.passes(1e-9)
    assert repr(found).count("resource") == 20
    assert "resource1000" in found._repr_html_()
    assert len(np.unique(found.criterion.levels(found.tasks[:, 0]).round(9))) > 100


def test_a_chain_of_levels_is_as_far_apart_as_its_ends() -> None:
    """Users of one resource, each level 9e-11 above the one before: the lowest could rise to the highest."""
    users = 3000
    cluster = fo.Cluster([[1.0] * 400], sp.csr_matrix((np.ones(users), (range(users), [0] * users)), (users, 400)))
    x = (1 + 9e-11) ** np.arange(users)
    bound = rise(cluster, x / x.sum(), fo.DRF().criterion(cluster), cluster.max_tasks)
    assert bound[0] == pytest.approx(9e-11 * users, rel=0.01)


def test_a_value(large: SparseCluster) -> None:
    again = pickle.loads(pickle.dumps(large))
    assert (again.sparse_demand != large.sparse_demand).nnz == 0
    assert large == large != again
    assert "2000 users, 1 servers, 1000 resources" in repr(large)
    with pytest.raises(ValueError, match="read-only"):
        large.sparse_demand.data[0] = 7


@pytest.mark.parametrize(
    "name", sorted({"ceei", "ps-dsf", "alphapf-vds", "utilitarian", "fds", "per-server-drf", "tree"})
)
def test_others_refuse_in_words(large: SparseCluster, name: str) -> None:
    with pytest.raises(DataError, match="only max-min on one pool takes it as it is"):
        fo.mechanisms.get(name).solve(large)


def test_properties_refuse_in_words(large: SparseCluster) -> None:
    with pytest.raises(DataError, match="only max-min on one pool takes it as it is"):
        fo.properties.report("drf", large)


def test_by_names_and_small() -> None:
    wants = {"ann": {"cpu": 1, "ram": 4}, "bob": {"ram": 1, "cpu": 3}}
    cluster = fo.Cluster([[9, 18]], wants, resources=["cpu", "ram"])
    assert cluster == fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=["ann", "bob"], resources=["cpu", "ram"])
    assert fo.Cluster([[9, 18]], sp.csr_array([[1, 4], [3, 1]])) == fo.Cluster([[9, 18]], [[1, 4], [3, 1]])


@pytest.mark.parametrize(
    ("demand", "more", "message"),
    [
        ({"ann": {"gpu": 1}}, {}, "user 'ann' demands 'gpu'"),
        ({"ann": [1, 2]}, {}, "demand must be a table"),
        ({"ann": {"cpu": -1}}, {}, "demand -1 of 'cpu'"),
        ({"ann": {"cpu": "much"}}, {}, "demand must be numbers"),
        ({"ann": {"cpu": [1]}}, {}, "lists as amounts"),
        (sp.dok_array([[1, np.nan]]), {}, "demand nan of 'ram'"),
        ({"ann": {}}, {}, "demands nothing"),
        ({"ann": {"cpu": 1}}, {"users": ["bob"]}, "leave out users"),
        (sp.csr_array([[1, 2j]]), {}, "complex128"),
        (sp.csr_array([[1, np.nan]]), {}, "demand nan of 'ram'"),
        (sp.csr_array([[1, 2, 3]]), {}, "3"),
    ],
)
def test_invalid(demand: Any, more: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (_intake._DENSE, -9):
        monkeypatch.setattr(_intake, "_DENSE", most)
        with pytest.raises(DataError, match=message):
            fo.Cluster([[9, 18]], demand, resources=["cpu", "ram"], **more)


def test_no_placement(large: SparseCluster) -> None:
    with pytest.raises(DataError, match="placement constraints"):
        large.replace(eligible=np.arange(large.shape[0])[:, None] > 0)
