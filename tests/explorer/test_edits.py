"""What people type into the tables: clusters, or errors that belong to the field."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.explorer import Start
from fairopt.explorer.edits import State, number, shared


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
    start = Start.of(racks())
    assert start.names == ("rack", "big")
    assert start.counts.tolist() == [2, 1]
    assert start.groups == ("web", "web", "batch")


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
    cluster = edited.cluster
    assert cluster.demand.tolist() == [[1, 2.5], [2, 1]]
    assert cluster.weight.tolist() == [3, 1]
    assert np.isinf(cluster.max_tasks).all()
    assert cluster.users == ("web/a", "web/b")
    assert cluster.servers == ("rack-1", "rack-2", "rack-3", "rack-4", "big")
    assert cluster.capacity[-1].tolist() == [100, 4]
    assert cluster.eligible.tolist() == [[True] * 5, [False] * 4 + [True]]
    assert edited.entry_of.tolist() == [0, 0, 0, 0, 1]
    assert edited.user_of.tolist() == [0, 1]


def test_switched_off_and_no_more_than_there_are() -> None:
    edited = Start.of(racks()).edited({"servers/0/on": False})
    assert edited.cluster.servers == ("big",)
    assert Start.of(racks()).edited({"servers/0/count": 1}).cluster.servers == ("rack-1", "big")


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("users/0/demand/1", "x", ("users", 0, "demand", 1)),
        ("users/0/demand/1", "-1", ("users", 0, "demand", 1)),
        ("users/0/demand/1", "nan", ("users", 0, "demand", 1)),
        ("users/1/weight", "0", ("users", 1, "weight")),
        ("users/1/weight", True, ("users", 1, "weight")),
        ("users/2/max_tasks", "-3", ("users", 2, "max_tasks")),
        ("servers/1/capacity/0", "inf", ("servers", 1, "capacity", 0)),
        ("servers/1/count", "2.5", ("servers", 1, "count")),
        ("servers/1/count", "1e9", ("servers", 1, "count")),
        ("servers/1/count", "inf", ("servers", 1, "count")),
        ("servers/1/on", "no", ("servers", 1, "on")),
    ],
)
def test_an_error_belongs_to_its_field(key: str, value: object, where: tuple[str | int, ...]) -> None:
    with pytest.raises(DataError) as caught:
        Start.of(racks()).edited({"users/0/on": key.startswith("users/0"), key: value})  # rows are as people see them
    assert caught.value.where == where


@pytest.mark.parametrize(
    "key", ["users/9/weight", "users/-1/weight", "users/0/demand/7", "x", "users/0/name", "servers/0"]
)
def test_a_field_that_is_not_there(key: str) -> None:
    with pytest.raises(DataError, match="there is no field"):
        Start.of(racks()).edited({key: "1"})


@pytest.mark.parametrize("kind", ["users", "servers"])
def test_nothing_left(kind: str) -> None:
    with pytest.raises(DataError, match="is left"):
        Start.of(racks()).edited({f"{kind}/{n}/on": False for n in range(3 if kind == "users" else 2)})


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


def test_servers_are_one_entry_only_if_placement_and_names_are_alike() -> None:
    free = fo.Cluster([[4], [4], [4]], [[1]], servers=["a-1", "a-2", "b-1"])
    assert Start.of(free).names == ("a", "b-1")
    placed = fo.Cluster([[4], [4], [4]], [[1], [1]], eligible=[[1, 1, 1], [1, 0, 1]], servers=["a-1", "a-2", "a-3"])
    assert Start.of(placed).entry_of.tolist() == [0, 1, 0]


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
        made = start.edited({}).cluster
        assert made == cluster
        assert (made.users, made.servers, made.resources) == (cluster.users, cluster.servers, cluster.resources)
