"""Clusters as CSV: one file with a row per server and per user, or one file of each. See `docs/cluster-file.md`.

kind,name,count,weight,max_tasks,eligible,cpu,memory
server,rack,3,,,,9,18
server,big,,,,,32,64
user,A,,,,,1,4
user,B,,2,10,rack-1;big,3,1
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import DataError
from . import _files, cluster_file
from ._shown import short

#: Columns that are no resources, by the kind of row, and the entry of a cluster file that each is.
_OF = {"servers": ("name", "count"), "users": ("name", "weight", "max_tasks", "eligible")}
_RESERVED = ("kind", "name", "count", "weight", "max_tasks", "eligible")
_AMOUNTS = {"servers": "capacity", "users": "demand"}
_KINDS = {"server": "servers", "servers": "servers", "user": "users", "users": "users"}
_YES, _NO = ("1", "true", "yes", "1.0"), ("0", "false", "no", "0.0", "")

Made = TypeVar("Made")
Row = dict[str, str]


@dataclass(frozen=True)
class _Table:
    """The rows of a file by column, and the line that each stands in."""

    path: Path
    columns: list[str]
    rows: list[tuple[int, Row]]

    def error(self, line: int, text: str) -> DataError:
        return DataError(f"{self.path}:{line}: {text}", ("line", line))


@dataclass(frozen=True)
class _Source:
    """The rows of servers and of users, the table that each kind is from, and the names of resources."""

    tables: dict[str, _Table]
    rows: dict[str, list[tuple[int, Row]]]
    resources: list[str]

    def located(self, error: DataError, found: dict[str, list[int]]) -> DataError:
        """The same error with file and line in front; `found` has the row of each server and user of the cluster."""
        where = error.where
        if len(where) >= 2 and where[0] in self.rows and isinstance(where[1], int):
            kind = str(where[0])
            line, _ = self.rows[kind][found[kind][where[1]]]
            return self.tables[kind].error(line, str(error))
        return DataError(f"{self.tables['users'].path}: {error}", where)


def read(
    make: Callable[..., Made], file: str | Path, users: str | Path | None = None, eligible: str | Path | None = None
) -> Made:
    """What `make` makes of the arguments of a cluster in these files."""
    if users is None:
        if eligible is not None:
            raise DataError("a file of eligible belongs to one of servers and one of users; give users= as well")
        source = _one_file(file)
    else:
        source = _two_files(file, users)
    document: dict[str, Any] = {"resources": source.resources}
    for kind, rows in source.rows.items():
        table = source.tables[kind]
        if not rows:
            raise DataError(f"{table.path}: there is no row of {kind}; a cluster needs at least one")
        document[kind] = [_entry(table, line, row, kind, source.resources) for line, row in rows]
    if eligible is not None:
        _place(document["users"], _table(eligible, "user"))
    found = {kind: list(range(len(rows))) for kind, rows in source.rows.items()}
    try:
        arguments, found = cluster_file.arguments(document)
        return make(**arguments)
    except DataError as error:
        raise source.located(error, found) from None


def write(path: str | Path, arguments: Mapping[str, Any]) -> None:
    """Write the arguments of a `Cluster` as one CSV file; numbers keep every digit."""
    resources = list(arguments["resources"])
    for kind, names in (("resource", resources), ("server", arguments["servers"]), ("user", arguments["users"])):
        for name in names:
            taken = kind == "resource" and name in _RESERVED
            if taken or not name or name != name.strip() or (kind == "server" and ";" in name):
                raise DataError(f"a {kind} is called {short(name)}, which CSV cannot hold here; save as .toml or .json")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "name", "weight", "max_tasks", "eligible", *resources])
    for name, row in zip(arguments["servers"], arguments["capacity"].tolist(), strict=True):
        writer.writerow(["server", name, "", "", "", *row])
    for n, name in enumerate(arguments["users"]):
        may, limit = arguments["eligible"][n], float(arguments["max_tasks"][n])
        chosen = [] if may.all() else [server for server, ok in zip(arguments["servers"], may, strict=True) if ok]
        if not (chosen or may.all()):
            raise DataError(f"user {name!r} is eligible nowhere, which CSV cannot say; save as .toml or .json")
        cells = [float(arguments["weight"][n]), limit if np.isfinite(limit) else "", ";".join(chosen)]
        writer.writerow(["user", name, *cells, *arguments["demand"][n].tolist()])
    _files.write(Path(path), out.getvalue(), "cluster file")


def _one_file(file: str | Path) -> _Source:
    """Servers and users of one file, told apart by its column `kind`."""
    table = _table(file)
    if "kind" not in table.columns:
        raise table.error(
            1, "the header has no column `kind`; write server or user there in every row, or give two files: "
            "from_csv(servers, users)"
        )  # fmt: skip
    rows: dict[str, list[tuple[int, Row]]] = {"servers": [], "users": []}
    for line, row in table.rows:
        rows[_kind(table, line, row)].append((line, row))
    return _Source(dict.fromkeys(rows, table), rows, [name for name in table.columns if name not in _RESERVED])


def _two_files(servers: str | Path, users: str | Path) -> _Source:
    """Servers of one file and users of another; what servers have is what users may need."""
    tables = {"servers": _table(servers, "server"), "users": _table(users, "user")}
    resources = [name for name in tables["servers"].columns if name not in _OF["servers"]]
    unknown = [name for name in tables["users"].columns if name not in (*_OF["users"], *resources)]
    if unknown:
        raise tables["users"].error(
            1, f"{unknown[0]!r} is neither a resource of the servers ({', '.join(resources)}) nor one of "
            f"{', '.join(_OF['users'])}"
        )  # fmt: skip
    return _Source(tables, {kind: table.rows for kind, table in tables.items()}, resources)


def _table(file: str | Path, name: str = "") -> _Table:
    """The file; `name` is what the column of names may be called besides `name`."""
    path = Path(file)
    text = _files.read(path, "CSV file").removeprefix("\ufeff")  # spreadsheets put a mark in front
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{line}: not readable CSV: {error}") from None
    if not rows:
        raise DataError(f"{path}: the file is empty; its first line must name the columns")
    columns = ["name" if name and cell.lower() == name else cell for cell in rows[0][1]]
    table = _Table(path, columns, [])
    for cell in columns:
        if not cell or columns.count(cell) > 1:
            raise table.error(1, f"two columns are called {cell!r}" if cell else "a column has no name")
    for line, cells in rows[1:]:
        if len(cells) != len(columns):
            raise table.error(line, f"the row has {len(cells)} cells, and the header {len(columns)}")
        table.rows.append((line, dict(zip(columns, cells, strict=True))))
    return table


def _kind(table: _Table, line: int, row: Row) -> str:
    if row["kind"].lower() not in _KINDS:
        raise table.error(line, f"kind is {short(row['kind'])}; it must be server or user")
    return _KINDS[row["kind"].lower()]


def _entry(table: _Table, line: int, row: Row, kind: str, resources: list[str]) -> dict[str, Any]:
    """A row as a cluster file has it; empty cells are left out."""
    entry: dict[str, Any] = {}
    for column, cell in row.items():
        if not cell or column == "kind" or column in resources:
            continue
        if column not in _OF[kind]:
            raise table.error(line, f"{column} is {short(cell)}, which {kind} do not have; leave the cell empty")
        if column == "name":
            entry[column] = cell
        elif column == "eligible":
            entry[column] = [part.strip() for part in cell.split(";")]
        else:
            entry[column] = _number(table, line, column, cell)
    amounts = {name: _number(table, line, name, row[name]) for name in resources if row.get(name)}
    return entry | {_AMOUNTS[kind]: amounts}


def _number(table: _Table, line: int, column: str, cell: str) -> float | int:
    try:
        if "_" in cell:
            raise ValueError
        value = float(cell)
    except ValueError:
        said = f"{column} is {short(cell)}; it must be a number, with a point for decimals"
        if column not in _RESERVED and cell[0].isalpha():
            said += (
                f". The column is taken for a resource; if {cell!r} is a kind of server, give it as the servers' name, "
                "and name it in the column `eligible` of the users who need it"
            )
        raise table.error(line, said) from None
    return int(value) if column == "count" and value.is_integer() else value


def _place(users: list[dict[str, Any]], table: _Table) -> None:
    """Put what the file of eligible says into the entries of users."""
    by_name = {entry.get("name", f"user{row + 1}"): entry for row, entry in enumerate(users)}
    if "name" not in table.columns:
        raise table.error(1, "the header has no column `name` (or `user`)")
    for line, row in table.rows:
        user = row.pop("name")
        if user not in by_name:
            raise table.error(line, f"there is no user {user!r} in the users' file")
        for server, cell in row.items():
            if cell.lower() not in (*_YES, *_NO):
                raise table.error(line, f"eligible on {server!r} is {short(cell)}; it must be 1 or 0")
        by_name[user]["eligible"] = [server for server, cell in row.items() if cell.lower() in _YES]
