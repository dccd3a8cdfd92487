"""What people pass: only numbers are numbers, only names are names, and what has labels counts by its labels."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import DataError

GOOD: dict[str, Any] = {
    "capacity": [[9, 18]],
    "demand": [[1, 4], [3, 1]],
    "users": ["A", "B"],
    "servers": ["S"],
    "resources": ["cpu", "ram"],
}


def made(**changes: Any) -> fo.Cluster:
    return fo.Cluster(**(GOOD | changes))


CLUSTER = made()
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
    DATE,
    np.datetime64("2026-01-01"),
    np.timedelta64(1, "s"),
    pd.NaT,
    pd.NA,
    None,
    "1",
    b"1",
    10**5000,
    [1],
    {"a": 1},
    np.array([1.0]),
    DEEP,
    LOOP,
    True,
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
    for row in ([1, one], array_of(one)):
        if row is None:
            continue
        with pytest.raises(DataError, match=r"demand must be .*: row 1 has .* in column \d, which is not|row 1 is a"):
            made(demand=[[1, 4], row])
        with pytest.raises(DataError, match=r"capacity"):
            made(capacity=[row])
        for name in ("weight", "max_tasks"):
            with pytest.raises(DataError, match=rf"user '[AB]' \(row [01]\) has {name}"):
                made(**{name: row})
        if not isinstance(one, bool | np.bool_):
            with pytest.raises(DataError, match=r"user 'B' has eligible|eligible must"):
                made(eligible=[[1], [one]])
        with pytest.raises(DataError, match="demand of 'A' must"):
            CLUSTER.with_demand("A", row)
    with pytest.raises(DataError):
        CLUSTER.with_weight("A", one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        np.ma.array,
        lambda values: [np.ma.array(row) for row in values],
        lambda values: [pd.Series(row) for row in values],
        lambda values: np.array(values).astype(complex),
        lambda values: np.array(values).astype("M8[D]"),
        lambda values: np.array(values).astype(str),
        iter,
        lambda values: dict(enumerate(values)),
        lambda values: np.array(1j),
        lambda values: "14",
    ],
)
def test_tables_of_other_kinds_are_refused(change: Any) -> None:
    for name in ("capacity", "demand"):
        with pytest.raises(DataError, match=f"{name} must be a table of numbers"):
            made(**{name: change([[1, 4], [3, 1]])})
    with pytest.raises(DataError, match="eligible"):
        made(eligible=change([[1], [0]]))


def test_numbers_of_every_kind_are_numbers() -> None:
    for demand in (
        [[Decimal(1), Fraction(4)], (np.float32(3), np.int8(1))],
        *(np.array([[1, 4], [3, 1]], dtype=kind, order="F") for kind in (object, np.uint8, np.longdouble)),
    ):
        found = made(demand=demand)
        assert found == CLUSTER
        assert found.demand.flags.c_contiguous  # sums are then the same, whatever the order they came in
    with pytest.raises(DataError, match="demand inf of 'ram'"):
        made(demand=[[1, np.longdouble("1e4000")], [3, 1]])
    assert not np.signbit(made(demand=[[-0.0, 4], [3, 1]]).gamma).any()
    for eligible in (None, [[True], [1.0]], np.ones((2, 1), dtype=object), {"A": pd.Index(["S"]), "B": iter("S")}):
        assert made(eligible=eligible) == CLUSTER


@pytest.mark.parametrize("name", [["a"], ("a", 1), None, float("nan"), b"a", DATE, DEEP, LOOP])
def test_names_are_text_or_numbers(name: object) -> None:
    with pytest.raises(DataError, match=r"a user is called .*; a name must be text or a number") as caught:
        made(users=["A", name])
    assert caught.value.where == ("users", 1, "name")
    with pytest.raises(DataError, match=r"there is no .* among the users: A, B"):
        CLUSTER.select(users=[name])  # type: ignore[list-item]


def test_names_that_cannot_be_written_or_have_no_order() -> None:
    for name in ("\ud800", 10**5000):
        with pytest.raises(DataError, match=r"a server is called .*, which cannot be written; change its name"):
            made(servers=[name])
    for names in ({"A", "B"}, "AB", np.array(3)):
        with pytest.raises(DataError, match=r"the names of users are .*; they must be a list of names, in an order"):
            made(users=names)
    with pytest.raises(DataError, match="two users are called '1'"):
        made(users=[1, "1"])
    for names in (pd.Index(["1", "2"]), {"1": 1, "2": 2}.keys(), [1, np.int64(2)]):
        assert made(users=names).users == ("1", "2")
