"""Cluster files: what a person writes comes in, what is saved comes back, and errors name the line."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st
from strategies import clusters

from fairopt.errors import DataError
from fairopt.model.cluster import Cluster

TOML = """\
resources = ["cpu", "memory"]

[[servers]]
name = "rack"
count = 3
capacity = { cpu = 9, memory = 18 }

[[servers]]
name = "big"
capacity = [64, 256]

[[users]]
name = "A"
demand = { cpu = 1, memory = 4 }
weight = 2            # optional
max_tasks = 10        # optional
eligible = ["rack-1"] # optional: the only servers it may use

[[users]]
demand = { cpu = 3 }
"""

JSON = """\
{
  "resources": ["cpu", "memory"],
  "servers": [
    {"name": "s", "capacity": {"cpu": 9, "memory": 18}},
    {"name": "t",
     "capacity": [1, 2]}
  ],
  "users": [
    {"name": "A",
     "demand": {"cpu": 1, "memory": 4}},
    {"name": "B",
     "demand": {"cpu": 3, "memory": 1},
     "weight": 2}
  ]
}
"""


def written(folder: Path, text: str, suffix: str = "toml") -> Path:
    path = folder / f"cluster.{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_by_hand(tmp_path: Path) -> None:
    cluster = Cluster.load(written(tmp_path, TOML))
    names = {"resources": ["cpu", "memory"], "users": ["A", "user2"], "servers": ["rack-1", "rack-2", "rack-3", "big"]}
    optional = {"weight": [2, 1], "eligible": {"A": ["rack-1"]}, "max_tasks": [10, np.inf]}
    assert cluster == Cluster([[9, 18]] * 3 + [[64, 256]], [[1, 4], [3, 0]], **names, **optional)


@pytest.mark.parametrize("suffix", ["toml", "JSON"])
def test_round_trip(suffix: str) -> None:
    """Of any names, and every digit of numbers."""
    letters = st.sampled_from('"\\\n\t.=[]{}#ü') | st.characters(codec="utf-8")

    @given(clusters(), st.lists(st.text(letters, max_size=5), min_size=5, max_size=5, unique=True))
    def law(cluster: Cluster, labels: list[str]) -> None:
        n, k, m = cluster.shape
        named = cluster.replace(users=labels[:n], servers=labels[:k], resources=labels[:m], demand=cluster.demand / 7)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"saved.{suffix}"
            named.save(path)
            assert path.read_bytes().startswith(b"{") == (suffix == "JSON")
            assert Cluster.load(path) == named

    law()


TOML_ERRORS = [
    ("cpu = 1, memory = 4", "cpu = -1, memory = 4", 14, "user 'A' .* has demand -1 of 'cpu'"),
    ("cpu = 1, memory = 4", "cpu = 1, disk = 4", 14, "unknown resource 'disk'; known: cpu, memory"),
    (
        "cpu = 1, memory = 4",
        'cpu = "one", memory = 4',
        14,
        r"row 0 has 'one' in column 0 \('cpu'\), which is not a number",
    ),
    ("weight = 2", "weight = 0", 15, "user 'A' .* has weight 0"),
    ("max_tasks = 10", "max_task = 10", 16, "unknown key 'max_task' in users; known: demand, eligible"),
    ("count = 3", "count = 0", 5, "server 'rack' has count 0; it must be a whole number from 1 on"),
    ("count = 3", "count = 1000000000", 5, r"count 1000000000; .* MOST_SERVERS = 1,000,000 servers"),
    ('["rack-1"]', "{ rack-1 = true }", 17, r"eligible on .*'rack-1'.*; eligible must be a list of names of servers"),
    ('name = "A"', 'name = ["A"]', 13, r"a user is called \['A'\]; a name must be text or a number"),
    ("[64, 256]", "[64, -1]", 10, "server 'big' .* capacity -1 of 'memory'"),  # the fourth server, of the second table
    ("[64, 256]", "[64]", 10, "capacity must give the 2 resources: cpu, memory"),
    ("[64, 256]", "64 256", 10, "not valid TOML"),
    ("demand = { cpu = 3 }", "name = 'B'", 19, "entry 2 of users has no demand"),
    ("demand = { cpu = 3 }", "demand = { cpu = 3 }\nname = 'A'", 21, "two users are called 'A'"),
    ("resources =", "resource =", 1, "unknown key 'resource'; known: resources, servers, users"),
    ('= ["cpu", "memory"]', '= "cpu"', 1, "resources must be a list of names"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), TOML_ERRORS)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    with pytest.raises(DataError, match=rf"cluster\.toml:{line}: .*{message}"):
        Cluster.load(written(tmp_path, TOML.replace(old, new, 1)))


def test_errors_of_json_name_the_file(tmp_path: Path) -> None:
    """Python's JSON reads NaN and Infinity."""
    with pytest.raises(DataError, match=r"cluster\.json: user 'A' .* has demand nan"):
        Cluster.load(written(tmp_path, JSON.replace('"cpu": 1,', '"cpu": NaN,'), "json"))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"weight": 2', '"demand": [1, 1]', "demand"),
        ('"name": "B"', r'"name": "\\\"", "n\u0061me": "B"', "name"),
        ('"servers": [', '"users": [],\n"servers": [', "users"),
    ],
)
def test_a_key_that_stands_twice_is_named(tmp_path: Path, old: str, new: str, key: str) -> None:
    with pytest.raises(DataError, match=rf"cluster\.json: the key '{key}' occurs twice in one table, {{.*}}; keep one"):
        Cluster.load(written(tmp_path, JSON.replace(old, new, 1), "json"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize(("text", "kind"), [(TOML, "toml"), (JSON, "json")])
def test_marked_files_are_read(tmp_path: Path, text: str, kind: str, encoding: str) -> None:
    """Windows PowerShell writes UTF-16, and UTF-8 with a mark."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = tmp_path / f"marked.{kind}"
    path.write_bytes((mark + text.replace("rack", "räck")).encode(encoding))
    assert Cluster.load(path) == Cluster.load(written(tmp_path, text.replace("rack", "räck"), kind))


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        ("toml", "", r"servers must be a list of tables .* write \[\[servers\]\]"),
        ("toml", "[[servers]]\ncapacity = [1]\n", "users must be a list"),
        (
            "toml",
            "[[servers]]\ncapacity = 3\n[[users]]\ndemand = [1]\n",
            "capacity must be a table by resource or a list",
        ),
        ("json", "[]", "a cluster file holds a table"),
        (
            "json",
            '{"apiVersion": "v1", "items": [], "kind": "List"}',
            r"kubectl prints: name it kubernetes:.*cluster\.json",
        ),
    ],
)
def test_files_of_something_else(tmp_path: Path, suffix: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Cluster.load(written(tmp_path, text, suffix))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the cluster file .*nowhere\.toml: No such file"):
        Cluster.load(tmp_path / "nowhere.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes('resources = ["é"]'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8 text"):
        Cluster.load(latin)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"kept.{suffix}"
    old, new = EXAMPLE, Cluster([[1]], [[1]])
    old.save(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(DataError, match=r"cannot write the cluster file .*kept\..*: No space left"):
                new.save(path)
        assert Cluster.load(path) == old
        assert os.listdir(tmp_path) == [path.name]
    for nowhere in (tmp_path / "none" / "a.toml", tmp_path, Path("a\0.toml"), Path("\ud800.toml")):
        with pytest.raises(DataError, match="cannot write the cluster file"):
            new.save(nowhere)
        with pytest.raises(DataError, match="cannot read the cluster file"):
            Cluster.load(nowhere)
    with pytest.raises(DataError, match=r"into kept\.yaml: choose \.toml, \.json or \.csv"):
        new.save(path.with_suffix(".yaml"))


def test_what_a_file_is_stays_what_it_is(tmp_path: Path) -> None:
    """A link goes on pointing there, permissions stay, and a pipe or a device is written to, not replaced."""
    cluster, path, link = Cluster([[1]], [[1]]), tmp_path / "real.toml", tmp_path / "link.toml"
    path.write_text("")
    path.chmod(0o640)
    link.symlink_to(path)
    cluster.save(link)
    assert link.is_symlink()
    assert Cluster.load(path) == cluster
    assert path.stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "pipe.json")
    reader = os.open(tmp_path / "pipe.json", os.O_RDONLY | os.O_NONBLOCK)
    cluster.save(tmp_path / "pipe.json")
    assert b'"servers"' in os.read(reader, 10_000)
    os.close(reader)
