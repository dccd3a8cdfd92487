"""TOML documents whose errors name file, line and key. `tomllib` keeps no lines, so they are found in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..model import _files

#: Where something stands: keys, and positions in arrays of tables, such as ("grid", 0, "alphas").
Where = tuple[str | int, ...]

#: A check of one value, and what it must be.
Check = tuple[Callable[[Any], bool], str]

_HEAD = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


@dataclass(frozen=True)
class Document:
    """A TOML file: what it says, and on which line each key stands."""

    path: Path
    data: dict[str, Any]
    lines: dict[Where, int]

    def error(self, where: Where, message: str) -> DataError:
        """`message` with file, line and key in front; the nearest enclosing key that has a line."""
        known = where
        while known and known not in self.lines:
            known = known[:-1]
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
        return DataError(f"{self.path}:{self.lines.get(known, 1)}: {key}: {message}", where)

    def checked(self, where: Where, value: Any, check: Check) -> Any:
        """A value, if it is there and passes the check."""
        if not check[0](value):
            text = f"is {value!r}; it must be {check[1]}" if value is not None else f"is missing: {check[1]}"
            raise self.error(where, text)
        return value

    def several(self, where: Where, given: Any, check: Check) -> tuple[Any, ...]:
        """The values of a key that takes one or a list."""
        values = given if isinstance(given, list) else [given]
        if not values:
            raise self.error(where, f"is empty; give {check[1]}, or leave it out")
        return tuple(self.checked(where, value, check) for value in values)

    def table(self, where: Where, value: Any, keys: Collection[str] | None = None) -> dict[str, Any]:
        """A table, with no other keys than these."""
        if not isinstance(value, dict):
            raise self.error(where, "must be a table" if value is not None else "is missing")
        for key in value:
            if keys is not None and key not in keys:
                raise self.error((*where, key), f"unknown key; known: {', '.join(sorted(keys))}")
        return value


def read(path: Path) -> Document:
    """Parse a file.

    Raises
    ------
    DataError
        It cannot be read, or is not TOML: with the line.
    """
    text = _files.read(path, "experiment")
    data = _files.parse_toml(text, path)
    return Document(path, data, lines(text))


def lines(text: str) -> dict[Where, int]:
    """The line (from 1) of every key and table of valid TOML. Keys of inline tables stand on their table's line."""
    found: dict[Where, int] = {}
    count: dict[Where, int] = {}
    table: Where = ()
    quotes, depth = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not quotes and not depth:
            if head := _HEAD.match(line):
                table = _placed(_names(head[2]), count, array=head[1] == "[[")
                for k in range(1, len(table) + 1):
                    found.setdefault(table[:k], number)
                continue
            if key := _KEY.match(line):
                found.setdefault((*table, *_names(key[1])), number)
        quotes, depth = _open(line, quotes, depth)
    return found


def _placed(names: list[str], count: dict[Where, int], array: bool) -> Where:
    """The place of a table, arrays of tables included: [grid.x] after the second [[grid]] is ("grid", 1, "x")."""
    place: Where = ()
    for k, name in enumerate(names):
        place = (*place, name)
        if array and k == len(names) - 1:
            count[place] = count.get(place, -1) + 1
        if place in count:
            place = (*place, count[place])
    return place


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", dotted)]


def _open(line: str, quotes: str, depth: int) -> tuple[str, int]:
    """What is open at the end of the line: a string of several lines, or brackets of a value."""
    token = re.compile(r'"""|\'\'\'|\\.|"(?:[^"\\]|\\.)*"|\'[^\']*\'|[\[\]{}#]')
    for match in token.finditer(line):
        part = match[0]
        if quotes:
            quotes = "" if part == quotes else quotes
        elif part in ('"""', "'''"):
            quotes = part
        elif part == "#":
            break
        elif part in "[{":
            depth += 1
        elif part in "]}":
            depth -= 1
    return quotes, max(depth, 0)
