"""Cluster files: one document, in TOML, JSON, CSV or data frames, that a person can write. See `docs/cluster-file.md`.

resources = ["cpu", "memory"]

[[servers]]
name = "rack"
count = 3
capacity = { cpu = 9, memory = 18 }

[[users]]
name = "A"
demand = { cpu = 1, memory = 4 }
weight = 2            # optional
max_tasks = 10        # optional
eligible = ["rack-1"] # optional: the only servers it may use
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import DataError
from . import _files, _intake
from ._files import Table
from ._names import MOST_SERVERS, copies, label, some
from ._shown import short

#: The largest table, in bytes.
MOST_BYTES = 2**30

#: What an entry may say.
SERVER_KEYS = {"name", "count", "capacity"}
USER_KEYS = {"name", "demand", "weight", "max_tasks", "eligible"}

Where = tuple[str | int, ...]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Document:
    """Contents of a cluster file, and the line of a place such as ("users", 2, "demand")."""

    said: Any
    place: Callable[[Where], str]

    def made(self, make: Callable[..., Made]) -> Made:
        """Build an object by `make`; errors name file and line."""
        rows: dict[str, list[int]] = {}
        try:
            made, rows = arguments(self.said)
            return make(**made)
        except DataError as error:
            where = error.where
            if len(where) >= 2 and where[0] in rows and isinstance(where[1], int):
                where = (where[0], rows[str(where[0])][where[1]], *where[2:])
            raise DataError(f"{self.place(where)}: {error}", where) from None


def read(path: str | Path) -> Document:
    """The document in a file of TOML, or JSON by its suffix."""
    path = Path(path)
    text = _files.read(path, "cluster file")
    said = _files.parse_json(text, path) if path.suffix == ".json" else _files.parse_toml(text, path)
    if isinstance(said, dict) and isinstance(said.get("items"), list):
        raise DataError(f"{path} is no cluster file, it looks like what kubectl prints: name it kubernetes:{path}")
    return Document(said, partial(_place, text, path))


def write(path: Path, cluster: Any) -> None:
    """Write a `Cluster`; numbers keep every digit."""
    _files.write(path, text(cluster, json_format=path.suffix == ".json"), "cluster file")


def text(cluster: Any, json_format: bool = False) -> str:
    """Text of a cluster file, TOML or JSON."""
    made = document(cluster)
    return (json.dumps(made, indent=1) if json_format else _toml(made)) + "\n"


def document(cluster: Any) -> Table:
    """Cluster as tables and lists of a cluster file."""
    capacity, demand = (
        [dict(zip(cluster.resources, row, strict=True)) for row in table.tolist()]
        for table in (cluster.capacity, cluster.demand)
    )
    servers = [{"name": name, "capacity": row} for name, row in zip(cluster.servers, capacity, strict=True)]
    users: list[Table] = []
    for n, name in enumerate(cluster.users):
        user = {"name": name, "demand": demand[n], "weight": float(cluster.weight[n])}
        if np.isfinite(cluster.max_tasks[n]):
            user["max_tasks"] = float(cluster.max_tasks[n])
        if not cluster.eligible[n].all():
            user["eligible"] = [cluster.servers[i] for i in np.flatnonzero(cluster.eligible[n])]
        users.append(user)
    return {"resources": list(cluster.resources), "servers": servers, "users": users}


def arguments(document: Any) -> tuple[Table, dict[str, list[int]]]:
    """The arguments of `Cluster` that a document gives, and the entry of every server and user in it.

    Numbers are checked by `Cluster`, as those of everybody.
    """
    if not isinstance(document, dict):
        raise DataError("a cluster file holds a table with `servers` and `users`")
    known_keys(document, ("resources", "servers", "users"))
    servers = _entries(document, "servers", SERVER_KEYS, "capacity")
    users = _entries(document, "users", USER_KEYS, "demand")
    resources = document.get("resources")
    if resources is None:
        first = servers[0]["capacity"]
        if not isinstance(first, dict | list):
            raise DataError("capacity must be a table by resource or a list of numbers", ("servers", 0, "capacity"))
        resources = list(first) if isinstance(first, dict) else [f"resource{r + 1}" for r in range(len(first))]
    if not _files.texts(resources):
        raise DataError('resources must be a list of names, such as ["cpu", "memory"]', ("resources",))
    labels, server_rows = _servers(servers)
    most = max(len(labels), len(users))
    _fits(8 * most * len(resources), f"{most} servers or users with {len(resources)} resources")
    names = [_name(user, "user", row) for row, user in enumerate(users)]
    made = {
        "capacity": _amounts(servers, "server", "capacity", resources)[server_rows],
        "demand": _amounts(users, "user", "demand", resources),
        "weight": [user.get("weight", 1.0) for user in users],
        "eligible": _eligible(users, names, labels, _copies(servers, labels, server_rows)),
        "max_tasks": [user.get("max_tasks", np.inf) for user in users],
        "resources": resources,
        "users": names,
        "servers": labels,
    }
    return made, {"servers": server_rows, "users": list(range(len(users)))}


def _servers(entries: list[Table]) -> tuple[list[str], list[int]]:
    """Names of all servers, and the entry of each."""
    labels: list[str] = []
    rows: list[int] = []
    for row, server in enumerate(entries):
        name, count = _name(server, "server", row), server.get("count", 1)
        whole = isinstance(count, int | float) and not isinstance(count, bool) and count % 1 == 0
        if not (whole and 1 <= count <= max(MOST_SERVERS - len(labels), 1)):
            raise DataError(
                f"server {name!r} has count {short(count)}; it must be a whole number from 1 on, and all counts "
                f"together may make MOST_SERVERS = {MOST_SERVERS:,} servers: describe fewer, larger ones",
                ("servers", row, "count"),
            )
        labels += copies(name, int(count))
        rows += [row] * int(count)
    return labels, rows


def _copies(entries: list[Table], labels: list[str], rows: list[int]) -> dict[str, list[int]]:
    """Servers by what users may call them: their names, and of `count` copies the name of the entry for all."""
    known: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if "name" in entries[row]:
            known.setdefault(str(entries[row]["name"]), []).append(index)
    return known | {name: [index] for index, name in enumerate(labels)}


def _eligible(users: list[Table], names: list[str], servers: list[str], known: Mapping[str, list[int]]) -> Any:
    """The placement constraints (users, servers); None if there are none."""
    if not any("eligible" in user for user in users):
        return None
    _fits(len(users) * len(servers), f"{len(users)} users with `eligible` among {len(servers)} servers")
    return _intake.placed({row: user["eligible"] for row, user in enumerate(users) if "eligible" in user},
                          names, len(servers), known)  # fmt: skip


def _fits(size: int, what: str) -> None:
    """A few lines of a file can describe tables that no memory holds."""
    if size > MOST_BYTES:
        raise DataError(f"{what} make a table of {size:,} bytes; it may have MOST_BYTES = {MOST_BYTES:,}, no more")


def _name(entry: Table, kind: str, row: int) -> str:
    return label(entry.get("name", f"{kind}{row + 1}"), kind, (f"{kind}s", row, "name"))


def known_keys(table: Table, keys: Sequence[str], of: str = "", where: Where = ()) -> None:
    """`DataError` for a key that nobody would read."""
    if unknown := sorted(set(table) - set(keys)):
        raise DataError(f"unknown key {short(unknown[0])}{of}; known: {', '.join(keys)}", (*where, unknown[0]))


def _entries(document: Table, kind: str, keys: set[str], needed: str) -> list[Table]:
    entries = document.get(kind)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(
            f"{kind} must be a list of tables with at least one entry: write [[{kind}]], or a row, for each", (kind,)
        )
    for row, entry in enumerate(entries):
        known_keys(entry, sorted(keys), f" in {kind}", (kind, row))
        if needed not in entry:
            raise DataError(f"entry {row + 1} of {kind} has no {needed}", (kind, row))
    return entries


def _amounts(entries: list[Table], kind: str, key: str, resources: Sequence[str]) -> Any:
    """(entries, resources): numbers by resource, 0 where one is left out, or in the order of resources."""
    rows = []
    for row, entry in enumerate(entries):
        value, where = entry[key], (f"{kind}s", row, key)
        if isinstance(value, dict):
            if unknown := sorted(set(value) - set(resources)):
                raise DataError(f"unknown resource {short(unknown[0])}; known: {some(resources)}", (*where, unknown[0]))
            value = [value.get(name, 0.0) for name in resources]
        if not isinstance(value, list) or len(value) != len(resources):
            raise DataError(f"{key} must give the {len(resources)} resources: {some(resources)}", where)
        rows.append(value)
    return _intake.matrix(rows, key, kind, "resource", resources)


def _toml(document: Table) -> str:
    lines = [f"resources = {_toml_value(document['resources'])}"]
    for kind in ("servers", "users"):
        for entry in document[kind]:
            lines += ["", f"[[{kind}]]"] + [f"{key} = {_toml_value(value)}" for key, value in entry.items()]
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_value(key)} = {_toml_value(item)}" for key, item in value.items()) + " }"
    # JSON's strings are TOML's, but for surrogate pairs and the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _place(text: str, path: Path, where: Where) -> str:
    """File and line of a place; of the nearest enclosing one that can be found, as neither reader tells."""
    if path.suffix != ".json":
        return f"{path}:{_files.toml_line(text, where)}"
    start, end = 0, len(text)
    for key in where:
        if isinstance(key, int):
            start, end = _entry(text, start, end, key)
        elif found := re.compile(rf'"{re.escape(key)}"\s*:').search(text, start, end):
            start = found.start()
    return f"{path}:{text.count(chr(10), 0, start) + 1}"


def _entry(text: str, start: int, end: int, row: int) -> tuple[int, int]:
    """Span of entry `row` of the next list in JSON; `start` and `end` if it cannot be told."""
    between, position = re.compile(r"[\s,]*"), text.find("[", start) + 1
    try:
        for _ in range(row + 1):
            begun = between.match(text, position).end()  # type: ignore[union-attr]
            _, position = json.JSONDecoder().raw_decode(text, begun)
    except (ValueError, RecursionError):  # what was found stands inside something else
        return start, end
    return begun, position
