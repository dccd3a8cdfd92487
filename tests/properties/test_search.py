"""Searches find what is known to be violated, nothing where there is a proof, and files that can be checked."""

from __future__ import annotations

from fractions import Fraction as F
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.properties import Case, Property, SearchOptions, Witness, get, search
from fairopt.properties._search import _simpler, moved, shrunk, with_entry, without
from fairopt.properties._tasks import instances
from fairopt.properties.strategy_proofness import misreport

FOUND = [
    ("drfh", "sharing-incentive"),
    ("drf", "population-monotonicity"),
    ("asset-fairness", "resource-monotonicity"),
    ("ceei", "strategy-proofness"),
    ("alphapf-vds(alpha=4)", "pareto-optimality"),
]
#: One resource: however it is shared, the sum of shares is the same.
TIED = fo.Cluster([[1], [1]], [[1], [1]], eligible=[[1, 1], [0, 1]])


#: Batches as large as usual find larger violations, and take four times as long.
FEW = SearchOptions(batch=60)


@cache
def searched(mechanism: str, name: str) -> Witness | None:
    return search(mechanism, name, trials=4000, rng=0, options=FEW)


@pytest.mark.parametrize(("mechanism", "name"), FOUND)
def test_known_violations_are_found_small_and_again(mechanism: str, name: str) -> None:
    found = searched(mechanism, name)
    assert found is not None
    assert 1e-4 < found.violation[0] <= found.violation[1] <= 1
    assert max(found.cluster.shape) <= 4
    again = found.replay()
    assert found.violation[0] - 1e-9 <= again.violation <= found.violation[1] + 1e-9
    assert again.text == found.text
    assert found.exact == ("ceei" not in mechanism and "alpha" not in mechanism)
    assert bool(found.selection) == ("alphapf" in mechanism)
    if name == "resource-monotonicity":
        assert repr(search(mechanism, name, trials=4000, rng=0, options=FEW)) == repr(found)


def test_ties_are_left_where_a_proof_is_near() -> None:
    """The largest losses of the utilitarian rule are at ties, where an optimum is one of many."""
    found = search("utilitarian", "population-monotonicity", trials=2000, rng=5, options=FEW)
    assert found is not None
    assert found.exact
    assert not found.selection
    tied = fo.properties.verify("utilitarian", "single-resource-fairness", TIED)
    assert not tied.exact
    assert "optimum that Mechanism.solve returns" in tied.selection


@pytest.mark.parametrize(
    ("mechanism", "name", "options", "message"),
    [
        ("drfh", "kindness", {}, "no property 'kindness'"),
        ("drfhh", "envy-freeness", {}, "no mechanism"),
        ("drfh", "envy-freeness", {"conditions": ["happy users"]}, "happy users"),
        ("drfh", "envy-freeness", {"conditions": "equal weights"}, "give a list"),
        ("drfh", "envy-freeness", {"trials": -3}, "trials is -3; it must be a whole number, at least 1"),
        ("drfh", "envy-freeness", {"trials": 2.5}, "trials is 2.5; it must be a whole number"),
    ],
)
def test_what_cannot_be_searched(mechanism: str, name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        search(mechanism, name, **options)


def test_shrinking_ends_where_no_simplification_survives() -> None:
    cluster = fo.Cluster([[6, 4], [8, 2]], [[2, 4], [4, 2], [2, 2]], [1, 2, 1], [[1, 1], [1, 0], [1, 1]], [5, 7, 9])

    def survives(some: Any) -> list[bool]:
        """The first user needs at least two of something, and a second user is there."""
        return [one.demand[0].max() >= 2 and len(one.users) > 1 for one, _ in some]

    small, _ = shrunk((cluster, None), survives)
    assert small.shape == (2, 1, 1)
    assert small.demand[0, 0] == 2
    assert small == small.replace(weight=None, max_tasks=None)
    assert not any(survives(_simpler((small, None))))


def test_shrinking_keeps_the_part_of_the_violation_that_is_asked_for() -> None:
    def found(kept: float) -> float:
        options = SearchOptions(kept=kept, further=0)
        witness = search("task-maxmin", "sharing-incentive", 600, rng=3, options=options)
        assert witness is not None
        return float(witness.violation[0])

    assert found(0.05) < found(1.0) / 2


def test_lies_about_measured_amounts_change_one_or_all() -> None:
    cluster, rng = fo.Cluster([[13, 20e9]], [[0.5, 4e9], [3, 1.2e9]]), np.random.default_rng(0)
    parts = np.array([misreport(cluster, 0, ("demand",), rng).demand[0] / cluster.demand[0] for _ in range(80)])
    assert (parts > 0).all()
    assert {1, 2} <= set((parts != 1).sum(axis=1).tolist())
    assert parts.max() <= 16


def test_changes_are_made_in_both_clusters() -> None:
    cluster = fo.Cluster([[6, 4]], [[2, 4], [4, 2], [1, 1]])
    instance: Any = (cluster, fo.properties.Deviation(cluster.drop_user("user1"), ("user1",)))
    changed, deviation = with_entry(instance, "demand", (2, 0), 3)
    assert changed.demand[2, 0] == deviation.cluster.demand[1, 0] == 3  # type: ignore[union-attr]
    fewer, deviation = without(instance, "users", "user2")
    assert (fewer.users, deviation.cluster.users) == (("user1", "user3"), ("user3",))  # type: ignore[union-attr]
    prop, rng = get("population-monotonicity"), np.random.default_rng(0)
    for _ in range(50):
        instance = moved(instance, rng)
        assert prop.admits(*instance)


@pytest.mark.parametrize("name", [name for name in fo.properties.names() if get(name).compares])
def test_deviations_are_such_as_the_property_admits(name: str) -> None:
    cluster = fo.Cluster([[6, 4], [3, 3]], [[2, 4], [4, 2], [1, 1]], max_tasks=[np.inf, 3, np.inf])
    prop = get(name)
    some = list(instances(prop, cluster, np.random.default_rng(1), 20))
    assert len(some) == (3 if name == "population-monotonicity" else 20)
    assert all(deviation is not None and prop.admits(cluster, deviation) for _, deviation in some)
    other = fo.properties.Deviation(cluster.with_weight("user1", 2), ("user1",))
    assert not prop.admits(cluster, other)


def test_files_come_back_and_foreign_ones_are_refused(tmp_path: Path) -> None:
    witness, path = searched("drf", "population-monotonicity"), tmp_path / "w.json"
    assert witness is not None
    witness.save(path)
    again = Witness.load(path)
    assert repr(again) == repr(witness)
    assert isinstance(again.before[0], F)
    assert (again.exact, again.cluster, again.changed) == (True, witness.cluster, witness.changed)
    again.replay()
    for text, message in (("[]", "no witness file"), ("{", "not valid JSON"), ('{"a": 1}', "no witness file")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            Witness.load(path)


def test_a_property_of_ones_own() -> None:
    """By being defined it can be checked and searched."""

    class Equality(Property):
        """Nobody has fewer tasks than another. Source: this test."""

        name = "equality"
        definition = "all have the same tasks"

        def dues(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
            return case.user_tasks, 0 * case.user_tasks + case.user_tasks.max()

    try:
        found = search("drf", "equality", trials=500, rng=1, options=FEW)
        assert getattr(found, "exact", False)
        assert search("task-maxmin", "equality", trials=100, rng=1, conditions=["one resource"]) is not None  # weights
    finally:
        del fo.properties.REGISTRY["equality"]
