"""What people type into the tables: clusters, or errors that belong to the field."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairopt as fo
from fairopt.app.explorer import Start
from fairopt.app.explorer.edits import State, number, shared
from fairopt.errors import DataError


def racks() -> fo.Cluster:
    return fo.Cluster(
        capacity=[[4, 8], [4, 8], [16, 4]],
        demand=[[1, 2], [2, 1], [1, 1]],
        max_tasks=[math.inf, 3, math.inf],
        resources=["cpu", "memory"],
        users=["web/a", "web/b", "batch"],
        servers=["rack-1", "rack-2", "big"],
    )


def test_identical_servers_are_one_entry_with_a_count() -> None:
    """If placement and names are alike."""
    start = Start.of(racks())
    assert (start.names, start.counts.tolist(), start.groups) == (("rack", "big"), [2, 1], ("web", "web", "batch"))
    free = fo.Cluster([[4]] * 3, [[1]], servers=["a-1", "a-2", "b-1"])
    assert Start.of(free).names == ("a", "b-1")
    named_like_its_racks = fo.Cluster([[4], [4], [9]], [[1]], servers=["a-1", "a-2", "a"])
    assert Start.of(named_like_its_racks).names == ("a-1 +1", "a")
    placed = fo.Cluster([[4]] * 3, [[1], [1]], eligible=[[1, 1, 1], [1, 0, 1]], servers=["a-1", "a-2", "a-3"])
    assert Start.of(placed).entry_of.tolist() == [0, 1, 0]


def test_every_field_can_be_edited() -> None:
    edits = {
        "users/0/demand/1": "2,5",
        "users/0/weight": 3,
        "users/1/max_tasks": "",
        "users/2/on": False,
        "users/1/eligible/0": False,
        "servers/0/count": "4",
        "servers/1/capacity/0": "1e2",
    }
    edited = Start.of(racks()).edited(edits)
    assert edited.cluster == fo.Cluster(
        [[4, 8]] * 4 + [[100, 4]],
        [[1, 2.5], [2, 1]],
        [3, 1],
        [[1] * 5, [0] * 4 + [1]],
        resources=["cpu", "memory"],
        users=["web/a", "web/b"],
        servers=["rack-1", "rack-2", "rack-3", "rack-4", "big"],
    )
    assert (edited.entry_of.tolist(), edited.user_of.tolist()) == ([0, 0, 0, 0, 1], [0, 1])


def test_switched_off_and_no_more_than_there_are() -> None:
    start = Start.of(racks())
    assert start.edited({"servers/0/on": False}).cluster.servers == ("big",)
    assert start.edited({"servers/0/count": 1}).cluster.servers == ("rack-1", "big")
    for kind, count in (("users", 3), ("servers", 2)):
        with pytest.raises(DataError, match="is left"):
            start.edited({f"{kind}/{n}/on": False for n in range(count)})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("users/0/demand/1", "x"),
        ("users/0/demand/1", "-1"),
        ("users/1/weight", "0"),
        ("users/1/weight", True),
        ("users/2/max_tasks", "-3"),
        ("servers/1/capacity/0", "inf"),
        ("servers/1/count", "2.5"),
        ("servers/1/count", "1e9"),
        ("servers/1/count", "inf"),
        ("servers/1/on", "no"),
    ],
)
def test_an_error_belongs_to_its_field(key: str, value: object) -> None:
    with pytest.raises(DataError) as caught:
        Start.of(racks()).edited({"users/0/on": key.startswith("users/0"), key: value})  # rows are as people see them
    assert "/".join(map(str, caught.value.where)) == key


@pytest.mark.parametrize(
    "key", ["users/9/weight", "users/-1/weight", "users/0/demand/7", "x", "users/0/name", "servers/0"]
)
def test_a_field_that_is_not_there(key: str) -> None:
    with pytest.raises(DataError, match="there is no field"):
        Start.of(racks()).edited({key: "1"})


def test_two_levels_of_weight() -> None:
    edits = {"weights": "shared", "users/0/weight": 4, "users/1/weight": 4}
    assert Start.of(racks()).edited(edits).cluster.weight.tolist() == [2, 2, 1]
    assert shared(np.array([3.0, 3, 3, 1]), ["a", "a", "a", "b"]).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("typed", "value"), [("2.5", 2.5), ("2,5", 2.5), (" 3 ", 3), ("∞", math.inf), ("inf", math.inf)]
)
def test_numbers_as_people_type_them(typed: str, value: float) -> None:
    assert number(typed, (), "it") == value


@pytest.mark.parametrize("typed", ["", "1_0", "2 3", None, [1], "1,2,3"])
def test_no_numbers(typed: object) -> None:
    with pytest.raises(DataError, match=r"write a number, such as 2\.5"):
        number(typed, (), "it")


def test_states_come_back() -> None:
    state = State("ps-dsf", math.inf, {"users/0/weight": "2"})
    assert State.of(state.to_json()) == state
    with pytest.raises(DataError) as caught:
        State.of({"alpha": "-1"})
    assert caught.value.where == ("alpha",)


def test_counts_have_a_limit_together() -> None:
    with pytest.raises(DataError, match="120,000 servers") as caught:
        Start.of(racks()).edited({"servers/0/count": 60_000, "servers/1/count": 60_000})
    assert caught.value.where == ("servers",)


def test_edits_leave_the_start_alone() -> None:
    placed = fo.Cluster([[4], [5]], [[1], [1]], eligible=[[1, 1], [1, 0]])
    for cluster in (racks(), placed):
        start = Start.of(cluster)
        edits = {"users/0/eligible/1": False, "users/1/weight": 7, "users/0/demand/0": 3, "servers/1/capacity/0": 9}
        assert start.edited(edits).cluster != cluster
        assert start.edited({}).cluster == cluster
