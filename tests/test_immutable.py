"""Clusters, allocations and criteria stay what they are: read-only, right in copies, apart from what was given."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from strategies import clusters

import fairopt as fo
from fairopt.model.criterion import criterion

COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda original: original,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda original: pickle.loads(pickle.dumps(original)),
    "old pickle": lambda original: pickle.loads(pickle.dumps(original, protocol=2)),
}
ARGUMENTS = ("capacity", "demand", "weight", "eligible", "max_tasks")
DERIVED = (
    *("gamma0", "gamma", "usable", "runnable", "pooled_capacity", "share_per_task", "dominant_share_per_task"),
    *("dominant_resource", "normalised_demand"),
)
LIMITED = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]], [1, 2], [[1, 1], [1, 0]], [np.inf, 2])


@pytest.mark.parametrize("how", COPIES)
def test_clusters(how: str) -> None:
    @settings(max_examples=25)
    @given(clusters())
    def law(cluster: fo.Cluster) -> None:
        wanted = {name: np.array(getattr(cluster, name)) for name in DERIVED}
        found = COPIES[how](cluster)
        assert type(found) is fo.Cluster
        assert found == cluster
        for name in DERIVED:
            assert_array_equal(getattr(found, name), wanted[name])
        for name in (*ARGUMENTS, *DERIVED):
            with pytest.raises(ValueError, match="read-only"):
                getattr(found, name)[...] = 0
            with pytest.raises(AttributeError, match=rf"immutable; use replace\({name}=\.\.\.\)"):
                setattr(found, name, 1)

    law()


def test_what_takes_no_room_takes_none_in_a_pickle() -> None:
    """A table of who may run everywhere, however it was given."""
    for eligible in (None, np.ones((500, 2000)), np.ones((500, 2000), dtype=bool)):
        large = fo.Cluster(np.ones((2000, 1)), np.ones((500, 1)), eligible=eligible)
        assert len(pickle.dumps(large)) < 100_000
        for same in (large, large.replace(weight=2.0), pickle.loads(pickle.dumps(large))):
            assert same.eligible.strides == (0, 0)
            assert not same.constrained


def test_what_is_given_is_copied() -> None:
    """Arrays that somebody goes on with stay theirs, and what they do to them stays with them."""
    given = {name: np.array(getattr(LIMITED, name)) for name in ARGUMENTS}
    cluster, weight, tasks = fo.Cluster(**given), np.ones(2), np.zeros((2, 2))
    rule, other = criterion(cluster, np.ones(2), 1, "servers", weight), replace(fo.DRFH().solve(LIMITED), tasks=tasks)
    for array in (*given.values(), weight, tasks):
        array[...] = 1 - array
    assert cluster == LIMITED
    assert rule.weight.tolist() == [1, 1]
    assert not other.tasks.any()


@pytest.fixture(scope="module")
def allocations(tmp_path_factory: pytest.TempPathFactory) -> list[fo.Allocation]:
    """One of each way to come by an allocation."""
    solved, saved = fo.AlphaPFVDS(3).solve(LIMITED), tmp_path_factory.mktemp("saved") / "saved.json"
    solved.save(saved)
    merged = fo.PSDSF().solve(fo.Cluster([[9, 18], [18, 36], [4, 4]], [[1, 4], [3, 1]]))  # and split again
    others = [fo.DRFH().solve(LIMITED), fo.FDS(2, -2).solve(LIMITED), fo.best_response(LIMITED, 2.0)]
    return [solved, merged, *others, fo.Allocation.load(saved)]


@pytest.mark.parametrize("how", COPIES)
def test_allocations(how: str, allocations: list[fo.Allocation]) -> None:
    for allocation in allocations:
        wanted, tasks = allocation.certify(), np.array(allocation.tasks)
        found = COPIES[how](allocation)
        assert_array_equal(found.tasks, tasks)
        assert found.certify() == wanted
        assert found.cluster == allocation.cluster
        rule = found.criterion
        for array in (found.tasks, rule.share, rule.weight, rule.cap, found.log_prices, found.certificate.conditions):
            assert array is None or not array.flags.writeable
        for owner, name in ((found, "tasks"), (found, "certificate"), (rule, "share"), (found.certificate, "gap")):
            with pytest.raises(AttributeError, match="cannot assign"):
                setattr(owner, name, None)
