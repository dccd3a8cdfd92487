"""What `solve_many` takes: stacked arrays that are broadcast, lists of clusters, and errors that say what is wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from kernels import without_kernels

import fairopt as fo
from fairopt.errors import DataError

ONE = fo.Cluster([[1]], [[1]])
RNG = np.random.default_rng(0)
CAPACITY, DEMAND = RNG.uniform(2, 9, (6, 2, 2)), RNG.uniform(0.5, 4, (6, 3, 2))


def alone(mechanism: fo.mechanisms.Mechanism, p: int, **more: object) -> np.ndarray:
    with without_kernels():
        return mechanism.solve(fo.Cluster(CAPACITY[p], DEMAND[p], **more), 1e-9).arrays.user_tasks


def test_every_problem_is_solved_with_all_its_data() -> None:
    weight, limit = RNG.uniform(1, 3, (6, 3)), RNG.choice([0.4, np.inf], (6, 3))
    eligible = RNG.random((6, 3, 2)) < 0.7
    found = fo.solve_many(fo.DRFH(), CAPACITY, DEMAND, weight, eligible, limit, tol=1e-9)
    assert not found.failed
    assert found.certificate.max() <= 1e-9
    for p in range(6):
        wanted = alone(fo.DRFH(), p, weight=weight[p], eligible=eligible[p], max_tasks=limit[p])
        assert found.user_tasks[p] == pytest.approx(wanted, rel=1e-9)
        assert found.tasks[p].sum(axis=1) == pytest.approx(found.user_tasks[p])


@pytest.mark.parametrize("capacity", [CAPACITY[0], CAPACITY[:1]], ids=["without the axis", "of length one"])
def test_what_is_shared_counts_for_all_problems(capacity: np.ndarray) -> None:
    found = fo.solve_many("alpha-fair(alpha=2)", capacity, DEMAND, weight=[1, 2, 3], max_tasks=0.9)
    for p in range(6):
        cluster = fo.Cluster(CAPACITY[0], DEMAND[p], weight=[1, 2, 3], max_tasks=0.9)
        assert found.user_tasks[p] == pytest.approx(fo.AlphaFair(2).solve(cluster).arrays.user_tasks, rel=1e-6)


def test_clusters_of_any_shape_are_padded() -> None:
    clusters = [fo.Cluster([[4, 4]], [[1, 2]], users=["a"]), fo.Cluster([[9, 1], [2, 8]], [[1, 4], [3, 1]])]
    found = fo.solve_many(fo.DRFH(), clusters)
    assert found.tasks.shape == (2, 2, 2)
    assert np.isnan(found.tasks[0, 1:]).all()
    assert np.isnan(found.tasks[0, :, 1:]).all()
    assert found.user_tasks[0, 0] == pytest.approx(2)
    assert found.user_tasks[1] == pytest.approx(fo.DRFH().solve(clusters[1]).arrays.user_tasks)
    frame = found.to_frame()
    assert frame.index.tolist() == [(0, "a"), (1, "user1"), (1, "user2")]
    assert frame.loc[(0, "a"), "tasks"] == pytest.approx(2)
    assert len(found) == 2


def test_bad_problems_are_named_and_the_others_answered() -> None:
    capacity, demand = np.repeat(CAPACITY[:1], 2000, axis=0), np.repeat(DEMAND[:1], 2000, axis=0)
    weight, limit, eligible = np.ones((2000, 3)), np.full((2000, 3), np.inf), np.ones((2000, 3, 2))
    capacity[7, 1, 0], demand[70, 1], demand[700, 2, 1], weight[1001, 0] = np.nan, 0, -1, 0
    limit[1002, 2], eligible[1003, 0, 1], eligible[1004, 1] = -2, 0.5, 0
    found = fo.solve_many(fo.DRFH(), capacity, demand, weight, eligible, limit)
    reasons = dict(found.failed)
    assert list(reasons) == [7, 70, 700, 1001, 1002, 1003]
    for p, text in {
        7: "'server2'",
        70: "'user2'",
        700: "'user3'",
        1001: "weight",
        1002: "max_tasks",
        1003: "0.5",
    }.items():
        assert text in reasons[p], p
        assert np.isnan(found.tasks[p]).all()
        assert np.isnan(found.certificate[p])
    assert found.user_tasks[1004, 1] == 0  # may run nowhere
    good = np.delete(found.user_tasks, [*reasons, 1004], axis=0)
    assert good == pytest.approx(np.tile(alone(fo.DRFH(), 0), (len(good), 1)))
    shown = repr(found)
    assert "1994 of 2000 problems" in shown
    assert "problem 7 failed: server 'server2'" in shown
    assert "and 1 more" in shown


def test_who_can_run_nothing_anywhere_gets_nothing() -> None:
    found = fo.solve_many("ps-dsf", np.ones((2, 1, 1)), np.ones((2, 2, 1)), eligible=np.zeros((2, 2, 1)), tol=1e-9)
    assert not found.failed
    assert not found.tasks.any()


def test_a_list_may_hold_what_is_no_cluster() -> None:
    found = fo.solve_many(fo.DRF(), [ONE, "cluster.csv"])
    assert "of type str" in dict(found.failed)[1]
    assert found.user_tasks[0, 0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((CAPACITY, DEMAND[:4]), "problems differ in number: capacity 6, demand 4"),
        ((CAPACITY, DEMAND[:, :, :1]), "capacity has 2 resources and demand has 1"),
        ((CAPACITY, DEMAND, np.ones((6, 2))), "weight must have one number per user, 3 in all"),
        ((CAPACITY, "many"), "demand must be numbers"),
        ((CAPACITY[0, 0], DEMAND), "capacity must have axes"),
        ((CAPACITY,), "demand is missing"),
        (([],), "the list of clusters is empty"),
        ((ONE,), "give a list of clusters"),
        (([ONE], None, [1.0]), "a list of clusters comes alone"),
        ((np.zeros((6, 0, 2)), DEMAND), "at least one of"),
        ((np.zeros((0, 1, 2)), np.zeros((0, 1, 2))), "problems differ in number"),
    ],
)
def test_arrays_that_do_not_fit_are_an_error(arguments: tuple[object, ...], text: str) -> None:
    with pytest.raises(DataError, match=text):
        fo.solve_many(fo.DRF(), *arguments)


def test_the_mechanism_and_the_tolerance_are_checked() -> None:
    wrong = (
        ("alphapf-vds", 1e-6, "names several mechanisms"),
        (fo.DRFH, 1e-6, "DRFH is a class"),
        ("drfh", 0, "tol is 0"),
    )
    for mechanism, tol, text in wrong:
        with pytest.raises(DataError, match=text):
            fo.solve_many(mechanism, CAPACITY, DEMAND, tol=tol)


def test_results_cannot_be_changed_and_survive_a_pickle() -> None:
    found = fo.solve_many(fo.CEEI(), CAPACITY, DEMAND)
    with pytest.raises(ValueError, match="read-only"):
        found.tasks[0, 0, 0] = 1
    again = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    assert again.failed == found.failed


def test_given_arrays_stay_as_they_are() -> None:
    capacity, eligible = CAPACITY.copy(), np.ones((6, 3, 2))
    fo.solve_many(fo.TSF(), capacity, DEMAND, eligible=eligible)
    capacity[0] = 1
    eligible[0] = 0
    assert capacity.flags.writeable
