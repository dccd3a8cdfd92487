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
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataError

_SERVER_KEYS = {"name", "count", "capacity"}
_USER_KEYS = {"name", "demand", "weight", "max_tasks", "eligible"}


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
        return DataError(f"{self.path}:{_line(self.text, self.path, where)}: {error}", where)


def read(path: str | Path) -> Source:
    """Parse a cluster file into the arguments of `Cluster`; every error names file and line."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read the cluster file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not valid JSON: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found.group(1) if found else len(text.splitlines())
        raise DataError(f"{path}:{line}: not valid TOML: {error}") from None
    try:
        arguments, rows = _arguments(document)
    except DataError as error:
        raise DataError(f"{path}:{_line(text, path, error.where)}: {error}", error.where) from None
    return Source(path, text, arguments, rows)


def write(path: str | Path, arguments: Mapping[str, Any]) -> None:
    """Write the arguments of a `Cluster`; numbers keep every digit."""
    path = Path(path)
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
    document = {"resources": resources, "servers": servers, "users": users}
    text = json.dumps(document, indent=1) if path.suffix == ".json" else _toml(document)
    path.write_text(text + "\n", encoding="utf-8")


def _arguments(document: Any) -> tuple[dict[str, Any], dict[str, list[int]]]:
    if not isinstance(document, dict):
        raise DataError("a cluster file holds a table with `servers` and `users`")
    if unknown := set(document) - {"resources", "servers", "users"}:
        raise DataError(f"unknown key {sorted(unknown)[0]!r}; known: resources, servers, users", (sorted(unknown)[0],))
    servers = _entries(document, "servers", _SERVER_KEYS, "capacity")
    users = _entries(document, "users", _USER_KEYS, "demand")
    resources = document.get("resources")
    if resources is None:
        first = servers[0]["capacity"]
        if not isinstance(first, dict | list):
            raise DataError("capacity must be a table by resource or a list of numbers", ("servers", 0, "capacity"))
        resources = list(first) if isinstance(first, dict) else [f"resource{r + 1}" for r in range(len(first))]
    if not isinstance(resources, list) or not all(isinstance(name, str) for name in resources):
        raise DataError('resources must be a list of names, such as ["cpu", "memory"]', ("resources",))

    capacity, labels, server_rows = [], [], []
    for row, server in enumerate(servers):
        count = server.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise DataError(f"count is {count!r}; it must be a whole number >= 1", ("servers", row, "count"))
        name = str(server.get("name", f"server{row + 1}"))
        labels += [name] if count == 1 else [f"{name}-{copy + 1}" for copy in range(count)]
        capacity += [_amounts(server["capacity"], resources, ("servers", row, "capacity"))] * count
        server_rows += [row] * count
    names = [str(user.get("name", f"user{row + 1}")) for row, user in enumerate(users)]
    known = {label: index for index, label in enumerate(labels)}
    eligible = np.ones((len(users), len(labels)), dtype=bool)
    for row, user in enumerate(users):
        if "eligible" in user:
            eligible[row] = False
            for label in user["eligible"] if isinstance(user["eligible"], list) else [user["eligible"]]:
                if not isinstance(label, str) or label not in known:
                    raise DataError(
                        f"user {names[row]!r} is eligible on {label!r}, but no server is called so",
                        ("users", row, "eligible"),
                    )
                eligible[row, known[label]] = True
    arguments = {
        "capacity": capacity,
        "demand": [_amounts(user["demand"], resources, ("users", row, "demand")) for row, user in enumerate(users)],
        "weight": [_number(user.get("weight", 1.0), ("users", row, "weight")) for row, user in enumerate(users)],
        "max_tasks": [
            _number(user.get("max_tasks", np.inf), ("users", row, "max_tasks")) for row, user in enumerate(users)
        ],
        "eligible": eligible,
        "resources": resources,
        "users": names,
        "servers": labels,
    }
    return arguments, {"servers": server_rows, "users": list(range(len(users)))}


def _entries(document: dict[str, Any], kind: str, keys: set[str], needed: str) -> list[dict[str, Any]]:
    entries = document.get(kind)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{kind} must be a list of tables with at least one entry: write [[{kind}]] for each", (kind,))
    for row, entry in enumerate(entries):
        if unknown := set(entry) - keys:
            key = sorted(unknown)[0]
            raise DataError(f"unknown key {key!r} in {kind}; known: {', '.join(sorted(keys))}", (kind, row, key))
        if needed not in entry:
            raise DataError(f"entry {row + 1} of {kind} has no {needed}", (kind, row))
    return entries


def _amounts(value: Any, resources: Sequence[str], where: tuple[str | int, ...]) -> list[float]:
    if isinstance(value, dict):
        if unknown := set(value) - set(resources):
            name = sorted(unknown)[0]
            raise DataError(f"unknown resource {name!r}; known: {', '.join(resources)}", (*where, name))
        return [_number(value.get(name, 0.0), (*where, name)) for name in resources]
    if not isinstance(value, list) or len(value) != len(resources):
        raise DataError(f"{where[-1]} must give the {len(resources)} resources: {', '.join(resources)}", where)
    return [_number(item, where) for item in value]


def _number(value: Any, where: tuple[str | int, ...]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where[-1]} is {value!r}; it must be a number", where)
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


def _line(text: str, path: Path, where: tuple[str | int, ...]) -> int:
    """The line of a place such as ("users", 2, "demand", "cpu"); the nearest enclosing one that can be found."""
    start, end = 0, len(text)
    if len(where) >= 2 and isinstance(where[1], int):
        start, end = _entry(text, path, str(where[0]), where[1])
    keys = [str(key) for key in where[2:]] if len(where) >= 2 else [str(key) for key in where[:1]]
    for key in keys:
        found = re.compile(rf"(?<![\w-])\"?{re.escape(key)}\"?\s*[=:]|\[\[?\s*{re.escape(key)}\s*\]").search(
            text, start, end
        )
        if found:
            start = found.start()
    return text.count("\n", 0, start) + 1


def _entry(text: str, path: Path, kind: str, row: int) -> tuple[int, int]:
    """Where entry `row` of `kind` begins and ends in the text; the whole text if it cannot be told."""
    if path.suffix != ".json":
        heads = [head.start() for head in re.finditer(rf"^\s*\[\[\s*{kind}\s*\]\]", text, re.MULTILINE)]
        if row >= len(heads):
            return 0, len(text)
        start = heads[row] + re.match(r"\s*", text[heads[row] :]).end()  # type: ignore[union-attr]
        following = re.compile(r"^\s*\[", re.MULTILINE).search(text, start + 1)
        return start, following.start() if following else len(text)
    opening = re.search(rf'"{kind}"\s*:\s*\[', text)
    if opening is None:
        return 0, len(text)
    position = opening.end()
    for _ in range(row + 1):
        position = re.compile(r"[\s,]*").match(text, position).end()  # type: ignore[union-attr]
        start = position
        _, position = json.JSONDecoder().raw_decode(text, position)
    return start, position
