"""Clusters from data frames and CSV files, as somebody with a spreadsheet has them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from strategies import clusters

from fairopt import Cluster
from fairopt.errors import DataError

ONE = """kind,name,count,weight,max_tasks,eligible,cpu,memory
server,rack,3,,,,9,18
server,big,,,,,32,64

user,A,,,,,1,4
user,"B, the second",,2,10,rack;big,3,
user,C,,,,rack-2,,1
"""
TOML = """
resources = ["cpu", "memory"]
[[servers]]
name = "rack"
count = 3
capacity = [9, 18]
[[servers]]
name = "big"
capacity = [32, 64]
[[users]]
name = "A"
demand = [1, 4]
[[users]]
name = "B, the second"
demand = [3, 0]
weight = 2
max_tasks = 10
eligible = ["rack", "big"]
[[users]]
name = "C"
demand = [0, 1]
eligible = ["rack-2"]
"""


def written(folder: Path, text: str, name: str = "c.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_one_file_is_the_cluster_file_that_says_the_same(tmp_path: Path) -> None:
    expected = Cluster.load(written(tmp_path, TOML, "c.toml"))
    assert expected.servers == ("rack-1", "rack-2", "rack-3", "big")
    assert Cluster.from_csv(written(tmp_path, ONE)) == Cluster.load(tmp_path / "c.csv") == expected
    semicolons = ONE.replace('"B, the second"', "B. the second").replace("rack;big", '"rack;big"').replace(",", ";")
    again = Cluster.from_csv(written(tmp_path, "\ufeff" + semicolons.replace("B. the", "B, the").replace("\n", "\r\n")))
    assert again == expected


def test_two_files_as_pandas_writes_them(tmp_path: Path) -> None:
    expected = Cluster.load(written(tmp_path, TOML, "c.toml"))
    frames = expected.to_frames()
    paths = {name: written(tmp_path, frame.to_csv(), f"{name}.csv") for name, frame in frames.items()}
    assert Cluster.from_csv(paths["servers"], paths["users"], paths["eligible"]) == expected
    assert Cluster.from_csv(paths["servers"], paths["users"]) == expected.replace(eligible=None)


@given(cluster=clusters())
def test_what_is_saved_is_read_back(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "c.csv"
    if cluster.eligible.any(axis=1).all():
        cluster.save(path)
        assert Cluster.load(path) == cluster
    else:
        with pytest.raises(DataError, match=r"eligible nowhere, which CSV cannot express; save as \.toml or \.json"):
            cluster.save(path)
        assert not path.exists()


@pytest.mark.parametrize("name", ["a;b", " a", "", "kind"])
def test_names_that_csv_cannot_hold_are_refused(name: str, tmp_path: Path) -> None:
    odd = Cluster([[1]], [[1]], servers=[name], resources=[name])
    with pytest.raises(DataError, match=r"which CSV cannot hold here; save as \.toml or \.json"):
        odd.save(tmp_path / "c.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("9,18", "9,x", 2, "memory is 'x'; it must be a number"),
        ("9,18", "9,t4", 2, "memory is 't4'; .* in the column `eligible` of the users who need it"),
        ("9,18", "9", 2, "the row has 7 cells, and the header 8"),
        ("rack,3", "rack,0", 2, "server 'rack' has count 0.0; it must be a whole number from 1 on"),
        ("rack,3", "rack,9999999999", 2, "count 9999999999.0; .* MOST_SERVERS"),
        ("server,big", "box,big", 3, "kind is 'box'; it must be server or user"),
        ("server,big,,", "server,big,,2", 3, "weight is '2', which servers do not have; leave the cell empty"),
        ("rack-2", "rack-9", 7, "is eligible on 'rack-9', but no server is called so"),
        ("max_tasks", "weight", 1, "two columns are called 'weight'"),
        ("max_tasks", "", 1, "a column has no name"),
        ("kind", "sort", 1, "the header has no column `kind`"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    assert old in ONE
    path = written(tmp_path, ONE.replace(old, new, 1))
    with pytest.raises(DataError, match=rf"c\.csv:{line}: .*{message}"):
        Cluster.load(path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for text, message in (
        ("", "is empty"),
        ("kind,cpu\nserver,1\n", "users must be a list of tables with at least one entry"),
        ('kind,"cpu\n', "not readable CSV"),
    ):
        with pytest.raises(DataError, match=message):
            Cluster.load(written(tmp_path, text))
    with pytest.raises(DataError, match="belongs to one of servers and one of users"):
        Cluster.from_csv(written(tmp_path, ONE), eligible=tmp_path / "c.csv")
    servers, users = written(tmp_path, "name,cpu\ns,1\n", "s.csv"), written(tmp_path, "name,gpu\nu,1\n", "u.csv")
    with pytest.raises(DataError, match=r"u.csv:1: 'gpu' is neither a resource of the servers"):
        Cluster.from_csv(servers, users)
    users = written(tmp_path, "name,cpu\nu,1\n", "u.csv")
    for text, message in (
        ("user,s\nv,1\n", "e.csv:2: there is no user 'v'"),
        ("user,s\nu,2\n", "is '2'; it must be 1 or 0"),
    ):
        with pytest.raises(DataError, match=message):
            Cluster.from_csv(servers, users, written(tmp_path, text, "e.csv"))


SERVERS = pd.DataFrame({"cpu": [9, 32], "memory": [18, 64], "count": [3, None]}, index=["rack", "big"])
USERS = pd.DataFrame({"cpu": [1, 3], "memory": [4, 1]}, index=["A", "B"])


def test_counts_of_a_frame_make_identical_servers() -> None:
    by_row = pd.DataFrame([[True, False], [True, True]], index=["A", "B"], columns=["rack", "big"])
    found = Cluster.from_frames(SERVERS, USERS, by_row)
    assert_array_equal(found.capacity, [[9, 18]] * 3 + [[32, 64]])
    assert_array_equal(found.eligible, [[1, 1, 1, 0], [1] * 4])
    by_server = pd.DataFrame([[1, 1, 0, 0], [1, 1, 1, 1]], index=["A", "B"], columns=found.servers)
    assert_array_equal(Cluster.from_frames(SERVERS, USERS, by_server).eligible, by_server)


def test_a_resource_may_be_called_count() -> None:
    cluster = Cluster([[3, 2]], [[1, 1]], resources=["count", "cpu"])
    assert Cluster.from_frames(**cluster.to_frames()) == cluster


@pytest.mark.parametrize("count", [0, 1.5, "many", True, 10**9, float("inf")])
def test_counts_are_whole_numbers(count: object) -> None:
    with pytest.raises(
        DataError, match=r"server 'rack' has count .*; it must be a whole number from 1 on, .* 1,000,000 servers"
    ):
        Cluster.from_frames(SERVERS.assign(count=pd.Series([count, 1], index=SERVERS.index, dtype=object)), USERS)
