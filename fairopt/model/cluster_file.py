"""Cluster files: one format, TOML or JSON, that a person can write by hand. See `docs/cluster-file.md`.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from . import _files
from ._names import MOST_SERVERS, copies, label, some
from ._places import line
from ._shown import short

#: The largest table, in bytes.
MOST_BYTES = 2**30

#: What an entry may say.
SERVER_KEYS = {"name", "count", "capacity"}
USER_KEYS = {"name", "demand", "weight", "max_tasks", "eligible"}


@dataclass(frozen=True)
class Source:
    """The text of a cluster file, what it says, and where it says it."""

    path: Path
    text: str
    arguments: dict[str, Any]
    rows: dict[str, list[int]]  # entry in the file of every server and user (count makes several of one)

    def locate(self, error: DataError) -> DataError:
        """The same error with file and line in front."""
        where = error.where
        if len(where) >= 2 and where[0] in self.rows and isinstance(where[1], int):
            where = (where[0], self.rows[str(where[0])][where[1]], *where[2:])
        return DataError(f"{self.path}:{line(self.text, self.path, where)}: {error}", where)


def read(path: str | Path) -> Source:
    """Parse a cluster file into the arguments of `Cluster`; every error names file and line."""
    path = Path(path)
    text = _files.read(path, "cluster file")
    document = _files.parse_json(text, path) if path.suffix == ".json" else _files.parse_toml(text, path)
    try:
        made, rows = arguments(document)
    except DataError as error:
        raise DataError(f"{path}:{line(text, path, error.where)}: {error}", error.where) from None
    return Source(path, text, made, rows)


def write(path: str | Path, arguments: Mapping[str, Any]) -> None:
    """Write the arguments of a `Cluster`; numbers keep every digit."""
    path = Path(path)
    _files.write(path, text(arguments, json_format=path.suffix == ".json"), "cluster file")


def text(arguments: Mapping[str, Any], json_format: bool = False) -> str:
    """What `write` writes: TOML, or JSON."""
    made = document(arguments)
    return (json.dumps(made, indent=1) if json_format else _toml(made)) + "\n"


def document(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a cluster file says, as tables and lists, of the arguments of a `Cluster`."""
    resources = list(arguments["resources"])
    servers = [
        {"name": name, "capacity": dict(zip(resources, row.tolist(), strict=True))}
        for name, row in zip(arguments["servers"], arguments["capacity"], strict=True)
    ]
    users: list[dict[str, Any]] = []
    for n, name in enumerate(arguments["users"]):
        user: dict[str, Any] = {
            "name": name,
            "demand": dict(zip(resources, arguments["demand"][n].tolist(), strict=True)),
            "weight": float(arguments["weight"][n]),
        }
        if np.isfinite(arguments["max_tasks"][n]):
            user["max_tasks"] = float(arguments["max_tasks"][n])
        eligible = arguments["eligible"][n]
        if not eligible.all():
            user["eligible"] = [s for s, ok in zip(arguments["servers"], eligible, strict=True) if ok]
        users.append(user)
    return {"resources": resources, "servers": servers, "users": users}


def arguments(document: Any) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The arguments of `Cluster` that a document gives, and the entry of every server and user in it."""
    if not isinstance(document, dict):
        raise DataError("a cluster file holds a table with `servers` and `users`")
    if unknown := set(document) - {"resources", "servers", "users"}:
        raise DataError(
            f"unknown key {short(sorted(unknown)[0])}; known: resources, servers, users", (sorted(unknown)[0],)
        )
    servers = _entries(document, "servers", SERVER_KEYS, "capacity")
    users = _entries(document, "users", USER_KEYS, "demand")
    resources = document.get("resources")
    if resources is None:
        first = servers[0]["capacity"]
        if not isinstance(first, dict | list):
            raise DataError("capacity must be a table by resource or a list of numbers", ("servers", 0, "capacity"))
        resources = list(first) if isinstance(first, dict) else [f"resource{r + 1}" for r in range(len(first))]
    if not isinstance(resources, list) or not all(isinstance(name, str) for name in resources):
        raise DataError('resources must be a list of names, such as ["cpu", "memory"]', ("resources",))

    labels, server_rows = _servers(servers)
    most = max(len(labels), len(users))
    _fits(8 * most * len(resources), f"{most} servers or users with {len(resources)} resources")
    capacity = [_amounts(entry, "capacity", resources, "servers", row) for row, entry in enumerate(servers)]
    demand = [_amounts(entry, "demand", resources, "users", row) for row, entry in enumerate(users)]
    names = [_name(user, "user", row) for row, user in enumerate(users)]
    made = {
        "capacity": np.array(capacity)[server_rows],
        "demand": np.array(demand),
        "eligible": _eligible(users, names, labels, _copies(servers, labels, server_rows)),
        "resources": resources,
        "users": names,
        "servers": labels,
    }
    for key, default in (("weight", 1.0), ("max_tasks", np.inf)):
        made[key] = [_number(user.get(key, default), ("users", row, key)) for row, user in enumerate(users)]
    return made, {"servers": server_rows, "users": list(range(len(users)))}


def _servers(entries: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    """Names of all servers, and the entry of each."""
    labels: list[str] = []
    rows: list[int] = []
    for row, server in enumerate(entries):
        count = server.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise DataError(f"count is {short(count)}; it must be a whole number >= 1", ("servers", row, "count"))
        if count > MOST_SERVERS - len(labels) and count > 1:
            raise DataError(
                f"count is {short(count)}; all counts together may make MOST_SERVERS = {MOST_SERVERS:,} servers, "
                "no more: describe fewer, larger ones",
                ("servers", row, "count"),
            )
        name = _name(server, "server", row)
        labels += copies(name, count)
        rows += [row] * count
    return labels, rows


def _copies(entries: list[dict[str, Any]], labels: list[str], rows: list[int]) -> dict[str, list[int]]:
    """Servers by what users may call them: their names, and of `count` copies the name of the entry for all."""
    known: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if "name" in entries[row]:
            known.setdefault(str(entries[row]["name"]), []).append(index)
    return known | {name: [index] for index, name in enumerate(labels)}


def _eligible(users: list[dict[str, Any]], names: list[str], servers: list[str], known: Mapping[str, list[int]]) -> Any:
    """The placement constraints (users, servers); None if there are none."""
    if not any("eligible" in user for user in users):
        return None
    _fits(len(users) * len(servers), f"{len(users)} users with `eligible` among {len(servers)} servers")
    eligible = np.ones((len(users), len(servers)), dtype=bool)
    for row, user in enumerate(users):
        if "eligible" in user:
            wanted = user["eligible"] if isinstance(user["eligible"], list) else [user["eligible"]]
            for name in wanted:
                if not isinstance(name, str) or name not in known:
                    raise DataError(
                        f"user {names[row]!r} is eligible on {short(name)}, but no server is called so; "
                        'eligible must be a list of names of servers, such as ["server1"]',
                        ("users", row, "eligible"),
                    )
            eligible[row] = False
            eligible[row, [index for name in wanted for index in known[name]]] = True
    return eligible


def _fits(size: int, what: str) -> None:
    """A few lines of a file can describe tables that no memory holds."""
    if size > MOST_BYTES:
        raise DataError(f"{what} make a table of {size:,} bytes; it may have MOST_BYTES = {MOST_BYTES:,}, no more")


def _name(entry: dict[str, Any], kind: str, row: int) -> str:
    return label(entry.get("name", f"{kind}{row + 1}"), kind, (f"{kind}s", row, "name"))


def _entries(document: dict[str, Any], kind: str, keys: set[str], needed: str) -> list[dict[str, Any]]:
    entries = document.get(kind)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{kind} must be a list of tables with at least one entry: write [[{kind}]] for each", (kind,))
    for row, entry in enumerate(entries):
        if unknown := set(entry) - keys:
            key = sorted(unknown)[0]
            raise DataError(f"unknown key {short(key)} in {kind}; known: {', '.join(sorted(keys))}", (kind, row, key))
        if needed not in entry:
            raise DataError(f"entry {row + 1} of {kind} has no {needed}", (kind, row))
    return entries


def _amounts(entry: dict[str, Any], key: str, resources: Sequence[str], kind: str, row: int) -> list[float]:
    value, where = entry[key], (kind, row, key)
    if isinstance(value, dict):
        if unknown := set(value) - set(resources):
            name = sorted(unknown)[0]
            raise DataError(f"unknown resource {short(name)}; known: {some(resources)}", (*where, name))
        return [_number(value.get(name, 0.0), (*where, name)) for name in resources]
    if not isinstance(value, list) or len(value) != len(resources):
        raise DataError(f"{key} must give the {len(resources)} resources: {some(resources)}", where)
    return [_number(item, where) for item in value]


def _number(value: Any, where: tuple[str | int, ...]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where[-1]} is {short(value)}; it must be a number", where)
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        raise DataError(f"{where[-1]} is beyond the range of numbers", where) from None


def _toml(document: dict[str, Any]) -> str:
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
