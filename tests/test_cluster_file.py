"""Cluster files: what a person writes comes in, what is saved comes back, and errors name the line."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
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
    assert cluster.servers == ("rack-1", "rack-2", "rack-3", "big")
    assert cluster.users == ("A", "user2")
    np.testing.assert_array_equal(cluster.capacity, [[9, 18]] * 3 + [[64, 256]])
    np.testing.assert_array_equal(cluster.demand, [[1, 4], [3, 0]])
    np.testing.assert_array_equal(cluster.weight, [2, 1])
    np.testing.assert_array_equal(cluster.max_tasks, [10, np.inf])
    np.testing.assert_array_equal(cluster.eligible, [[1, 0, 0, 0], [1, 1, 1, 1]])


def test_json_by_hand(tmp_path: Path) -> None:
    cluster = Cluster.load(written(tmp_path, JSON, "json"))
    wanted = Cluster([[9, 18], [1, 2]], [[1, 4], [3, 1]], [1, 2], None, None, ["cpu", "memory"], ["A", "B"], ["s", "t"])
    assert cluster == wanted


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_round_trip(suffix: str) -> None:
    names = st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1),
        min_size=5,
        max_size=5,
        unique=True,
    )

    @settings(max_examples=60)
    @given(clusters(), names)
    def law(cluster: Cluster, labels: list[str]) -> None:
        named = cluster.replace(users=labels[: len(cluster.users)], servers=labels[: len(cluster.servers)])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"saved.{suffix}"
            named.save(path)
            assert Cluster.load(path) == named

    law()


def test_every_digit_is_kept(tmp_path: Path) -> None:
    cluster = Cluster([[1 / 3, 1e-300]], [[np.pi, 5e-324]], weight=[np.nextafter(1, 2)], max_tasks=[1e300 / 7])
    for suffix in ("toml", "json"):
        path = tmp_path / f"exact.{suffix}"
        cluster.save(path)
        assert Cluster.load(path) == cluster


@pytest.mark.parametrize("resource", ['a "quoted" one', "with\nnewline", "back\\slash", "ümlaut", "a.b", ""])
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_awkward_names(tmp_path: Path, suffix: str, resource: str) -> None:
    cluster = Cluster([[1, 2]], [[3, 4]], resources=[resource, "other"], users=["[[users]]"], servers=["= 1"])
    path = tmp_path / f"names.{suffix}"
    cluster.save(path)
    assert Cluster.load(path) == cluster


TOML_ERRORS = [
    ("cpu = 1, memory = 4", "cpu = -1, memory = 4", 14, "user 'A' .* has demand -1 of 'cpu'"),
    ("cpu = 1, memory = 4", "cpu = 1, disk = 4", 14, "unknown resource 'disk'; known: cpu, memory"),
    ("cpu = 1, memory = 4", 'cpu = "one", memory = 4', 14, "cpu is 'one'; it must be a number"),
    ("cpu = 1, memory = 4", "cpu = 0, memory = 0", 14, "user 'A' .* demands nothing"),
    ("weight = 2", "weight = 0", 15, "user 'A' .* has weight 0"),
    ("weight = 2", "weight = true", 15, "weight is True; it must be a number"),
    ("max_tasks = 10", "max_tasks = -1", 16, "has max_tasks -1"),
    ("max_tasks = 10", "max_task = 10", 16, "unknown key 'max_task' in users; known: demand, eligible"),
    ('"rack-1"', '"rack-9"', 17, "eligible on 'rack-9', but no server is called so"),
    ("count = 3", "count = 0", 5, "count is 0; it must be a whole number >= 1"),
    ("count = 3", "count = 1.5", 5, "count is 1.5"),
    ("count = 3", "count = 1000000000", 5, r"count is 1000000000; .* MOST_SERVERS = 1,000,000 servers, no more"),
    ("count = 3", f"count = 1{'0' * 400}", 5, r"count is a whole number of more than 20 digits; .* MOST_SERVERS"),
    ('["rack-1"]', "{ rack-1 = true }", 17, r"eligible on .*'rack-1'.*; eligible must be a list of names of servers"),
    ('["rack-1"]', '[["rack-1"]]', 17, r"eligible on \['rack-1'\], but"),
    ('["rack-1"]', "2026-01-01", 17, "eligible on datetime.date"),
    ('name = "A"', 'name = ["A"]', 13, r"a user is called \['A'\]; a name must be text or a number"),
    ('name = "big"', "name = { a = 1 }", 9, "a server is called {'a': 1}; a name must be text or a number"),
    ('name = "big"', "name = 2026-01-01", 9, "a server is called datetime.date.*; a name must be"),
    ("weight = 2", "weight = 2026-01-01", 15, "weight is datetime.date.*; it must be a number"),
    ("cpu = 3", f"cpu = 1{'0' * 400}", 20, "cpu is beyond the range of numbers"),
    ("cpu = 9, memory = 18", "cpu = -9, memory = 18", 6, "server 'rack-1' .* has capacity -9 of 'cpu'"),
    ("[64, 256]", "[64]", 10, "capacity must give the 2 resources: cpu, memory"),
    ("[64, 256]", "[64, -1]", 10, "server 'big' .* capacity -1 of 'memory'"),
    ("[64, 256]", "64 256", 10, "not valid TOML"),
    ("demand = { cpu = 3 }", "name = 'B'", 19, "entry 2 of users has no demand"),
    ("demand = { cpu = 3 }", "demand = { cpu = 3 }\nname = 'A'", 21, "two users are called 'A'"),
    ("resources =", "resource =", 1, "unknown key 'resource'; known: resources, servers, users"),
    ('["cpu", "memory"]', '"cpu"', 1, "resources must be a list of names"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), TOML_ERRORS)
def test_toml_errors_name_the_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in TOML
    path = written(tmp_path, TOML.replace(old, new, 1))
    with pytest.raises(DataError, match=rf"cluster\.toml:{line}: .*{message}"):
        Cluster.load(path)


JSON_ERRORS = [
    ('"weight": 2', '"eligible": [["s"]]', 13, "eligible on \\['s'\\]"),
    ('"cpu": 3', f'"cpu": 1{"0" * 400}', 12, "beyond the range of numbers"),
    ('"cpu": 1,', '"cpu": -1,', 10, "user 'A' .* has demand -1"),
    ('"cpu": 3', '"gpu": 3', 12, "unknown resource 'gpu'"),
    ('"weight": 2', '"weight": -2', 13, "user 'B' .* has weight -2"),
    ("[1, 2]", "[1, -2]", 6, "server 't' .* capacity -2 of 'memory'"),
    ('"weight": 2', '"colour": 2', 13, "unknown key 'colour' in users"),
    ("[1, 2]", "[1, 2", 6, "not valid JSON"),
    ('"name": "B"', '"name": "A"', 11, "two users are called 'A'"),
    ('"weight": 2', '"demand": [1, 1]', 13, 'the key "demand" stands twice in one table; keep one of them'),
    ('"name": "B"', r'"name": "\\\"", "n\u0061me": "B"', 11, r'the key "n.u0061me" stands twice'),
    ('"servers": [', '"users": [],\n"servers": [', 9, 'the key "users" stands twice in one table'),
    ('"name": "B"', '"name": null', 11, "a user is called None; a name must be text or a number"),
    ('"name": "B"', r'"name": "\ud800"', 11, "a user is called .*, which cannot be written"),
    ('"weight": 2', '"eligible": {"s": true}', 13, "eligible on {'s': True}"),
    ('"weight": 2', '"weight": ' + "[" * 900 + "]" * 900, 13, r"weight is \[\[\[\[\.\.\.\]\]\]\]; it must be a number"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), JSON_ERRORS)
def test_json_errors_name_the_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in JSON
    path = written(tmp_path, JSON.replace(old, new, 1), "json")
    with pytest.raises(DataError, match=rf"cluster\.json:{line}: .*{message}"):
        Cluster.load(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the cluster file .*nowhere\.toml: No such file"):
        Cluster.load(tmp_path / "nowhere.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes('resources = ["é"]'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8 text"):
        Cluster.load(latin)
    with pytest.raises(DataError, match=r"servers must be a list of tables .* write \[\[servers\]\]"):
        Cluster.load(written(tmp_path, ""))
    with pytest.raises(DataError, match="a cluster file holds a table"):
        Cluster.load(written(tmp_path, "[]", "json"))
    with pytest.raises(DataError, match=r"users must be a list"):
        Cluster.load(written(tmp_path, "[[servers]]\ncapacity = [1]\n"))


def test_a_capacity_that_is_no_table(tmp_path: Path) -> None:
    text = '{"servers": [{"capacity": 3}], "users": [{"demand": [1]}]}'
    with pytest.raises(DataError, match="capacity must be a table by resource or a list"):
        Cluster.load(written(tmp_path, text, "json"))


def test_json_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """Python's JSON reads NaN and Infinity; as demands they are errors with a line, like everything else."""
    path = written(tmp_path, JSON.replace('"cpu": 1,', '"cpu": NaN,'), "json")
    with pytest.raises(DataError, match=r"cluster\.json:10: .*demand nan"):
        Cluster.load(path)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"kept.{suffix}"
    old, new = Cluster([[9, 18]], [[1, 4], [3, 1]]), Cluster([[1]], [[1]])
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


FILE = "[[servers]]\ncapacity = [{0}]\n[[users]]\ndemand = [1]\n"
HOPELESS = {
    "nested": ("[" * 5000 + "]" * 5000, "nested too deeply"),
    "open": ("[" * 5000, "nested too deeply"),
    "tables": ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
    "digits": ("1" * 5000, "a whole number has thousands of digits"),
}


@pytest.mark.parametrize("name", HOPELESS)
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_what_python_does_not_read(tmp_path: Path, name: str, suffix: str) -> None:
    value, message = HOPELESS[name]
    if suffix == "json":
        text = f'{{"servers": [{{"capacity": [{value}]}}], "users": [{{"demand": [1]}}]}}'
    else:
        text = FILE.format(value.replace('"a":', "a="))
    with pytest.raises(DataError, match=rf"cluster\.{suffix}: not readable {suffix.upper()}: .*{message}"):
        Cluster.load(written(tmp_path, text, suffix))


def test_a_few_lines_cannot_fill_the_memory(tmp_path: Path) -> None:
    server = {"name": "s", "count": 900_000, "capacity": {"cpu": 1}}
    users: list[dict[str, Any]] = [{"demand": {"cpu": 1}}]
    many = {"servers": [server], "users": users * 2000 + [{"demand": {"cpu": 1}, "eligible": ["s-1"]}]}
    wide = {"resources": ["cpu", *map(str, range(1000))], "servers": [server], "users": users}
    for document in (many, wide):
        with pytest.raises(DataError, match=r"make a table of [\d,]+ bytes; it may have MOST_BYTES = 1,073,741,824"):
            Cluster.load(written(tmp_path, json.dumps(document), "json"))
    twice = {"servers": [server, server | {"name": "t"}], "users": users}
    with pytest.raises(DataError, match="all counts together may make MOST_SERVERS = 1,000,000 servers"):
        Cluster.load(written(tmp_path, json.dumps(twice), "json"))
    assert (
        Cluster.load(written(tmp_path, json.dumps({"servers": [server], "users": users}), "json")).shape[1] == 900_000
    )


def test_looking_for_the_line_does_not_take_long(tmp_path: Path) -> None:
    """Blank lines by the thousand took minutes."""
    path = written(tmp_path, "\n" * 100_000 + FILE.format(-1))
    with pytest.raises(DataError, match=r"cluster\.toml:100002: .*capacity -1"):
        Cluster.load(path)
    inside = '{"servers": [{"name": {"users": [1]}, "capacity": [1]}], "users": [{"demand": [1]}, {"demand": [-1]}]}'
    with pytest.raises(DataError, match=r"cluster\.json:1: a server is called"):
        Cluster.load(written(tmp_path, inside, "json"))


# -- anything at all ---------------------------------------------------------------------------------

ATOMS = [0, 1, -1, 2.5, 10**9, 10**400, float("nan"), float("inf"), None, True, "", "a", "s-1", "cpu", "\ud800", "\0"]
KEYS = [
    "name",
    "count",
    "capacity",
    "demand",
    "weight",
    "max_tasks",
    "eligible",
    "resources",
    "servers",
    "users",
    "cpu",
]
VALUES = st.recursive(
    st.sampled_from(ATOMS),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inside, max_size=3),
    max_leaves=6,
)


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in ((*where, key), *places(part, (*where, key)))]


def test_a_data_error_or_the_right_cluster() -> None:
    """Any value anywhere in a good document, as JSON: what is read is what the document says, if it is not refused."""
    accepted, refused = 0, 0

    @settings(max_examples=300)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        nonlocal accepted, refused
        document: dict[str, Any] = {
            "resources": ["cpu", "gpu"],
            "servers": [{"name": "s", "count": 2, "capacity": {"cpu": 9, "gpu": 1}}, {"name": "t", "capacity": [1, 2]}],
            "users": [{"name": "A", "demand": [1, 4], "weight": 2, "eligible": ["s-1", "t"]}, {"demand": {"cpu": 1}}],
        }
        for _ in range(data.draw(st.integers(1, 2))):
            *path, last = data.draw(st.sampled_from(places(document)))
            owner: Any = document
            for key in path:
                owner = owner[key]
            owner[last] = data.draw(st.sampled_from([0, 1, 2, 3.5, "A"]) | VALUES)
        with tempfile.TemporaryDirectory() as folder:
            path_of = written(Path(folder), json.dumps(document), "json")
            try:
                found = Cluster.load(path_of)
            except DataError:
                refused += 1
                return
        accepted += 1
        rows = [server for server in document["servers"] for _ in range(server.get("count", 1))]
        for wanted, key, table in ((rows, "capacity", found.capacity), (document["users"], "demand", found.demand)):
            for entry, row in zip(wanted, table, strict=True):
                given_row = entry[key]
                if isinstance(given_row, dict):
                    given_row = [given_row.get(name, 0) for name in found.resources]
                np.testing.assert_array_equal(row, given_row)
        for n, user in enumerate(document["users"]):
            assert found.users[n] == str(user.get("name", f"user{n + 1}"))
            assert found.weight[n] == user.get("weight", 1)
            allowed = user.get("eligible", list(found.servers))
            allowed = allowed if isinstance(allowed, list) else [allowed]
            assert found.eligible[n].tolist() == [name in allowed for name in found.servers]

    law()
    assert accepted >= 10, (accepted, refused)
    assert refused >= 100, (accepted, refused)


@settings(max_examples=300)
@given(
    st.text(max_size=60) | st.text(st.sampled_from('[]{}"=:,.\n#\\ua10-'), max_size=60),
    st.sampled_from(["toml", "json"]),
)
def test_any_text_is_a_data_error(text: str, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"cluster.{suffix}"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(DataError):
            Cluster.load(path)
