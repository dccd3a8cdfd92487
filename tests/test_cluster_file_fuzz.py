"""Cluster files that nobody would write: a DataError or the right cluster, whatever the text."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cluster_file import written

from fairopt.errors import DataError
from fairopt.model.cluster import Cluster

pytestmark = pytest.mark.long

FILE = "[[servers]]\ncapacity = [{0}]\n[[users]]\ndemand = [1]\n"


HOPELESS = {
    "nested": ("[" * 5000 + "]" * 5000, "nested too deeply"),
    "open": ("[" * 5000, "nested too deeply"),
    "digits": ("1" * 5000, "a whole number has thousands of digits"),
}


@pytest.mark.parametrize("name", HOPELESS)
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_what_python_does_not_read(tmp_path: Path, name: str, suffix: str) -> None:
    value, message = HOPELESS[name]
    if suffix == "json":
        text = f'{{"servers": [{{"capacity": [{value}]}}], "users": [{{"demand": [1]}}]}}'
    else:
        text = FILE.format(value)
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
    large = Cluster.load(written(tmp_path, json.dumps({"servers": [server], "users": users}), "json"))
    assert large.shape[1] == 900_000


ATOMS = [0, 1, -1, 2.5, 10**9, 10**400, float("nan"), float("inf"), None, True, "", "a", "s-1", "cpu", "\ud800", "\0"]
KEYS = ["name", "count", "capacity", "demand", "weight", "eligible", "resources", "servers", "users", "cpu"]


VALUES = st.recursive(
    st.sampled_from(ATOMS),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inside, max_size=3),
    max_leaves=6,
)


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in ((*where, key), *places(part, (*where, key)))]


def numbers(row: Any, cluster: Cluster) -> list[float]:
    """Of a table by resource, or as they are."""
    return [row.get(name, 0) for name in cluster.resources] if isinstance(row, dict) else row


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
        users = document["users"]
        assert found == Cluster(
            [numbers(one["capacity"], found) for one in document["servers"] for _ in range(one.get("count", 1))],
            [numbers(user["demand"], found) for user in users],
            [user.get("weight", 1) for user in users],
            {found.users[n]: user["eligible"] for n, user in enumerate(users) if "eligible" in user},
            [user.get("max_tasks", np.inf) for user in users],
            found.resources,
            [user.get("name", f"user{n}") for n, user in enumerate(users, 1)],
            found.servers,
        )

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
