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
from fairopt.errors import SolverError
from fairopt.solving import solve


def _exhausted(*_: object, **__: object) -> Any:
    raise MemoryError


def test_an_engine_without_memory_is_a_candidate_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, mechanism = fo.Cluster([[9, 18], [5, 2]], [[1, 4], [3, 1]]), fo.DRFH()
    expected = mechanism.solve(cluster).arrays.user_tasks
    monkeypatch.setattr("fairopt.engines.native.solutions", _exhausted)
    found = mechanism.solve(cluster)
    assert found.stats.engine == "declarative"
    assert_allclose(found.arrays.user_tasks, expected, rtol=1e-5)
    monkeypatch.setattr("fairopt.engines.reference.declarative.solutions", _exhausted)
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
    monkeypatch.setattr(solve, "broken", solve.broken.__wrapped__)
    monkeypatch.setattr("fairopt.engines.native.solutions", fails)
    found, what = mechanism.solve(cluster), re.escape(f"the native engine broke down ({type(error).__name__}: {error})")
    assert_allclose(found.arrays.user_tasks, expected, rtol=1e-5)
    assert re.match(f"{what}: please report it", found.notes[0])
    monkeypatch.setattr("fairopt.engines.reference.declarative.solutions", _exhausted)
    with pytest.raises(SolverError, match=f"{what}; the declarative engine ran out of memory") as raised:
        mechanism.solve(cluster)
    assert raised.value.__cause__.__cause__ is error
    monkeypatch.setattr("fairopt.engines.native.solutions", lambda *_, **__: warnings.warn("odd", stacklevel=1))
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
