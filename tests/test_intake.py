"""What people pass: only numbers are numbers, only names are names, and what has labels counts by its labels."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import clusters

import fairopt as fo
from fairopt.errors import DataError

GOOD: dict[str, Any] = {
    "capacity": [[9, 18]],
    "demand": [[1, 4], [3, 1]],
    "users": ["A", "B"],
    "servers": ["S"],
    "resources": ["cpu", "ram"],
}
CLUSTER = fo.Cluster(**GOOD)
DATE = datetime.date(2026, 1, 1)
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
LOOP: list[Any] = []
LOOP.append(LOOP)

#: No numbers, one each; NumPy makes numbers of most of them.
NO_NUMBERS = [
    np.ma.masked,
    1j,
    np.complex128(1),
    DATE,
    datetime.timedelta(1),
    np.datetime64("2026-01-01"),
    np.timedelta64(1, "s"),
    pd.Timestamp("2026-01-01"),
    pd.Timedelta(1),
    pd.NaT,
    pd.NA,
    None,
    "1",
    b"1",
    10**400,
    10**5000,
    [1],
    {"a": 1},
    np.array([1.0]),
    DEEP,
    LOOP,
    object(),
]


def array_of(one: object) -> Any:
    """A list with it, as an array; None where NumPy makes none."""
    try:
        return np.array([1, one], dtype=getattr(one, "dtype", object))
    except (TypeError, ValueError, UserWarning):
        return None


@pytest.mark.parametrize("one", NO_NUMBERS, ids=lambda one: type(one).__name__)
def test_what_is_no_number_is_refused(one: object) -> None:
    """In lists and in arrays, in tables, in vectors and in rows; the message names the row."""
    for row in ([1, one], (1, one), array_of(one)):
        if row is None:
            continue
        with pytest.raises(DataError, match=r"demand must be .*: row 1 has .* in column \d, which is not|row 1 is a"):
            fo.Cluster(**(GOOD | {"demand": [[1, 4], row]}))
        with pytest.raises(DataError, match=r"capacity"):
            fo.Cluster(**(GOOD | {"capacity": [row]}))
        for name in ("weight", "max_tasks"):
            with pytest.raises(DataError, match=rf"user '[AB]' \(row [01]\) has {name}"):
                fo.Cluster(**(GOOD | {name: row}))
        with pytest.raises(DataError, match=r"user 'B' has eligible|eligible must"):
            fo.Cluster(**(GOOD | {"eligible": [[1], [one]]}))
        with pytest.raises(DataError, match="demand of 'A' must"):
            CLUSTER.with_demand("A", row)
    if one is not None:
        with pytest.raises(DataError):
            fo.Cluster(**(GOOD | {"weight": one}))
    with pytest.raises(DataError):
        CLUSTER.with_weight("A", one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        lambda values: np.ma.array(values),
        lambda values: [np.ma.array(row) for row in values],
        lambda values: [pd.Series(row) for row in values],
        lambda values: np.array(values) + 0j,
        lambda values: np.array(values).astype("M8[D]"),
        lambda values: np.array(values).astype("m8[D]"),
        lambda values: np.array(values).astype(str),
        lambda values: np.array(values).astype(bytes),
        lambda values: (row for row in values),
        lambda values: dict(enumerate(values)),
        lambda values: np.array(1j),
        lambda values: "14",
    ],
)
def test_tables_of_other_kinds_are_refused(change: Any) -> None:
    for name in ("capacity", "demand"):
        with pytest.raises(DataError, match=f"{name} must be a table of numbers"):
            fo.Cluster(**(GOOD | {name: change([[1, 4], [3, 1]])}))
    with pytest.raises(DataError, match="eligible"):
        fo.Cluster(**(GOOD | {"eligible": change([[1], [0]])}))


def test_numbers_of_every_kind_are_numbers() -> None:
    for demand in (
        [[Decimal(1), Fraction(4)], [np.float32(3), np.int8(1)]],
        np.array([[1, 4], [3, 1]], dtype=object),
        np.array([[1, 4], [3, 1]], dtype=np.uint8),
        np.asfortranarray([[1.0, 4.0], [3.0, 1.0]]),
        np.array([[1, 4], [3, 1]], dtype=np.longdouble),
        [np.array([1, 4]), (3, True)],
    ):
        found = fo.Cluster(**(GOOD | {"demand": demand}))
        assert found == CLUSTER
        assert found.demand.flags.c_contiguous  # sums are then the same, whatever the order they came in
    with pytest.raises(DataError, match="demand inf of 'ram'"):
        fo.Cluster(**(GOOD | {"demand": [[1, np.longdouble("1e4000")], [3, 1]]}))
    everywhere = (None, [[1], [1]], [[True], [1.0]], np.ones((2, 1), dtype=np.int8), np.ones((2, 1), dtype=object))
    for eligible in everywhere:
        assert fo.Cluster(**(GOOD | {"eligible": eligible})) == CLUSTER


@pytest.mark.parametrize("name", [["a"], ("a", 1), {"a": 1}, None, float("nan"), b"a", DATE, DEEP, LOOP, object()])
def test_names_are_text_or_numbers(name: object) -> None:
    with pytest.raises(DataError, match=r"a user is called .*; a name must be text or a number") as caught:
        fo.Cluster(**(GOOD | {"users": ["A", name]}))
    assert caught.value.where == ("users", 1, "name")
    with pytest.raises(DataError, match=r"there is no .* among the users: A, B"):
        CLUSTER.select(users=[name])  # type: ignore[list-item]


def test_names_that_cannot_be_written_or_have_no_order() -> None:
    for name in ("\ud800", 10**5000):
        with pytest.raises(DataError, match=r"a server is called .*, which cannot be written; change its name"):
            fo.Cluster(**(GOOD | {"servers": [name]}))
    for names in ({"A", "B"}, "AB", 3, b"AB", np.array(3)):
        with pytest.raises(DataError, match=r"the names of users are .*; they must be a list of names, in an order"):
            fo.Cluster(**(GOOD | {"users": names}))
    with pytest.raises(DataError, match="two users are called '1'"):
        fo.Cluster(**(GOOD | {"users": [1, "1"]}))
    for names in (np.array(["A", "B"]), pd.Index(["A", "B"]), {"A": 1, "B": 2}.keys()):
        assert fo.Cluster(**(GOOD | {"users": names})).users == ("A", "B")
    assert fo.Cluster(**(GOOD | {"users": [1, np.int64(2)]})).users == ("1", "2")


# -- labels ----------------------------------------------------------------------------------------

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
    allowed = pd.DataFrame([[1, 0], [1, 1]], index=["B", "A"], columns=["T", "S"])
    assert fo.Cluster(SERVERS, USERS, eligible=allowed).eligible.tolist() == [[True, True], [False, True]]
    assert fo.Cluster(SERVERS.to_numpy(), USERS, resources=["cpu", "ram"], servers=["S", "T"]) == WANTED
    assert WANTED.with_demand("A", pd.Series({"ram": 5, "cpu": 7})).demand[0].tolist() == [7, 5]
    assert WANTED.with_capacity("T", pd.Series({"ram": 5, "cpu": 7})).capacity[1].tolist() == [7, 5]
    assert WANTED.with_eligible("A", pd.Series({"T": 1, "S": 0})).eligible[0].tolist() == [False, True]


def test_rows_that_pandas_numbered_have_no_names() -> None:
    plain = pd.DataFrame([[9, 18], [4, 4]]), pd.DataFrame([[1, 4], [3, 1]])
    assert fo.Cluster(*plain, resources=["cpu", "ram"], users=["A", "B"], servers=["S", "T"]) == WANTED
    assert fo.Cluster(*plain).users == ("user1", "user2")
    assert WANTED.replace(weight=pd.Series([1, 2])).weight.tolist() == [1, 2]
    assert WANTED.with_demand("A", pd.Series([7, 5])).demand[0].tolist() == [7, 5]


MISMATCHES: list[tuple[dict[str, Any], str]] = [
    ({"demand": USERS.rename(columns={"ram": "disk"})}, "demand must have a column per resource.*missing: ram.*disk"),
    ({"demand": USERS.assign(disk=1)}, "demand must have a column per resource.*missing: none; unknown: disk"),
    ({"weight": pd.Series([1, 2], index=["A", "C"])}, "weight must have a row per user.*missing: B; unknown: C"),
    ({"weight": pd.Series([1, 2])}, "weight must have a row per user.*missing: A, B; unknown: 0, 1"),
    ({"max_tasks": pd.Series([1, 2, 3], index=["A", "B", "C"])}, "max_tasks must have a row per user.*unknown: C"),
    ({"eligible": pd.DataFrame(1, index=["A", "B"], columns=["S", "U"])}, "eligible must have a column per server"),
    ({"eligible": pd.DataFrame(1, index=["A"], columns=["S", "T"])}, "eligible must have a row per user.*missing: B"),
    ({"users": ["A", "C"]}, "demand must have a row per user, under its name; missing: C; unknown: B"),
    ({"demand": USERS.set_axis(["A", "A"])}, "two users are called 'A'"),
    ({"demand": USERS[["cpu", "cpu"]]}, "two resources are called 'cpu'"),
    ({"demand": USERS.set_axis(["A", np.nan])}, "a user is called nan; a name must be"),
    ({"demand": USERS.set_axis(pd.MultiIndex.from_product([["A"], [1, 2]]))}, "a user is called .*; a name must be"),
]


@pytest.mark.parametrize(("change", "message"), MISMATCHES)
def test_labels_that_do_not_match_are_an_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.Cluster(**({"capacity": SERVERS, "demand": USERS} | change))


def test_labels_of_rows_that_do_not_match() -> None:
    with pytest.raises(DataError, match=r"demand must have an entry per resource.*missing: ram; unknown: disk"):
        WANTED.with_demand("A", pd.Series({"cpu": 1, "disk": 1}))
    with pytest.raises(DataError, match="eligible must have an entry per server"):
        WANTED.with_eligible("A", pd.Series({"S": 1}))
    with pytest.raises(DataError, match=r"must have shape \(2,\)"):
        WANTED.with_demand("A", USERS)  # type: ignore[arg-type]


FRAMES: list[tuple[dict[str, Any], str]] = [
    ({"users": USERS.assign(weight=[1, np.nan])}, r"user 'B' \(row 1\) has weight nan"),
    ({"users": USERS.assign(weight=pd.array([1, None], dtype="Int64"))}, r"user 'B' \(row 1\) has weight nan"),
    ({"users": USERS.assign(cpu=["1", "2"])}, "row 0 has '1' in column 0, which is not a number"),
    ({"users": USERS.assign(cpu=pd.to_datetime(["2026", "2027"]))}, "row 0 has Timestamp.*, which is not a number"),
    ({"users": USERS.assign(cpu=pd.to_timedelta([1, 2]))}, "row 0 has Timedelta.*, which is not a number"),
    ({"users": USERS.assign(cpu=[1j, 2])}, "which is not a number"),
    ({"users": USERS.assign(cpu=[10**400, 1])}, "row 0 has a whole number of more than 20 digits in column 0"),
    ({"users": USERS.assign(max_tasks=["many", 1])}, r"user 'A' \(row 0\) has max_tasks 'many'"),
    ({"users": USERS[["cpu", "ram", "cpu"]]}, "two resources are called 'cpu'"),
    ({"users": USERS.iloc[:0]}, "demand must have shape"),
    ({"users": USERS["cpu"]}, "users is of type Series; it must be a DataFrame"),
    ({"servers": None}, "servers is of type NoneType; it must be a DataFrame"),
    ({"servers": SERVERS.set_axis([("S", 1), ("T", 2)], axis=0)}, "a server is called .*; a name must be"),
    ({"eligible": pd.DataFrame(1, index=["A", "B", "C"], columns=["S", "T"])}, "row per user.*unknown: C"),
    ({"eligible": pd.DataFrame(1, index=["A", "B"], columns=["S", "T", "U"])}, "column per server.*unknown: U"),
    ({"eligible": pd.DataFrame([[1, 1], [1, 1]])}, "row per user.*missing: A, B; unknown: 0, 1"),
    ({"eligible": pd.DataFrame(pd.NA, index=["A", "B"], columns=["S", "T"])}, "user 'A' has eligible nan"),
    ({"eligible": [[1, 1], [1, 1]]}, "eligible is of type list; it must be a DataFrame"),
]


@pytest.mark.parametrize(("change", "message"), FRAMES)
def test_from_frames_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.Cluster.from_frames(**({"servers": SERVERS, "users": USERS} | change))


def test_from_frames_takes_every_kind_of_number() -> None:
    for users in (
        USERS.astype("Int64"),
        USERS.astype(object),
        USERS.astype("category"),
        USERS.assign(max_tasks=pd.array([None, None], dtype="Int64")),
        USERS.assign(max_tasks=[np.nan, np.inf], weight=True),
    ):
        assert fo.Cluster.from_frames(SERVERS, users) == WANTED
    numbered = fo.Cluster.from_frames(SERVERS.reset_index(drop=True), USERS.reset_index(drop=True))
    assert (numbered.users, numbered.servers) == (("0", "1"), ("0", "1"))


# -- anything at all ---------------------------------------------------------------------------------

ATOMS = [0, 1, 2.5, -1, True, float("nan"), float("inf"), *NO_NUMBERS]
#: By position, as hypothesis cannot write down all of them.
ATOM = st.integers(0, len(ATOMS) - 1).map(lambda k: ATOMS[k])
ANYTHING = st.recursive(ATOM, lambda inside: st.lists(inside, max_size=3), max_leaves=8)
#: One or two numbers, most of them good ones: of a user, or of two.
MOSTLY = st.sampled_from([0, 1, 2.5, 3, np.float32(4), np.inf]) | ATOM
SOME = MOSTLY | st.lists(MOSTLY, min_size=2, max_size=2)


def test_a_data_error_or_a_cluster_that_says_what_was_given() -> None:
    """Both happen, many times."""
    accepted, refused = 0, 0

    @settings(max_examples=400)
    @given(
        st.dictionaries(st.sampled_from([*GOOD, "weight", "eligible", "max_tasks"]), ANYTHING, min_size=1, max_size=2)
        | st.dictionaries(st.sampled_from(["weight", "max_tasks"]), SOME, min_size=1)
    )
    def law(changes: dict[str, Any]) -> None:
        nonlocal accepted, refused
        told = GOOD | changes
        try:
            found = fo.Cluster(**told)
        except DataError:
            refused += 1
            return
        accepted += 1
        for name, value in told.items():
            if value is not None:
                wanted = [str(part) for part in value] if name.endswith("s") and name != "max_tasks" else value
                assert np.array_equal(getattr(found, name), np.broadcast_to(wanted, np.shape(getattr(found, name))))

    law()
    assert accepted >= 20, (accepted, refused)
    assert refused >= 100, (accepted, refused)


@settings(max_examples=100)
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
