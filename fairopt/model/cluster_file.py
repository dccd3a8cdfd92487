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
rate = { rack = 2 }   # optional: work of a task per unit of time, by server, or one number for all; default 1

As CSV, one file with a row per server and per user, or one file of servers and one of users:

kind,name,count,weight,max_tasks,eligible,cpu,memory
server,rack,3,,,,9,18
server,big,,,,,32,64
user,A,,,,,1,4
user,B,,2,10,rack-1;big,3,1
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..base import files as _files
from ..base.errors import DataError
from ..base.files import Table
from ..base.names import MOST_SERVERS, TRUTHS, copies, label, short, some
from . import _intake

#: Largest size of a table in bytes.
MOST_BYTES = 2**30

#: Keys of the entries of servers and users.
SERVER_KEYS = {"name", "count", "capacity"}
USER_KEYS = {"name", "demand", "weight", "max_tasks", "eligible", "rate"}

Where = tuple[str | int, ...]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Document:
    """Contents of a cluster file, and a function from a key, such as `("users", 2, "demand")`, to its file and line."""

    said: Any
    place: Callable[[Where], str]

    def made(self, make: Callable[..., Made]) -> Made:
        """Return the object that `make` builds from the arguments of `Cluster`; a `DataError` names file and line."""
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
    """Read a cluster file: JSON or CSV if it has that suffix, and TOML otherwise; a failure raises `DataError`."""
    path = Path(path)
    if path.suffix.lower() == ".csv":
        return read_csv(path)
    text = _files.read(path, "cluster file")
    json_format = path.suffix.lower() == ".json"
    said = _files.parse_json(text, path) if json_format else _files.parse_toml(text, path)
    if isinstance(said, dict) and isinstance(said.get("items"), list):
        raise DataError(f"{path} is no cluster file, it looks like what kubectl prints: name it kubernetes:{path}")
    return Document(said, lambda where: str(path) if json_format else f"{path}:{_files.toml_line(text, where)}")


def write(path: Path, cluster: Any) -> None:
    """Write a `Cluster` in the format of the suffix of `path`, TOML without one; `read` restores all numbers exactly.

    Raises
    ------
    DataError
        The suffix is none of `.toml`, `.json` and `.csv`, or the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in ("", ".toml", ".json", ".csv"):
        raise DataError(f"cannot write a cluster into {path.name}: choose .toml, .json or .csv")
    made = _csv(cluster) if suffix == ".csv" else text(cluster, json_format=suffix == ".json")
    _files.write(path, made, "cluster file")


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
        if cluster.constrained and not cluster.eligible[n].all():
            user["eligible"] = [cluster.servers[i] for i in np.flatnonzero(cluster.eligible[n])]
        if cluster.rated and (cluster.rate[n] != 1).any():
            user["rate"] = dict(zip(cluster.servers, cluster.rate[n].tolist(), strict=True))
        users.append(user)
    return {"resources": list(cluster.resources), "servers": servers, "users": users}


def arguments(document: Any) -> tuple[Table, dict[str, list[int]]]:
    """Arguments of `Cluster` from a document, and the index of the entry of every server and user.

    An invalid structure raises `DataError`; numbers are validated by the constructor of `Cluster`.
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
    known, places = _copies(servers, labels, server_rows), {}
    for what in ("eligible", "rate"):
        places[what] = {row: user[what] for row, user in enumerate(users) if what in user}
        if places[what]:
            _fits(len(users) * len(labels), f"{len(users)} users with `{what}` among {len(labels)} servers")
    made = {
        "capacity": _amounts(servers, "server", "capacity", resources)[server_rows],
        "demand": _amounts(users, "user", "demand", resources),
        "weight": [user.get("weight", 1.0) for user in users],
        "eligible": _intake.placed(places["eligible"], names, len(labels), known) if places["eligible"] else None,
        "max_tasks": [user.get("max_tasks", np.inf) for user in users],
        "rate": _intake.rated(places["rate"], names, len(labels), known) if places["rate"] else None,
        "resources": resources,
        "users": names,
        "servers": labels,
    }
    return made, {"servers": server_rows, "users": list(range(len(users)))}


def _servers(entries: list[Table]) -> tuple[list[str], list[int]]:
    """Names of all servers, and the index of the entry of each server; an invalid `count` raises `DataError`."""
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
    """Indices of servers by the names that users may list: own names, and the name of an entry for all its copies."""
    known: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if "name" in entries[row]:
            known.setdefault(str(entries[row]["name"]), []).append(index)
    return known | {name: [index] for index, name in enumerate(labels)}


def _fits(size: int, what: str) -> None:
    """Raise `DataError` for a table above `MOST_BYTES`, which a few lines of a file can describe."""
    if size > MOST_BYTES:
        raise DataError(f"{what} make a table of {size:,} bytes; it may have MOST_BYTES = {MOST_BYTES:,}, no more")


def _name(entry: Table, kind: str, row: int) -> str:
    return label(entry.get("name", f"{kind}{row + 1}"), kind, (f"{kind}s", row, "name"))


def known_keys(table: Table, keys: Sequence[str], of: str = "", where: Where = ()) -> None:
    """Raise `DataError` if a table has a key other than `keys`."""
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
    """Amounts (entries, resources), from tables by resource (0 if absent) or lists in the order of `resources`.

    Unknown resources and lists of another length raise `DataError`.
    """
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
    # Strings of JSON are strings of TOML, except for surrogate pairs and the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


#: Columns of CSV that are not resources, by kind of row; they have the names of the keys of entries.
_OF = {"servers": ("name", "count"), "users": ("name", "weight", "max_tasks", "eligible", "rate")}
_RESERVED = ("kind", "name", "count", "weight", "max_tasks", "eligible", "rate")
_AMOUNTS = {"servers": "capacity", "users": "demand"}
_TRUTHS = TRUTHS | {"": False}


@dataclass(frozen=True)
class _Row:
    """Cells of a row of CSV by column, and the location of the row."""

    file: Path
    line: int
    cells: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, text: str) -> DataError:
        return DataError(f"{self.place}: {text}", ("line", self.line))


def read_csv(file: str | Path, users: str | Path | None = None, eligible: str | Path | None = None) -> Document:
    """Read a document from one CSV file, or from files of servers, of users, and optionally of eligible pairs.

    An invalid file raises `DataError`, which names file and line.
    """
    if users is None:
        if eligible is not None:
            raise DataError("a file of eligible belongs to one of servers and one of users; give users= as well")
        head, *rows = _rows(file)
        if "kind" not in head.cells:
            raise head.error(
                "the header has no column `kind`; write server or user there in every row, or give two files: "
                "from_csv(servers, users)"
            )
        resources = [name for name in head.cells if name not in _RESERVED]
        found: dict[str, list[_Row]] = {"servers": [], "users": []}
        for row in rows:
            kind = row.cells["kind"].lower().removesuffix("s") + "s"
            if kind not in found:
                raise row.error(f"kind is {short(row.cells['kind'])}; it must be server or user")
            found[kind].append(row)
    else:
        (servers_head, *servers), (head, *rows) = _rows(file, "server"), _rows(users, "user")
        resources = [name for name in servers_head.cells if name not in _OF["servers"]]
        if unknown := [name for name in head.cells if name not in (*_OF["users"], *resources)]:
            raise head.error(
                f"{unknown[0]!r} is neither a resource of the servers ({', '.join(resources)}) nor one of "
                f"{', '.join(_OF['users'])}"
            )
        found = {"servers": servers, "users": rows}
    said: Table = {kind: [_csv_entry(row, kind, resources) for row in rows] for kind, rows in found.items()}
    if eligible is not None:
        _set_eligible(said["users"], _rows(eligible, "user"))

    def place(where: Where) -> str:
        known = len(where) >= 2 and where[0] in found and isinstance(where[1], int)
        return found[str(where[0])][int(where[1])].place if known else str(head.file)

    return Document(said | {"resources": resources}, place)


def _csv(cluster: Any) -> str:
    """Text of a cluster as one CSV file; `DataError` if CSV cannot represent a name or a user eligible nowhere."""
    for kind in ("resource", "server", "user"):
        for name in getattr(cluster, f"{kind}s"):
            taken = kind == "resource" and name in _RESERVED
            if taken or not name or name != name.strip() or (kind == "server" and ";" in name):
                raise DataError(f"a {kind} is called {short(name)}, which CSV cannot hold here; save as .toml or .json")
    out, said = io.StringIO(), document(cluster)
    writer = csv.writer(out, lineterminator="\n")
    rated = ["rate"] if cluster.rated else []
    writer.writerow(["kind", "name", "weight", "max_tasks", "eligible", *rated, *cluster.resources])
    for kind, amounts in _AMOUNTS.items():
        for entry in said[kind]:
            if entry.get("eligible") == []:
                raise DataError(
                    f"user {entry['name']!r} is eligible nowhere, which CSV cannot express; save as .toml or .json"
                )
            about = [entry.get("weight", ""), entry.get("max_tasks", ""), ";".join(entry.get("eligible", ()))]
            if rated:
                about.append(";".join(f"{name}={rate!r}" for name, rate in entry.get("rate", {}).items()))
            writer.writerow([kind[:-1], entry["name"], *about, *entry[amounts].values()])
    return out.getvalue()


def _rows(file: str | Path, name: str = "") -> list[_Row]:
    """Header and nonempty rows of a CSV file; the argument `name` is an alternative heading of the column `name`.

    A file that is empty or not rectangular raises `DataError`.
    """
    path = Path(file)
    text = _files.read(path, "CSV file")
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True)
    rows: list[_Row] = []
    columns: list[str] = []
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            columns = columns or ["name" if name and cell.lower() == name else cell for cell in cells]
            row = _Row(path, reader.line_num, dict(zip(columns, cells, strict=False)))
            if len(cells) != len(columns):
                raise row.error(f"the row has {len(cells)} cells, and the header {len(columns)}")
            rows.append(row)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not readable CSV: {error}") from None
    if not rows:
        raise DataError(f"{path}: the file is empty; its first line must name the columns")
    for cell in columns:
        if not cell or columns.count(cell) > 1:
            raise rows[0].error(f"two columns are called {cell!r}" if cell else "a column has no name")
    return rows


def _csv_entry(row: _Row, kind: str, resources: list[str]) -> Table:
    """Convert a row to an entry of a cluster file, without empty cells; an invalid cell raises `DataError`."""
    amounts: dict[str, float] = {}
    entry: Table = {_AMOUNTS[kind]: amounts}
    for column, cell in row.cells.items():
        if not cell or column == "kind":
            continue
        if column in resources:
            amounts[column] = _number(row, column)
        elif column not in _OF[kind]:
            raise row.error(f"{column} is {short(cell)}, which {kind} do not have; leave the cell empty")
        elif column == "eligible":
            entry[column] = [part.strip() for part in cell.split(";")]
        elif column == "rate" and "=" in cell:
            pairs = [part.rpartition("=") for part in cell.split(";")]
            entry[column] = {name.strip(): _number(row, column, text.strip()) for name, _, text in pairs}
        else:
            entry[column] = cell if column == "name" else _number(row, column)
    return entry


def _number(row: _Row, column: str, cell: str | None = None) -> float:
    """Number in the cell of a column, or in its part `cell`; another text raises `DataError`."""
    cell = row.cells[column] if cell is None else cell
    try:
        return float(cell.replace("_", "no digit"))
    except ValueError:
        said = f"{column} is {short(cell)}; it must be a number, with a point for decimals"
        if column not in _RESERVED and cell[:1].isalpha():
            said += (
                f". The column is taken for a resource; if {cell!r} is a kind of server, give it as the servers' name, "
                "and name it in the column `eligible` of the users who need it"
            )
        raise row.error(said) from None


def _set_eligible(users: list[Table], rows: list[_Row]) -> None:
    """Enter the rows of a table of eligible servers into the entries `users`; an invalid row raises `DataError`."""
    by_name = {entry.get("name", f"user{row + 1}"): entry for row, entry in enumerate(users)}
    if "name" not in rows[0].cells:
        raise rows[0].error("the header has no column `name` (or `user`)")
    for row in rows[1:]:
        cells = dict(row.cells)
        if (user := cells.pop("name")) not in by_name:
            raise row.error(f"there is no user {user!r} in the users' file")
        for server, cell in cells.items():
            if cell.lower() not in _TRUTHS:
                raise row.error(f"eligible on {server!r} is {short(cell)}; it must be 1 or 0")
        by_name[user]["eligible"] = [server for server, cell in cells.items() if _TRUTHS[cell.lower()]]
