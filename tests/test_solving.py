"""What one solve builds: everything once."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.errors import EngineWarning, SolverError
from fairopt.mechanisms import _solve


def _exhausted(*_: object, **__: object) -> Any:
    raise MemoryError


def test_an_engine_without_memory_is_a_candidate_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, mechanism = fo.Cluster([[9, 18], [5, 2]], [[1, 4], [3, 1]]), fo.DRFH()
    expected = mechanism.solve(cluster).arrays.user_tasks
    monkeypatch.setattr("fairopt.core.engines.native.solutions", _exhausted)
    found = mechanism.solve(cluster)
    assert found.stats.engine == "declarative"
    assert_allclose(found.arrays.user_tasks, expected, rtol=1e-5)
    monkeypatch.setattr("fairopt.mechanisms.reference.declarative.solutions", _exhausted)
    size = "ran out of memory on 2 users x 2 servers x 2 resources, 4 pairs"
    with pytest.raises(SolverError, match=f"native engine {size}; the declarative engine {size}"):
        mechanism.solve(cluster)


@pytest.mark.parametrize("error", [IndexError("index 1"), ZeroDivisionError(), RuntimeError("singular"), KeyError(3)])
def test_nothing_but_our_errors_leaves_solve(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object, **__: object) -> Iterator[Any]:
        raise error
        yield

    cluster, mechanism = fo.Cluster([[9, 18], [5, 2]], [[1, 4], [3, 1]]), fo.DRFH()
    expected = mechanism.solve(cluster).arrays.user_tasks
    monkeypatch.setattr("fairopt.core.engines.native.solutions", fails)
    what = re.escape(f"the native engine broke down ({type(error).__name__}: {error})")
    with pytest.warns(EngineWarning, match=f"{what}: please report it"):
        found = mechanism.solve(cluster)
    assert_allclose(found.arrays.user_tasks, expected, rtol=1e-5)
    assert re.match(f"{what}: please report it", found.notes[0])
    monkeypatch.setattr("fairopt.mechanisms.reference.declarative.solutions", _exhausted)
    failed = pytest.raises(SolverError, match=f"{what}; the declarative engine ran out of memory")
    with failed as raised, pytest.warns(EngineWarning, match=what):
        mechanism.solve(cluster)
    assert raised.value.__cause__.__cause__ is error
    monkeypatch.setattr("fairopt.core.engines.native.solutions", lambda *_, **__: warnings.warn("odd", stacklevel=1))
    with pytest.raises(UserWarning, match="odd"):
        mechanism.solve(cluster)


@pytest.mark.parametrize("name", ["drfh", "tsf", "asset-fairness(scope=servers)", "ceei(scope=servers)", "alphapf-vds"])
def test_what_is_factorised_grows_as_users_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nonzeros of all matrices that a solve factorises, at twice as many users on ten kinds of servers."""
    handed = []

    def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(matrix: Any, *given: Any, **named: Any) -> Any:
            handed.append(int(getattr(matrix, "nnz", np.size(matrix))))
            return function(matrix, *given, **named)

        return call

    for library, functions in (
        (scipy.sparse.linalg, ("splu",)),
        (scipy.linalg.lapack, ("spotrf", "dpotrf", "sgetrf", "dgetrf")),
        (np.linalg, ("solve", "lstsq", "inv", "svd")),
    ):
        for function in functions:
            monkeypatch.setattr(library, function, recorded(getattr(library, function)))
    largest = []
    for users in (300, 600, 1200):
        handed.clear()
        fo.mechanisms.parse(name)[0].solve(fo.open_source(f"google-like?users={users}&servers=12583&seed=5").cluster)
        largest.append(max(handed))
    assert all(after <= 2.5 * before for before, after in pairwise(largest)), largest


def _in_classes() -> fo.Cluster:
    """Sixty users whose demands are multiples of six, with weights and places by class.

    Two classes have task limits in proportion to weight, of which one binds, and three users have limits of their own.
    """
    rng = np.random.default_rng(4)
    of, size = rng.integers(0, 6, 60), rng.uniform(0.5, 2, (60, 1))
    demand, weight = rng.uniform(0.1, 1, (6, 3))[of] * size, rng.uniform(0.5, 2, 60)
    capacity = rng.uniform(1, 3, (4, 3))
    limits = np.where(of < 2, np.where(of, 9.0, 0.05) * weight / size[:, 0], np.inf)
    limits[:3] = 0.01
    return fo.Cluster(capacity, demand, weight, (rng.random((6, 4)) < 0.7)[of], max_tasks=limits)


@pytest.mark.parametrize("name", ["drfh", "tsf", "asset-fairness(scope=servers)", "ceei(scope=servers)", "ps-dsf",
                                  "alpha-fair(alpha=3)", "alphapf-vds(alpha=3)"])  # fmt: skip
def test_merged_users_have_the_certificate_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, mechanism, found = _in_classes(), fo.mechanisms.parse(name)[0], {}
    for least in (0, 100):
        monkeypatch.setattr(_solve, "_USERS", least)
        found[least] = mechanism.solve(cluster, 1e-8)
    merged, single = found[0], found[100]
    assert len(merged.warm.merging.cluster.users) == 9
    assert (merged.arrays.user_tasks <= cluster.max_tasks * (1 + 1e-14)).all()
    assert_allclose(merged.arrays.user_tasks, single.arrays.user_tasks, rtol=1e-6)
    assert_allclose(mechanism.solve(cluster, 1e-8, start=merged).arrays.user_tasks, single.arrays.user_tasks, rtol=1e-6)
    whole = merged.certify()
    assert whole.residual <= 1e-8
    assert abs(whole.residual - merged.certificate.residual) <= 1e-9
    if whole.conditions is not None:
        assert_allclose(merged.certificate.conditions, whole.conditions, rtol=1e-6)


@pytest.mark.parametrize("rule", [fo.AlphaFair(3, share="task"), fo.GuaranteedAlphaFair(3)])
def test_users_stay_apart_where_sizes_of_tasks_count(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_solve, "_USERS", 0)
    cluster = _in_classes()
    for start in (None, fo.DRFH().solve(cluster)):
        assert len(rule.solve(cluster, start=start).warm.merging.cluster.users) == 60
