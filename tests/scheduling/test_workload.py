"""Workloads: tables come in whole and come out again, and what cannot be is refused with its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import DataError
from fairopt.scheduling.workload import NEVER, SECOND, Workload

SERVERS = pd.DataFrame({"type": ["big", "small"], "count": [2, 1], "cpu": [1.0, 0.5], "memory": [2.0, 1.0]})
TASKS = pd.DataFrame(
    {
        "user": ["a", "b", "a", "a"],
        "job": ["j1", "j2", "j1", "j3"],
        "arrival": [0.0, 0.0, 0.0, 5.0],
        "duration": [1.0, 2.0, 3.0, 4.5],
        "tasks": [2, 1, 1, 3],
        "cpu": [0.1, 0.2, 0.1, 0.3],
        "memory": [0.0, 0.5, 0.0, 0.1],
        "on": ["", "big", "", ""],
    }
)


def test_groups_are_tasks_of_a_job_that_are_alike() -> None:
    w = Workload.from_frames(TASKS, SERVERS)
    assert (w.groups, w.tasks, w.shape) == (3, 7, (2, 3, 2))
    assert w.first.tolist() == [0, 3, 6, 7]
    assert (w.duration / SECOND).tolist() == [1, 1, 3, 4.5, 4.5, 4.5, 2]
    assert [w.users[n] for n in w.user] == ["a", "a", "b"]
    assert w.servers == ("server1-1", "server1-2", "server2")
    assert w.eligible[w.placement].tolist() == [[True, True, True], [True, True, True], [True, True, False]]
    np.testing.assert_allclose(w.demand * w.unit, [[0.1, 0], [0.3, 0.1], [0.2, 0.5]], atol=1e-12)
    assert "2 users, 3 jobs, 7 tasks, 3 servers" in repr(w)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, servers = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    user = rng.integers(0, 3, rows)
    tasks = pd.DataFrame(
        {
            "user": user.astype(str),
            "job": [f"{n}/{k}" for n, k in zip(user, rng.integers(0, 2, rows), strict=True)],
            "arrival": rng.integers(0, 3, rows) / 7,
            "duration": rng.random(rows) + 0.1,
            "tasks": rng.integers(1, 4, rows),
            "cpu": rng.integers(1, 4, rows) / 3,
            "memory": rng.integers(0, 3, rows) / 10,
            "on": rng.choice(["", "s0", "s0|s1" if servers > 1 else "s0"], rows),
        }
    )
    capacity = pd.DataFrame({"server": [f"s{k}" for k in range(servers)], "cpu": 2 / 3, "memory": 0.3})
    users = pd.DataFrame({"user": ["0", "1", "2"], "weight": [1, 2, 0.5], "leaves": [np.nan, 3, np.inf]})
    changes = pd.DataFrame({"time": [1.5, 2.5], "server": ["s0", "s0"], "up": [False, True]})
    return tasks, capacity, users, changes


@given(tables())
def test_tables_come_out_as_they_came_in(given: tuple[pd.DataFrame, ...]) -> None:
    w = Workload.from_frames(*given)
    assert w.tasks == given[0]["tasks"].sum()
    assert w.leaves.tolist() == [NEVER, 3 * SECOND, NEVER]
    again = Workload.from_frames(**w.to_frames())
    for name, value in vars(w).items():
        if name == "eligible":
            assert (again.eligible[again.placement] == w.eligible[w.placement]).all()
        elif name not in ("placement", "jobs", "job", "job_user", "row"):
            np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    assert [again.jobs[j] for j in again.job] == [w.jobs[j] for j in w.job]
    assert given[0]["user"].astype(str).iloc[w.row].tolist() == [w.users[n] for n in w.user]
    assert (np.diff(w.user) >= 0).all()
    assert (np.diff(w.arrival)[np.diff(w.user) == 0] >= 0).all()


def test_what_fits_in_real_numbers_fits_in_units() -> None:
    for parts in range(1, 60):
        w = Workload.from_frames(
            pd.DataFrame({"user": ["a"], "duration": [1], "cpu": [1 / parts]}), pd.DataFrame({"cpu": [1.0]})
        )
        assert parts * w.demand[0, 0] <= w.capacity[0, 0] < parts * (w.demand[0, 0] + 1)


def test_decimal_fractions_are_exact() -> None:
    amounts = [0.1, 0.7, 0.003, 7.057e-05, 0.9999999]
    w = Workload.from_frames(
        pd.DataFrame({"user": "a", "duration": 1, "cpu": amounts}), pd.DataFrame({"cpu": [1.0], "count": [12_583]})
    )
    unit = round(1 / w.unit[0])
    assert w.demand[:, 0].tolist() == [round(amount * 1e8) * unit // 10**8 for amount in amounts]


def test_work_and_load() -> None:
    w = Workload.from_frames(TASKS, SERVERS)
    work = (0.1 * 2 + 0.1 * 3 + 0.2 * 2 + 0.3 * 4.5 * 3) / 2.5
    assert w.work()["cpu"] == pytest.approx(work)
    assert (
        w.load(5) == w.load() == pytest.approx((0.1 * 2 + 0.1 * 3 + 0.2 * 2) / 2.5 / 5)
    )  # what arrives at 5 is to come
    assert w.load(7) == pytest.approx((0.1 * 2 + 0.1 * 3 + 0.2 * 2 + 0.3 * 2 * 3) / 2.5 / 7)
    assert w.load(10) == pytest.approx(work / 10)
    with pytest.raises(DataError, match="arrive at once"):
        Workload.from_frames(TASKS.drop(columns="arrival"), SERVERS).load()


def test_a_cluster_of_it() -> None:
    cluster = Workload.from_frames(TASKS, SERVERS).cluster()
    np.testing.assert_allclose(cluster.demand, [[0.2, 0.05], [0.2, 0.5]])
    assert cluster.max_tasks.tolist() == [6, 1]
    assert cluster.eligible.tolist() == [[True, True, True], [True, True, False]]


def test_who_fits_nowhere() -> None:
    tasks = pd.DataFrame({"user": "a", "duration": 1, "cpu": [0.5, 0.9, 1.1], "memory": 0.1, "on": ["small", "", ""]})
    assert Workload.from_frames(tasks, SERVERS).fits.tolist() == [True, True, False]
    tasks["on"] = "small"
    assert Workload.from_frames(tasks, SERVERS).fits.tolist() == [True, False, False]


def with_(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    changed = frame.copy()
    changed[column] = changed[column].astype(object) if column in changed else None
    changed.loc[row, column] = value
    return changed


USERS = pd.DataFrame({"user": ["a", "b"], "weight": [1.0, 2.0], "leaves": [1.0, 2.0]})
CHANGES = pd.DataFrame({"time": [1.0, 2.0], "server": "server2", "up": [False, True]})
REFUSED: dict[str, Callable[[], Workload]] = {
    r"row 1 of tasks \(job 'j2'\) has cpu -1": lambda: Workload.from_frames(with_(TASKS, "cpu", 1, -1), SERVERS),
    r"row 2 of tasks .* has memory 'x'": lambda: Workload.from_frames(with_(TASKS, "memory", 2, "x"), SERVERS),
    r"row 1 of tasks .* asks for nothing": lambda: Workload.from_frames(
        with_(with_(TASKS, "cpu", 1, 0), "memory", 1, 0), SERVERS
    ),
    r"row 0 of tasks .* has duration 0": lambda: Workload.from_frames(with_(TASKS, "duration", 0, 0), SERVERS),
    r"row 0 of tasks .* has duration nan": lambda: Workload.from_frames(with_(TASKS, "duration", 0, np.nan), SERVERS),
    r"row 3 of tasks .* has arrival -5": lambda: Workload.from_frames(with_(TASKS, "arrival", 3, -5), SERVERS),
    r"row 1 of tasks .* has arrival -1; it": lambda: Workload.from_frames(
        TASKS.assign(arrival=np.where(np.arange(len(TASKS)) == 1, -1, 0)), SERVERS
    ),
    r"row 3 of tasks .* has tasks 1.5": lambda: Workload.from_frames(with_(TASKS, "tasks", 3, 1.5), SERVERS),
    r"row 3 of tasks .* may run on 'rack9'": lambda: Workload.from_frames(with_(TASKS, "on", 3, "rack9"), SERVERS),
    r"row 2 of tasks .* is of user 'b', and the job of 'a'": lambda: Workload.from_frames(
        with_(TASKS, "user", 2, "b"), SERVERS
    ),
    r"row 1 of tasks .* has no user": lambda: Workload.from_frames(with_(TASKS, "user", 1, None), SERVERS),
    r"row 1 of tasks .* has no job": lambda: Workload.from_frames(with_(TASKS, "job", 1, None), SERVERS),
    r"row 0 of tasks .*too little to count": lambda: Workload.from_frames(with_(TASKS, "cpu", 0, 1e-30), SERVERS),
    "no column 'duration'": lambda: Workload.from_frames(TASKS.drop(columns="duration"), SERVERS),
    "no column 'user'": lambda: Workload.from_frames(TASKS.drop(columns="user"), SERVERS),
    "no column 'memory'": lambda: Workload.from_frames(TASKS.drop(columns="memory"), SERVERS),
    "no server": lambda: Workload.from_frames(TASKS, SERVERS.iloc[:0]),
    "no server has any 'cpu'": lambda: Workload.from_frames(TASKS, SERVERS.assign(cpu=0.0)),
    r"row 1 of servers has count 0": lambda: Workload.from_frames(TASKS, with_(SERVERS, "count", 1, 0)),
    "two servers are called 'x'": lambda: Workload.from_frames(TASKS, SERVERS.assign(count=1, server="x")),
    "at most 10\\^9": lambda: Workload.from_frames(with_(TASKS, "tasks", 0, 1e9), SERVERS),
    "is of user 'b', who is not": lambda: Workload.from_frames(TASKS, SERVERS, USERS.iloc[:1]),
    "row 1 of users .* has weight 0": lambda: Workload.from_frames(TASKS, SERVERS, with_(USERS, "weight", 1, 0)),
    "row 0 of users .* has leaves -1": lambda: Workload.from_frames(TASKS, SERVERS, with_(USERS, "leaves", 0, -1)),
    "user 'a' is there twice": lambda: Workload.from_frames(TASKS, SERVERS, USERS.assign(user="a")),
    "row 1 of changes .* has time -1": lambda: Workload.from_frames(
        TASKS, SERVERS, changes=with_(CHANGES, "time", 1, -1)
    ),
    "row 0 of changes .* server that is not": lambda: Workload.from_frames(
        TASKS, SERVERS, changes=with_(CHANGES, "server", 0, "q")
    ),
    "row 1 of changes .* goes, and has done so": lambda: Workload.from_frames(
        TASKS, SERVERS, changes=CHANGES.assign(up=False)
    ),
    "tasks is of type list": lambda: Workload.from_frames([], SERVERS),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused_with_its_row(message: str) -> None:
    with pytest.raises(DataError, match=message):
        REFUSED[message]()
