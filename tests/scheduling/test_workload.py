"""Workloads: tables come in whole and come out again, and what cannot be is refused with its row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.errors import DataError
from fairopt.scheduling.workload import NEVER, SECOND, Workload
from fairopt.workloads import load_workload, save_workload

from .draw import tables

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
    assert w.first.tolist() == [0, 3, 6, 7]
    assert (w.duration / SECOND).tolist() == [1, 1, 3, 4.5, 4.5, 4.5, 2]
    assert [w.users[n] for n in w.user] == ["a", "a", "b"]
    assert w.servers == ("server1-1", "server1-2", "server2")
    assert w.eligible[w.placement].tolist() == [[True, True, True], [True, True, True], [True, True, False]]
    np.testing.assert_allclose(w.demand * w.unit, [[0.1, 0], [0.3, 0.1], [0.2, 0.5]], atol=1e-12)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), loops=st.booleans())
def test_tables_come_out_as_they_came_in(seed: int, loops: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    given = tables(seed, whole=False, loops=loops)
    leaves = given["users"]["leaves"]
    given["users"]["leaves"] = leaves.replace(np.inf, np.nan)
    w = Workload.from_frames(**given)
    assert w.leaves.tolist() == [NEVER if time == np.inf else int(time) * SECOND for time in leaves]
    assert given["tasks"]["user"].iloc[w.row].tolist() == [w.users[n] for n in w.user]
    assert (np.lexsort((w.arrival, w.user)) == np.arange(w.groups)).all()
    folder = tmp_path_factory.mktemp("saved")
    save_workload(w, folder)
    for again in (Workload.from_frames(**w.to_frames()), load_workload(folder)):
        for name, value in vars(w).items():
            if name not in ("eligible", "placement", "jobs", "job", "job_user", "row", "after", "source", "file"):
                np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
        assert (again.eligible[again.placement] == w.eligible[w.placement]).all()
        assert [again.jobs[j] for j in again.job] == [w.jobs[j] for j in w.job]
        assert before(again) == before(w)
    assert again.source == folder.name


def before(w: Workload) -> dict[str, str]:
    """After which job every job comes."""
    return {job: w.jobs[k] if k >= 0 else "" for job, k in zip(w.jobs, w.after.tolist(), strict=False)}


def one(amounts: Any, **servers: Any) -> Workload:
    """A task of one user for each of these amounts of CPU."""
    tasks = pd.DataFrame({"user": "a", "duration": 1, "cpu": amounts})
    return Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0]} | servers))


def test_what_fits_in_real_numbers_fits_in_units() -> None:
    for parts in range(1, 60):
        w = one([1 / parts])
        assert parts * w.demand[0, 0] <= w.capacity[0, 0] < parts * (w.demand[0, 0] + 1)


def test_decimal_fractions_are_exact() -> None:
    amounts = [0.1, 0.7, 0.003, 7.057e-05, 0.9999999]
    w = one(amounts, count=[12_583])
    unit = round(1 / w.unit[0])
    assert w.demand[:, 0].tolist() == [round(amount * 1e8) * unit // 10**8 for amount in amounts]


def test_work_and_load() -> None:
    w = Workload.from_frames(TASKS, SERVERS)
    work = (0.1 * 2 + 0.1 * 3 + 0.2 * 2 + 0.3 * 4.5 * 3) / 2.5
    assert w.work()["cpu"] == pytest.approx(work)
    assert w.load() == w.load(5)  # what arrives at 5 is to come
    assert w.load(7) == pytest.approx((0.1 * 2 + 0.1 * 3 + 0.2 * 2 + 0.3 * 2 * 3) / 2.5 / 7)
    with pytest.raises(DataError, match="arrive at once"):
        Workload.from_frames(TASKS.drop(columns="arrival"), SERVERS).load()


def test_a_cluster_of_it() -> None:
    cluster = Workload.from_frames(TASKS, SERVERS).cluster()
    np.testing.assert_allclose(cluster.demand, [[0.2, 0.05], [0.2, 0.5]])
    assert cluster.max_tasks.tolist() == [6, 1]
    assert cluster.eligible.tolist() == [[True, True, True], [True, True, False]]


def test_who_fits_nowhere() -> None:
    tasks = {"user": "a", "duration": 1, "cpu": [0.5, 0.9, 0.9, 1.1], "memory": 0.1, "on": ["small", "small", "", ""]}
    assert Workload.from_frames(pd.DataFrame(tasks), SERVERS).fits.tolist() == [True, False, True, False]


def test_texts_and_numbers_of_files_mean_what_they_say() -> None:
    """`no` is False, 1.0 is the job 1 (so pandas reads 1 beside empty cells), and somebody may be called NA."""
    tasks = pd.DataFrame({"user": "NA", "job": [1, 2, 3], "after": [None, 1, 2], "duration": 1, "cpu": 1,
                          "on": [np.nan, 1, 1]})  # fmt: skip
    servers = pd.DataFrame({"server": [1, 2], "cpu": 1})
    changes = pd.DataFrame({"time": 1, "server": [1, 2], "up": ["no", "True"]})
    w = Workload.from_frames(tasks, servers, changes=changes)
    assert (w.after.tolist(), w.there.tolist()) == ([-1, 0, 1], [True, False])
    assert w.eligible[w.placement].tolist() == [[True, True], [True, False], [True, False]]


def with_(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    changed = frame.copy()
    changed[column] = changed[column].astype(object) if column in changed else None
    changed.loc[row, column] = value
    return changed


USERS = pd.DataFrame({"user": ["a", "b"], "weight": [1.0, 2.0], "leaves": [1.0, 2.0]})
CHANGES = pd.DataFrame({"time": [1.0, 2.0], "server": "server2", "up": [False, True]})

TABLES = {"tasks": TASKS, "servers": SERVERS, "users": USERS, "changes": CHANGES}


@pytest.mark.parametrize(
    ("message", "table", "column", "row", "value"),
    [
        (r"row 1 of tasks \(job 'j2'\) has cpu -1", "tasks", "cpu", 1, -1),
        (r"row 2 of tasks .* has memory 'x'", "tasks", "memory", 2, "x"),
        (r"row 0 of tasks .* asks for nothing", "tasks", "cpu", 0, 0),
        (r"row 3 of tasks .* has arrival -5; it", "tasks", "arrival", 3, -5),
        (r"row 0 of tasks .* has duration 0", "tasks", "duration", 0, 0),
        (r"row 3 of tasks .* has tasks 1.5", "tasks", "tasks", 3, 1.5),
        (r"row 3 of tasks .* may run on 'rack9'", "tasks", "on", 3, "rack9"),
        (r"row 2 of tasks .* is of user 'b', and its job of another", "tasks", "user", 2, "b"),
        (r"row 1 of tasks .* has no user", "tasks", "user", 1, None),
        (r"row 1 of tasks .* has no job", "tasks", "job", 1, None),
        (r"row 0 of tasks .*too little of a resource to count", "tasks", "cpu", 0, 1e-30),
        (r"row 1 of servers has count 0", "servers", "count", 1, 0),
        ("at most 100,000,000 can", "tasks", "tasks", 0, 1e9),
        ("at most 1,000,000 can", "servers", "count", 1, 1e7),
        ("tasks has the column 'gpu', which is none of", "tasks", "gpu", 0, 1),
        ("is of user 'b', who is not", "users", "user", 1, "c"),
        ("row 1 of users .* has weight 0", "users", "weight", 1, 0),
        ("row 0 of users .* has leaves -1", "users", "leaves", 0, -1),
        ("two users are called 'a'", "users", "user", 1, "a"),
        ("row 1 of changes .* has time -1", "changes", "time", 1, -1),
        ("row 0 of changes .* server that is not", "changes", "server", 0, "q"),
        ("row 1 of changes .* has up 'maybe'; it must be", "changes", "up", 1, "maybe"),
        ("row 1 of changes .* has up False, as the change", "changes", "up", 1, False),
    ],
)
def test_a_row_that_cannot_be_is_named(message: str, table: str, column: str, row: int, value: Any) -> None:
    with pytest.raises(DataError, match=message):
        Workload.from_frames(**TABLES | {table: with_(TABLES[table], column, row, value)})


@pytest.mark.parametrize(
    ("message", "table", "given"),
    [
        ("no column 'duration'", "tasks", TASKS.drop(columns="duration")),
        ("no column 'memory'", "tasks", TASKS.drop(columns="memory")),
        ("no server", "servers", SERVERS.iloc[:0]),
        ("no server has any 'cpu'", "servers", SERVERS.assign(cpu=0.0)),
        ("two servers are called 'x'", "servers", SERVERS.assign(count=1, server="x")),
        ("users has the column 'wieght'", "users", USERS.rename(columns={"weight": "wieght"})),
        ("tasks is of type list", "tasks", []),
    ],
)
def test_a_table_that_cannot_be_is_refused(message: str, table: str, given: Any) -> None:
    with pytest.raises(DataError, match=message):
        Workload.from_frames(**TABLES | {table: given})
