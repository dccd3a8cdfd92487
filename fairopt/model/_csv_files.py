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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from . import _files, cluster_file
from ._files import Table
from ._shown import short
from .cluster_file import Document, Where

#: Columns that are no resources, by the kind of row, and the entry of a cluster file that each is.
_OF = {"servers": ("name", "count"), "users": ("name", "weight", "max_tasks", "eligible")}
_RESERVED = ("kind", "name", "count", "weight", "max_tasks", "eligible")
_AMOUNTS = {"servers": "capacity", "users": "demand"}
_TRUTHS = dict.fromkeys(("1", "true", "yes", "1.0"), True) | dict.fromkeys(("0", "false", "no", "0.0", ""), False)


@dataclass(frozen=True)
class _Row:
    """The cells of a row by column, and where it stands."""

    file: Path
    line: int
    cells: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, text: str) -> DataError:
        return DataError(f"{self.place}: {text}", ("line", self.line))


def read(file: str | Path, users: str | Path | None = None, eligible: str | Path | None = None) -> Document:
    """The document in one file, or in one of servers and one of users; `eligible` may then be in a third."""
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
    said: Table = {kind: [_entry(row, kind, resources) for row in rows] for kind, rows in found.items()}
    if eligible is not None:
        _set_eligible(said["users"], _rows(eligible, "user"))

    def place(where: Where) -> str:
        known = len(where) >= 2 and where[0] in found and isinstance(where[1], int)
        return found[str(where[0])][int(where[1])].place if known else str(head.file)

    return Document(said | {"resources": resources}, place)


def write(path: Path, cluster: Any) -> None:
    """Write a `Cluster` as one CSV file; numbers keep every digit."""
    for kind in ("resource", "server", "user"):
        for name in getattr(cluster, f"{kind}s"):
            taken = kind == "resource" and name in _RESERVED
            if taken or not name or name != name.strip() or (kind == "server" and ";" in name):
                raise DataError(f"a {kind} is called {short(name)}, which CSV cannot hold here; save as .toml or .json")
    out, said = io.StringIO(), cluster_file.document(cluster)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "name", "weight", "max_tasks", "eligible", *cluster.resources])
    for kind, amounts in _AMOUNTS.items():
        for entry in said[kind]:
            if entry.get("eligible") == []:
                raise DataError(
                    f"user {entry['name']!r} is eligible nowhere, which CSV cannot say; save as .toml or .json"
                )
            about = [entry.get("weight", ""), entry.get("max_tasks", ""), ";".join(entry.get("eligible", ()))]
            writer.writerow([kind[:-1], entry["name"], *about, *entry[amounts].values()])
    _files.write(path, out.getvalue(), "cluster file")


def _rows(file: str | Path, name: str = "") -> list[_Row]:
    """The header and the rows of a file; `name` is what the column of names may be called besides `name`."""
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


def _entry(row: _Row, kind: str, resources: list[str]) -> Table:
    """A row as a cluster file has it; empty cells are left out."""
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
        else:
            entry[column] = cell if column == "name" else _number(row, column)
    return entry


def _number(row: _Row, column: str) -> float:
    cell = row.cells[column]
    try:
        return float(cell.replace("_", "no digit"))
    except ValueError:
        said = f"{column} is {short(cell)}; it must be a number, with a point for decimals"
        if column not in _RESERVED and cell[0].isalpha():
            said += (
                f". The column is taken for a resource; if {cell!r} is a kind of server, give it as the servers' name, "
                "and name it in the column `eligible` of the users who need it"
            )
        raise row.error(said) from None


def _set_eligible(users: list[Table], rows: list[_Row]) -> None:
    """Put what the file of eligible says into the entries of users."""
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
