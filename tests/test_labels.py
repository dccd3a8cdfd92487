"""Data frames and series count by their labels, and a mismatch is an error."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import clusters

import fairopt as fo
from fairopt.errors import DataError

SERVERS = pd.DataFrame({"cpu": [9.0, 4.0], "ram": [18, 4]}, index=["S", "T"])


USERS = pd.DataFrame({"ram": [4, 1], "cpu": [1.0, 3.0]}, index=["A", "B"])


WANTED = fo.Cluster([[9, 18], [4, 4]], [[1, 4], [3, 1]], resources=["cpu", "ram"], users=["A", "B"], servers=["S", "T"])


def test_frames_and_series_count_by_their_labels() -> None:
    """The table of demands has its columns in another order: by position it would be another cluster."""
    assert fo.Cluster(SERVERS, USERS) == WANTED
    assert fo.Cluster(SERVERS, USERS, servers=["T", "S"]).capacity.tolist() == [[4, 4], [9, 18]]
    weighted = WANTED.replace(weight=[1, 2], max_tasks=[3, 4])
    weight, most = pd.Series([2, 1], index=["B", "A"]), pd.Series({"B": 4, "A": 3})
    assert fo.Cluster(SERVERS, USERS, weight, None, most) == weighted
    assert WANTED.replace(weight=weight, max_tasks=most) == weighted
    assert fo.Cluster(SERVERS.to_numpy(), USERS, resources=["cpu", "ram"], servers=["S", "T"]) == WANTED
    assert WANTED.with_demand("A", pd.Series({"ram": 5, "cpu": 7})).demand[0].tolist() == [7, 5]
    assert WANTED.with_eligible("A", pd.Series({"T": 1, "S": 0})).eligible[0].tolist() == [False, True]


@pytest.mark.parametrize("listed", [("T",), {"T"}, "T"])
def test_placement_by_name(listed: Any) -> None:
    """Users that are not named may run everywhere."""
    placed = fo.Cluster(SERVERS, USERS, eligible={"B": listed})
    assert placed.eligible.tolist() == [[True, True], [False, True]]
    assert not fo.Cluster(SERVERS, USERS, eligible={}).constrained
    assert placed.to_frames()["eligible"].to_string() in repr(placed)


@pytest.mark.parametrize("given", [fo.Cluster, fo.Cluster.from_frames])
def test_names_in_a_column_are_set_as_the_index(given: Any) -> None:
    with pytest.raises(DataError, match=r"text in column 'server', .*\.set_index\('server'\)"):
        given(SERVERS.reset_index(names="server"), USERS)
    with pytest.raises(DataError, match=r"text in column 'who', .*\.set_index\('who'\)"):
        given(SERVERS, USERS.reset_index(names="who"))


def test_rows_that_pandas_numbered_have_no_names() -> None:
    plain = pd.DataFrame([[9, 18], [4, 4]]), pd.DataFrame([[1, 4], [3, 1]])
    assert fo.Cluster(*plain, resources=["cpu", "ram"], users=["A", "B"], servers=["S", "T"]) == WANTED
    assert WANTED.replace(weight=pd.Series([1, 2])).weight.tolist() == [1, 2]
    assert WANTED.with_demand("A", pd.Series([7, 5])).demand[0].tolist() == [7, 5]


MISMATCHES: list[tuple[dict[str, Any], str]] = [
    ({"demand": USERS.rename(columns={"ram": "disk"})}, "demand must have a column per resource.*missing: ram.*disk"),
    ({"weight": pd.Series([1, 2], index=["A", "C"])}, "weight must have a row per user.*missing: B; unknown: C"),
    ({"eligible": pd.DataFrame(1, index=["A", "B"], columns=["S", "U"])}, "eligible must have a column per server"),
    ({"eligible": {"C": ["S"]}}, "eligible names user 'C'; there are A, B"),
    ({"eligible": {"B": ["X"]}}, "user 'B' is eligible on 'X', but no server is called so"),
    ({"eligible": {"B": [1, 0]}}, "user 'B' is eligible on 1, .*a list of names of servers"),
    ({"users": ["A", "C"]}, "demand must have a row per user, under its name; missing: C; unknown: B"),
    ({"demand": USERS[["cpu", "cpu"]]}, "two resources are called 'cpu'"),
    ({"demand": USERS.set_axis(pd.MultiIndex.from_product([["A"], [1, 2]]))}, "a user is called .*; a name must be"),
]


@pytest.mark.parametrize(("change", "message"), MISMATCHES)
def test_labels_that_do_not_match_are_an_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.Cluster(**({"capacity": SERVERS, "demand": USERS} | change))


def test_labels_of_rows_that_do_not_match() -> None:
    with pytest.raises(DataError, match=r"demand must have an entry per resource.*missing: ram; unknown: disk"):
        WANTED.with_demand("A", pd.Series({"cpu": 1, "disk": 1}))
    with pytest.raises(DataError, match=r"must have shape \(2,\)"):
        WANTED.with_demand("A", USERS)  # type: ignore[arg-type]


FRAMES: list[tuple[dict[str, Any], str]] = [
    ({"users": USERS.assign(weight=pd.array([1, None], dtype="Int64"))}, r"user 'B' \(row 1\) has weight nan"),
    ({"users": USERS.assign(cpu=["1", "2"])}, r"row 0 has '1' in column 0 \('cpu'\), which is not a number"),
    ({"users": USERS.iloc[:0]}, "users must be a list of tables with at least one entry"),
    ({"users": USERS["cpu"]}, "users is of type Series; it must be a DataFrame"),
    ({"eligible": pd.DataFrame(pd.NA, index=["A", "B"], columns=["S", "T"])}, "user 'A' has eligible nan"),
    (
        {"users": USERS.assign(id=[7, 8]).reset_index(drop=True)},
        r"unknown \['id'\]; .*users.set_index",
    ),
    ({"eligible": [[1, 1], [1, 1]]}, "eligible is of type list; it must be a DataFrame"),
]


@pytest.mark.parametrize(("change", "message"), FRAMES)
def test_from_frames_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.Cluster.from_frames(**({"servers": SERVERS, "users": USERS} | change))


def test_from_frames_takes_every_kind_of_number() -> None:
    for users in (
        USERS.astype(object),
        USERS.astype("category"),
        USERS.assign(max_tasks=pd.array([None, None], dtype="Int64")),
        USERS.assign(max_tasks=[np.nan, np.inf], weight=1),
    ):
        assert fo.Cluster.from_frames(SERVERS, users) == WANTED
    numbered = fo.Cluster.from_frames(SERVERS.reset_index(drop=True), USERS.reset_index(drop=True))
    assert (numbered.users, numbered.servers) == (("0", "1"), ("0", "1"))
    assert numbered.select(users=[1]) == numbered.drop_user(0) == numbered.select(users="1")
    assert fo.Allocation.of(numbered, {1: {0: 1}, 0: {}})[1].tolist() == [1, 0]


@given(clusters(), st.randoms(use_true_random=False))
def test_frames_in_any_order_are_the_same_cluster(cluster: fo.Cluster, random: Any) -> None:
    frames = cluster.to_frames()
    shuffled = {}
    for name, frame in frames.items():
        rows, columns = list(range(frame.shape[0])), list(range(frame.shape[1]))
        if name == "eligible":
            random.shuffle(rows)
        if name != "servers":
            random.shuffle(columns)
        shuffled[name] = frame.iloc[rows, columns]
    assert fo.Cluster.from_frames(**shuffled) == cluster


def columns(frame: pd.DataFrame) -> pa.Table:
    """A table whose columns have names, and its rows have none."""
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def offering(*names: str) -> Callable[[pd.DataFrame], Any]:
    """Tables of a library of somebody's that offer themselves so, and as an array."""

    def table(frame: pd.DataFrame) -> Any:
        offers = {"to_pandas": lambda: frame, "iloc": frame.iloc, "__dataframe__": None}
        offers |= {"__arrow_c_stream__": columns(frame).__arrow_c_stream__}
        as_array = {"__array__": lambda *_, **__: frame.to_numpy()}
        return SimpleNamespace(**as_array, **{name: offers[name] for name in names})

    return table


#: Tables, whether they keep the labels of rows, and whether they can be read.
TABLES: list[tuple[Any, bool, bool]] = [
    (lambda frame: frame, True, True),
    (lambda frame: pa.Table.from_pandas(frame, preserve_index=True), True, True),
    (offering("to_pandas", "__dataframe__"), True, True),
    (offering("iloc", "__arrow_c_stream__"), True, False),  # Arrow would lose labels of rows
    (offering("__dataframe__"), True, False),
    (offering("__arrow_c_stream__"), False, False),
    (columns, False, True),
    (lambda frame: columns(frame).to_batches()[0], False, True),
    (lambda frame: columns(frame).to_reader(), False, False),
]


@pytest.mark.parametrize(("table", "rows_too", "read"), TABLES)
def test_every_table_counts_by_its_labels_or_is_refused(table: Any, rows_too: bool, read: bool) -> None:
    rng = np.random.default_rng(1)
    eligible = pd.DataFrame([[1, 0], [1, 1]], index=["A", "B"], columns=["S", "T"])
    frames = {"capacity": SERVERS, "demand": USERS, "eligible": eligible}
    names = {"resources": ["cpu", "ram"], "users": ["A", "B"], "servers": ["S", "T"]}
    for name, frame in frames.items():
        rows = rng.permutation(frame.index) if rows_too else frame.index
        frames[name] = table(frame.loc[rows, rng.permutation(frame.columns)])
    most = [3, 4] if rows_too else pa.chunked_array([[3], [4]])
    given = {**frames, **names, "weight": [1, 2], "max_tasks": most}
    if read:
        assert fo.Cluster(**given) == WANTED.replace(eligible=eligible, weight=[1, 2], max_tasks=[3, 4])
    else:
        with pytest.raises(DataError, match="whose labels would be ignored; make it a pandas DataFrame"):
            fo.Cluster(**given)
